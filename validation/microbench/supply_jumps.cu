// Code with jumps over lines that are never run, with calls, and warps at different places: when a warp has each line.
//
// Prints rows `probe,parameters,state,round,line,cycles`: cycles since the first line of the round.
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#define CHECK(call) do { cudaError_t s_ = (call); if (s_ != cudaSuccess) { std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(s_)); std::exit(2); } } while (0)

#define FAST "mov.u32 %1,%%clock; st.volatile.shared.u32 [%0],%1; add.u32 %0,%0,4; fma.rn.f32 %2,%2,%4,%4; fma.rn.f32 %3,%3,%4,%4; fma.rn.f32 %2,%2,%4,%4; fma.rn.f32 %3,%3,%4,%4; fma.rn.f32 %2,%2,%4,%4; fma.rn.f32 %3,%3,%4,%4;\n"
#define IDLE "mul.rn.f32 %2,%2,%4; mul.rn.f32 %3,%3,%4; mul.rn.f32 %2,%2,%4; mul.rn.f32 %3,%3,%4; mul.rn.f32 %2,%2,%4; mul.rn.f32 %3,%3,%4; mul.rn.f32 %2,%2,%4; mul.rn.f32 %3,%3,%4;\n"
#define OPERANDS : "+r"(at), "=r"(clock), "+f"(x), "+f"(y) : "f"(a) : "memory"
#define TIMES4(x) x x x x

// RUN lines that are run (RUN 4, 8 or 16), then SKIP lines (a multiple of 4) that are jumped over.
template <int COUNT, int RUN, int SKIP>
struct Jumping {
    static __device__ __forceinline__ void run(unsigned& at, float& x, float& y, float a, int never) {
        unsigned clock;
#pragma unroll
        for (int i = 0; i < RUN / 4; i++) asm volatile(TIMES4(FAST) OPERANDS);
        if (never) {
#pragma unroll
            for (int i = 0; i < SKIP / 4; i++) asm volatile(TIMES4(IDLE) OPERANDS);
        }
        Jumping<COUNT - 1, RUN, SKIP>::run(at, x, y, a, never);
    }
};
template <int RUN, int SKIP>
struct Jumping<0, RUN, SKIP> {
    static __device__ __forceinline__ void run(unsigned&, float&, float&, float, int) {}
};

template <int COUNT, int RUN, int SKIP>
__global__ void jumping(unsigned* out, float a, int never) {
    __shared__ unsigned times[4096];
    float x = a, y = a + 1;
    for (int round = 0; round < 2; round++) {
        unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(times));
        __syncthreads();
        Jumping<COUNT, RUN, SKIP>::run(at, x, y, a, never);
        __syncthreads();
        for (int i = threadIdx.x; i < COUNT * RUN; i += blockDim.x) out[round * COUNT * RUN + i] = times[i] - times[0];
        __syncthreads();
    }
    if (x + y == 123.0f) out[0] = 1;
}

// Functions of four lines each, called in turn: caller and callee alternate.
template <int NUMBER>
__device__ __noinline__ unsigned function(unsigned at, float* values, float a) {
    unsigned clock;
    float x = values[0], y = a + NUMBER;
    asm volatile(TIMES4(FAST) OPERANDS);
    values[0] = x + y;
    return at;
}
template <int NUMBER>
struct Calling {
    static __device__ __forceinline__ unsigned run(unsigned at, float* values, float a) {
        return Calling<NUMBER - 1>::run(function<NUMBER>(at, values, a), values, a);
    }
};
template <>
struct Calling<0> {
    static __device__ __forceinline__ unsigned run(unsigned at, float*, float) { return at; }
};
__global__ void calling(unsigned* out, float a, int) {
    __shared__ unsigned times[512];
    __shared__ float values[1];
    for (int round = 0; round < 2; round++) {
        __syncthreads();
        Calling<64>::run(static_cast<unsigned>(__cvta_generic_to_shared(times)), values, a);
        __syncthreads();
        for (int i = threadIdx.x; i < 256; i += blockDim.x) out[round * 256 + i] = times[i] - times[0];
        __syncthreads();
    }
}

