// Touches of whole regions, as several programs of this folder make them.
#pragma once

#include <cstddef>

// Reads a word every `stride` bytes, all threads of the grid together; the sum, so that nothing is left out.
static __device__ __forceinline__ int read_all(const char *base, size_t bytes, size_t stride) {
    size_t threads = (size_t)gridDim.x * blockDim.x;
    int sum = 0;
    for (size_t at = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * stride; at < bytes;
         at += threads * stride)
        sum += *reinterpret_cast<const volatile int *>(base + at);
    return sum;
}

// Writes a word every `stride` bytes.
static __global__ void write_all(char *base, size_t bytes, size_t stride) {
    size_t threads = (size_t)gridDim.x * blockDim.x;
    for (size_t at = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * stride; at < bytes;
         at += threads * stride)
        *reinterpret_cast<volatile int *>(base + at) = 1;
}
