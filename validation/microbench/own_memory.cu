// Threads' own memory: what a store or a load of it takes the SM, by width, by where lanes point, and by warps.
#include "common.cuh"

enum Kind { STORE, LOAD, STORE_AND_LOAD };
static const char* const NAMES[] = {"store", "load", "store then load"};

template <int WORDS>
__device__ inline void put(unsigned at, unsigned value) {
    if (WORDS == 1) asm volatile("st.local.u32 [%0],%1;" ::"r"(at), "r"(value) : "memory");
    if (WORDS == 2) asm volatile("st.local.v2.u32 [%0],{%1,%1};" ::"r"(at), "r"(value) : "memory");
    if (WORDS == 4) asm volatile("st.local.v4.u32 [%0],{%1,%1,%1,%1};" ::"r"(at), "r"(value) : "memory");
}

template <int WORDS>
__device__ inline unsigned get(unsigned at) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (WORDS == 1) asm volatile("ld.local.u32 %0,[%1];" : "=r"(a) : "r"(at) : "memory");
    if (WORDS == 2) asm volatile("ld.local.v2.u32 {%0,%1},[%2];" : "=r"(a), "=r"(b) : "r"(at) : "memory");
    if (WORDS == 4) asm volatile("ld.local.v4.u32 {%0,%1,%2,%3},[%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "r"(at) : "memory");
    return a + b + c + d;
}

// `apart` is how many bytes of its own memory a lane is beyond the one before it.
template <int KIND, int WORDS>
__global__ void work(long long* out, int steps, unsigned apart, unsigned nothing) {
    __align__(16) unsigned own[256];
    for (int i = 0; i < 256; i++) own[i] = i;
    unsigned base = unsigned(__cvta_generic_to_local(own)) + (threadIdx.x % 32 * apart) % 512;
    unsigned sum = 0;
    time_second_round(out, steps, [&](int i) {
#pragma unroll
        for (int j = 0; j < 8; j++) {
            unsigned at = base + (i & 1) * 128 + j * 16;
            if (KIND != LOAD) put<WORDS>(at, sum + j);
            if (KIND == LOAD) sum += get<WORDS>(at);
            // The compiler does not know that this is what was stored.
            if (KIND == STORE_AND_LOAD) sum = get<WORDS>(at + nothing) + 1;
        }
    });
    if (sum == 0x12345678) out[1] = own[sum & 255];
}

template <int KIND, int WORDS>
void measure(const Clock& clock) {
    constexpr int STEPS = 32;
    for (unsigned apart : {0u, 16u, 32u})
        for (int threads : {32, 128, 256, 512, 1024}) {
            double cycles = clock.median_of([&](long long* out) { work<KIND, WORDS><<<1, threads>>>(out, STEPS, apart, 0); });
            row("own_memory", text("%s words=%d apart=%u threads=%d", NAMES[KIND], WORDS, apart, threads), cycles / (STEPS * 8 * (threads / 32)), "cycles/warp-inst/SM");
        }
}

int main() {
    warm_up();
    Clock clock;
    measure<STORE, 1>(clock), measure<STORE, 2>(clock), measure<STORE, 4>(clock);
    measure<LOAD, 1>(clock), measure<LOAD, 2>(clock), measure<LOAD, 4>(clock);
    measure<STORE_AND_LOAD, 1>(clock), measure<STORE_AND_LOAD, 2>(clock), measure<STORE_AND_LOAD, 4>(clock);
    return 0;
}
