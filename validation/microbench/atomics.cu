// Atomic operations: time of one, and how many a second, by kind and by how many addresses share them.
#include "common.cuh"

#include <cuda_fp16.h>

enum Kind { ADD_U32, ADD_U64, ADD_F32, ADD_F64, ADD_HALF2, MAX_S32, AND_U32, EXCHANGE, SWAP, KINDS };
static const char* const NAMES[] = {"add.u32", "add.u64", "add.f32", "add.f64", "add.f16x2", "max.s32", "and.b32", "exch.b32", "cas.b32"};

template <int KIND, bool RETURNS>
__device__ unsigned apply(char* at, unsigned x) {
    switch (KIND) {
        case ADD_U32: return atomicAdd(reinterpret_cast<unsigned*>(at), RETURNS ? x | 1 : 1u);
        case ADD_U64: return unsigned(atomicAdd(reinterpret_cast<unsigned long long*>(at), RETURNS ? x | 1ull : 1ull));
        case ADD_F32: return __float_as_uint(atomicAdd(reinterpret_cast<float*>(at), RETURNS ? __uint_as_float(x & 1) : 1.0f));
        case ADD_F64: return unsigned(__double2loint(atomicAdd(reinterpret_cast<double*>(at), RETURNS ? double(x & 1) : 1.0)));
        case ADD_HALF2: {
            __half2 old = atomicAdd(reinterpret_cast<__half2*>(at), __floats2half2_rn(float(x & 1), 1.0f));
            return *reinterpret_cast<unsigned*>(&old);
        }
        case MAX_S32: return unsigned(atomicMax(reinterpret_cast<int*>(at), RETURNS ? int(x | 1) : 1));
        case AND_U32: return atomicAnd(reinterpret_cast<unsigned*>(at), RETURNS ? x | 1 : 1u);
        case EXCHANGE: return atomicExch(reinterpret_cast<unsigned*>(at), x | 1);
        default: return atomicCAS(reinterpret_cast<unsigned*>(at), x, x + 1);
    }
}

template <int KIND>
__global__ void one_after_another(long long* out, char* memory, int steps) {
    unsigned x = 0;
    for (int round = 0; round < 2; round++) {
        long long begin = clock64();
        for (int i = 0; i < steps; i++) x = apply<KIND, true>(memory + threadIdx.x % 32 * 8, x);
        long long end = clock64();
        if (threadIdx.x == 0) out[0] = end - begin;
    }
    if (x == 0x12345678) out[1] = x;
}

// spread: 0 one address, 1 the lanes of a warp side by side and all warps alike, 2 every thread its own,
// 3 every lane a line of its own
template <int KIND>
__global__ void many(char* memory, int spread, int steps) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x;
    char* at = memory + (spread == 0   ? 0
                         : spread == 1 ? threadIdx.x % 32 * 8
                         : spread == 2 ? size_t(thread) * 8
                                       : size_t(thread % 65536) * 128);
    for (int i = 0; i < steps; i++) apply<KIND, false>(at, unsigned(i));
}

template <int KIND>
__global__ void in_shared(long long* out, int spread, int steps) {
    __shared__ alignas(8) char memory[1024 * 8];
    for (int i = threadIdx.x; i < 2048; i += blockDim.x) reinterpret_cast<unsigned*>(memory)[i] = 0;
    __syncthreads();
    char* at = memory + (spread == 0 ? 0 : spread == 1 ? threadIdx.x % 32 * 8 : threadIdx.x * 8);
    long long begin = clock64();
    for (int i = 0; i < steps; i++) apply<KIND, false>(at, unsigned(i));
    __syncthreads();
    long long end = clock64();
    if (threadIdx.x == 0) out[0] = end - begin;
}

template <int KIND>
void measure(const Clock& clock, char* memory) {
    static const char* const SPREADS[] = {"one address", "one line", "address per thread", "line per lane"};
    const int steps = 64;
    for (int threads : {1, 32}) {
        double cycles = clock.median_of([&](long long* out) { one_after_another<KIND><<<1, threads>>>(out, memory, steps); });
        row("atomic_latency", text("%s threads=%d", NAMES[KIND], threads), cycles / steps, "cycles");
    }
    for (int spread = 0; spread < 4; spread++) {
        const int blocks = 264, threads = 256;
        double time = milliseconds([&] { many<KIND><<<blocks, threads>>>(memory, spread, steps); });
        row("atomic_throughput", text("%s %s", NAMES[KIND], SPREADS[spread]), double(blocks) * threads * steps / time / 1e6, "Gatomic/s");
    }
    for (int spread = 0; spread < 3; spread++) {
        double cycles = clock.median_of([&](long long* out) { in_shared<KIND><<<1, 256>>>(out, spread, steps); });
        row("shared_atomic", text("%s %s threads=256", NAMES[KIND], SPREADS[spread]), cycles / (steps * 8), "cycles/warp-inst/SM");
    }
}

int main() {
    warm_up();
    Clock clock;
    char* memory;
    CHECK(cudaMalloc(&memory, 64 << 20));
    CHECK(cudaMemset(memory, 0, 64 << 20));
    measure<ADD_U32>(clock, memory);
    measure<ADD_U64>(clock, memory);
    measure<ADD_F32>(clock, memory);
    measure<ADD_F64>(clock, memory);
    measure<ADD_HALF2>(clock, memory);
    measure<MAX_S32>(clock, memory);
    measure<AND_U32>(clock, memory);
    measure<EXCHANGE>(clock, memory);
    measure<SWAP>(clock, memory);
    return 0;
}
