// Atomics on shared memory: how long one takes whose value is waited for, by kind and by how many lanes want one word,
// and how many a block of eight warps gets done.
#include "common.cuh"

enum Kind { ADD, COUNT, MAX, EXCHANGE, SWAP, SWAP_64, KINDS };
static const char* const NAMES[] = {"add.u32", "count", "max.s32", "exch.b32", "cas.b32", "cas.b64"};

template <int KIND>
__device__ unsigned apply(char* at, unsigned x) {
    switch (KIND) {
        case ADD: return atomicAdd(reinterpret_cast<unsigned*>(at), x | 1);
        case COUNT: return atomicAdd(reinterpret_cast<unsigned*>(at), 1u);
        case MAX: return unsigned(atomicMax(reinterpret_cast<int*>(at), int(x | 1)));
        case EXCHANGE: return atomicExch(reinterpret_cast<unsigned*>(at), x | 1);
        case SWAP: return atomicCAS(reinterpret_cast<unsigned*>(at), x, x + 1);
        default: return unsigned(atomicCAS(reinterpret_cast<unsigned long long*>(at), (unsigned long long)x, x + 1ull));
    }
}

// Each lane waits for what its atomic returns; `same` lanes want one word, words are `apart` bytes apart.
template <int KIND>
__global__ void follow(long long* out, int same, int lanes, int apart, int steps) {
    __shared__ alignas(8) char memory[4096];
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) reinterpret_cast<unsigned*>(memory)[i] = 0;
    __syncthreads();
    int lane = threadIdx.x % 32;
    unsigned x = 0;
    long long time = 0;
    if (lane < lanes) {
        char* at = memory + lane / same * apart;
        for (int round = 0; round < 2; round++) {
            long long begin = clock64();
            for (int i = 0; i < steps; i++) x = apply<KIND>(at + (x == 0x7fffffff ? 4 : 0), x);
            time = clock64() - begin + (x == 0x12345678);
        }
    }
    __syncthreads();
    if (threadIdx.x == 0) out[0] = time;
}

template <int KIND>
void measure(const Clock& clock) {
    const int steps = 64;
    for (int warps : {1, 8})
        for (int lanes : {1, 32})
            for (int same : {1, 2, 4, 8, 16, 32}) {
                if (same > lanes) continue;
                int apart = KIND == SWAP_64 ? 8 : 4;
                double cycles = clock.median_of([&](long long* out) { follow<KIND><<<1, 32 * warps>>>(out, same, lanes, apart, steps); });
                row("shared_atomics", text("%s warps=%d lanes=%d same=%d", NAMES[KIND], warps, lanes, same), cycles / steps, "cycles");
            }
}

int main() {
    warm_up();
    Clock clock;
    measure<ADD>(clock);
    measure<COUNT>(clock);
    measure<MAX>(clock);
    measure<EXCHANGE>(clock);
    measure<SWAP>(clock);
    measure<SWAP_64>(clock);
    return 0;
}
