#define NEEDS_TOGETHER
#include "program.cuh"

// Shared memory that belongs to a function.
__device__ __noinline__ u32 swapped(u32 value)
{
    __shared__ u32 cells[32];
    cells[threadIdx.x] = value;
    __syncthreads();
    return cells[threadIdx.x ^ 1u];
}

extern "C" __global__ void k0(const unsigned char *input, unsigned long long *output, unsigned char *memory)
{
    output[threadIdx.x] = swapped(threadIdx.x) == (threadIdx.x ^ 1u);
}
