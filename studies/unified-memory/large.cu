// A large managed working set: GIBIBYTES of managed memory, written by the device every STRIDE
// bytes, then read back by the host at a few places.
//
//   nvcc -O2 -gencode arch=compute_75,code=compute_75 -o large large.cu
//   lockstep run -- ./large 4 4096

#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include <cuda_runtime.h>

#include "../../validation/microbench/common.cuh"

__global__ void write_places(char *base, size_t bytes, size_t stride) {
    size_t threads = (size_t)gridDim.x * blockDim.x;
    for (size_t at = ((size_t)blockIdx.x * blockDim.x + threadIdx.x) * stride; at < bytes;
         at += threads * stride)
        *reinterpret_cast<uint32_t *>(base + at) = (uint32_t)(at / stride * 2654435761u + 1);
}

int main(int argc, char **argv) {
    size_t bytes = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1) << 30;
    size_t stride = argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 4096;
    char *memory;
    CHECK(cudaMallocManaged(&memory, bytes));
    write_places<<<264, 256>>>(memory, bytes, stride);
    CHECK(cudaDeviceSynchronize());
    size_t wrong = 0;
    for (size_t place = 0; place < 64; place++) {
        size_t at = bytes / stride / 64 * place * stride;
        wrong += *reinterpret_cast<uint32_t *>(memory + at) !=
                 (uint32_t)(at / stride * 2654435761u + 1);
    }
    std::printf("%zu bytes every %zu: %zu of 64 wrong\n", bytes, stride, wrong);
    CHECK(cudaFree(memory));
    return wrong != 0;
}