// Every warp has a path of its own of 512 lines (64 KiB); times of warp 0.
template <int COUNT>
struct Straight {
    static __device__ __forceinline__ void run(unsigned& at, float& x, float& y, float a) {
        unsigned clock;
        asm volatile(TIMES4(TIMES4(FAST)) OPERANDS);
        Straight<COUNT - 1>::run(at, x, y, a);
    }
};
template <>
struct Straight<0> {
    static __device__ __forceinline__ void run(unsigned&, float&, float&, float) {}
};
template <int PATHS, int LINES>
__global__ void places(unsigned* out, float a, int) {
    extern __shared__ unsigned every[];
    int warp = threadIdx.x / 32;
    unsigned* times = every + warp * LINES;
    for (int round = 0; round < 2; round++) {
        float x = a, y = a + 1;
        unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(times));
        __syncthreads();
        switch (warp) {
            case 0: Straight<LINES / 16>::run(at, x, y, a); break;
            case 1: Straight<LINES / 16>::run(at, x, y, a + 2); break;
            case 2: if (PATHS > 2) Straight<LINES / 16>::run(at, x, y, a + 3); break;
            case 3: if (PATHS > 2) Straight<LINES / 16>::run(at, x, y, a + 4); break;
            case 4: if (PATHS > 4) Straight<LINES / 16>::run(at, x, y, a + 5); break;
        }
        __syncthreads();
        for (int i = threadIdx.x; i < LINES; i += blockDim.x) out[round * LINES + i] = every[i] - every[0];
        __syncthreads();
        if (x + y == 123.0f) out[0] = 1;
    }
}

template <int COUNT>
__global__ void other_code(unsigned* out, float a) {
    __shared__ unsigned times[16384 / 4];
    float x = a, y = a + 1;
    unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(times));
    // Four times 64 times 16 lines: 512 KiB.
    Straight<COUNT>::run(at, x, y, a);
    at -= COUNT * 64, a += 1.0f, Straight<COUNT>::run(at, x, y, a);
    at -= COUNT * 64, a += 1.0f, Straight<COUNT>::run(at, x, y, a);
    at -= COUNT * 64, a += 1.0f, Straight<COUNT>::run(at, x, y, a);
    if (x + y == 123.0f) out[0] = 1;
}

__global__ void read_all(const float4* memory, float* out, size_t count) {
    float sum = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) sum += memory[i].x;
    if (sum == 1.2345f) out[0] = sum;
}

static unsigned* out;
static float4* large;
static const size_t LARGE = 512ull << 20;

template <class Kernel>
static void measure(const char* probe, const char* parameters, Kernel kernel, int lines, int warps, int shared) {
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    for (const char* state : {"l2cold", "l2warm", "warm"}) {
        if (state[0] == 'l') other_code<64><<<132, 32>>>(out, 0.5f);
        if (state[2] == 'c') read_all<<<1056, 256>>>(large, reinterpret_cast<float*>(out), LARGE / 16);
        CHECK(cudaDeviceSynchronize());
        kernel<<<1, warps * 32, shared>>>(out, 0.5f, 0);
        CHECK(cudaDeviceSynchronize());
        std::vector<unsigned> times(2 * lines);
        CHECK(cudaMemcpy(times.data(), out, times.size() * 4, cudaMemcpyDeviceToHost));
        for (int round = 0; round < 2; round++)
            for (int line = 0; line < lines; line++)
                if (line < 256 || line % 16 == 0 || line == lines - 1) std::printf("%s,%s,%s,%d,%d,%u\n", probe, parameters, state, round, line, times[round * lines + line]);
    }
}

int main() {
    CHECK(cudaMalloc(&out, 1 << 20));
    CHECK(cudaMalloc(&large, LARGE));
    CHECK(cudaMemset(large, 0, LARGE));
    measure("jumping", "run=4 skip=4", jumping<64, 4, 4>, 256, 1, 0);
    measure("jumping", "run=4 skip=16", jumping<64, 4, 16>, 256, 1, 0);
    measure("jumping", "run=16 skip=16", jumping<32, 16, 16>, 512, 1, 0);
    measure("jumping", "run=16 skip=64", jumping<32, 16, 64>, 512, 1, 0);
    measure("jumping", "run=64 skip=64", jumping<16, 64, 64>, 1024, 1, 0);
    measure("calling", "functions=64 lines=4", calling, 256, 1, 0);
    measure("calling", "functions=64 lines=4 warps=4", calling, 256, 4, 0);
    measure("places", "paths=2 KiB=64", places<2, 512>, 512, 2, 64 << 10);
    measure("places", "paths=4 KiB=64", places<4, 512>, 512, 4, 64 << 10);
    measure("places", "paths=5 of which two in a sub-core KiB=64", places<5, 512>, 512, 5, 64 << 10);
    measure("places", "paths=2 KiB=8", places<2, 64>, 64, 2, 64 << 10);
    measure("places", "paths=4 KiB=8", places<4, 64>, 64, 4, 64 << 10);
    return 0;
}
