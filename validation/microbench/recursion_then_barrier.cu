// Lanes that return from recursive calls of many depths and then wait for the other warps of their block.
//
// Usage: recursion_then_barrier counts FORM   every launch, to be counted by ncu
//        recursion_then_barrier marks FORM    the same, with the marks printed in the order of the clock
// FORM is that of recursion.cu.
#include "marks.cuh"

static unsigned* out;

template <int T>
__device__ __noinline__ unsigned three_calls(unsigned value, unsigned depth) {
    mark<T>(1);
    if (depth == 0) return value;
    unsigned got = value & 1 ? three_calls<T>(value * 21117u + 1, depth - 1) : three_calls<T>(value >> 1, depth >> 1) * 3 + 1;
    mark<T>(2);
    if ((value >> 3) % 5 == 0) got ^= three_calls<T>(value ^ 38555u, depth - 1);
    mark<T>(3);
    return got + value;
}

__device__ __forceinline__ unsigned drawn(unsigned seed) {
    unsigned value = (threadIdx.x + seed) * 2654435761u;
    value ^= value >> 15;
    value *= 0x2c1b3c6du;
    return value ^ value >> 13;
}

template <int T>
__global__ void before_a_block_barrier(unsigned* out, unsigned seed, unsigned depths) {
    begin<T>();
    unsigned value = drawn(seed);
    unsigned got = three_calls<T>(value, value % depths);
    mark<T>(4);
    __syncthreads();
    out[threadIdx.x] = got;
}

template <int T>
__global__ void before_a_warp_barrier(unsigned* out, unsigned seed, unsigned depths) {
    begin<T>();
    unsigned value = drawn(seed);
    unsigned got = three_calls<T>(value, value % depths);
    mark<T>(4);
    __syncwarp(~0u >> (32 - blockDim.x));
    mark<T>(5);
    out[threadIdx.x] = got;
}

template <int T>
__global__ void before_the_end(unsigned* out, unsigned seed, unsigned depths) {
    begin<T>();
    unsigned value = drawn(seed);
    unsigned got = three_calls<T>(value, value % depths);
    mark<T>(4);
    out[threadIdx.x] = got;
}

template <int T>
static void all() {
    for (int lanes : {8, 20, 32})
        for (int depths = 3; depths <= 8; depths++)
            for (int seed = 0; seed < 24; seed++) {
                before_a_block_barrier<T><<<1, lanes>>>(out, seed * 1000, depths), print("before_a_block_barrier", {lanes, depths, seed});
                before_a_warp_barrier<T><<<1, lanes>>>(out, seed * 1000, depths), print("before_a_warp_barrier", {lanes, depths, seed});
                before_the_end<T><<<1, lanes>>>(out, seed * 1000, depths), print("before_the_end", {lanes, depths, seed});
            }
}

int main(int argc, char** argv) {
    if (argc != 3) return 1;
    printed = !strcmp(argv[1], "marks");
    cudaDeviceSetLimit(cudaLimitStackSize, 8192);
    cudaMalloc(&out, 4096);
    cudaMemset(out, 0, 4096);
    switch (atoi(argv[2])) {
        case 0: all<0>(); break;
        case 1: all<1>(); break;
        case 2: all<2>(); break;
    }
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
