// What a global load that L1 has, or a global store, takes the SM: by width and by the words between lanes.
#include "common.cuh"

template <int WORDS>
__device__ inline unsigned get(const unsigned* at) {
    unsigned a = 0, b = 0, c = 0, d = 0;
    if (WORDS == 1) asm volatile("ld.global.ca.u32 %0,[%1];" : "=r"(a) : "l"(at) : "memory");
    if (WORDS == 2) asm volatile("ld.global.ca.v2.u32 {%0,%1},[%2];" : "=r"(a), "=r"(b) : "l"(at) : "memory");
    if (WORDS == 4) asm volatile("ld.global.ca.v4.u32 {%0,%1,%2,%3},[%4];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : "l"(at) : "memory");
    return a + b + c + d;
}

template <int WORDS>
__device__ inline void put(unsigned* at, unsigned value) {
    if (WORDS == 1) asm volatile("st.global.u32 [%0],%1;" ::"l"(at), "r"(value) : "memory");
    if (WORDS == 2) asm volatile("st.global.v2.u32 [%0],{%1,%1};" ::"l"(at), "r"(value) : "memory");
    if (WORDS == 4) asm volatile("st.global.v4.u32 [%0],{%1,%1,%1,%1};" ::"l"(at), "r"(value) : "memory");
}

// Loads: all warps go over the same `span` words. Stores: each warp has its own.
template <bool STORE, int WORDS>
__global__ void work(unsigned* memory, long long* out, int steps, unsigned apart, unsigned span) {
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    unsigned* base = memory + (lane * apart) % span + (STORE ? warp * (span + 64) : 0);
    unsigned sum = 0;
    time_second_round(out, steps, [&](int i) {
#pragma unroll
        for (int j = 0; j < 8; j++) {
            if (STORE) put<WORDS>(base + j * 8, sum + j);
            else sum += get<WORDS>(base + j * 8);
        }
    });
    if (sum == 0x12345678) out[1] = sum;
}

template <bool STORE, int WORDS>
void measure(const Clock& clock, unsigned* memory) {
    constexpr int STEPS = 32;
    for (unsigned apart : {1u, 2u, 4u, 8u, 9u, 16u, 17u, 32u, 33u, 36u, 40u, 132u}) {
        if (apart % WORDS && apart != 1) continue;
        unsigned words = apart == 1 ? WORDS : apart;
        for (int threads : {32, 512}) {
            double cycles = clock.median_of([&](long long* out) { work<STORE, WORDS><<<1, threads>>>(memory, out, STEPS, words, 8192); });
            row("passes", text("%s words=%d apart=%u threads=%d", STORE ? "store" : "load", WORDS, words, threads), cycles / (STEPS * 8 * (threads / 32)), "cycles/warp-inst/SM");
        }
    }
}

int main() {
    warm_up();
    Clock clock;
    unsigned* memory;
    CHECK(cudaMalloc(&memory, 4 << 20));
    CHECK(cudaMemset(memory, 0, 4 << 20));
    measure<false, 1>(clock, memory), measure<false, 2>(clock, memory), measure<false, 4>(clock, memory);
    measure<true, 1>(clock, memory), measure<true, 2>(clock, memory), measure<true, 4>(clock, memory);
    return 0;
}
