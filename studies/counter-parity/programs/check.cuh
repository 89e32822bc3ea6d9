// Every CUDA call is checked; a failure names its place and ends the program.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <cuda.h>
#include <cuda_runtime.h>

#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t result = (call);                                                       \
        if (result != cudaSuccess) {                                                       \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,             \
                         cudaGetErrorString(result));                                      \
            std::exit(1);                                                                  \
        }                                                                                  \
    } while (0)

// The same for calls of the driver.
#define DRIVER(call)                                                                       \
    do {                                                                                   \
        CUresult result = (call);                                                          \
        if (result != CUDA_SUCCESS) {                                                      \
            std::fprintf(stderr, "%s:%d: %s: error %d\n", __FILE__, __LINE__, #call, result); \
            std::exit(1);                                                                  \
        }                                                                                  \
    } while (0)

inline double seconds() {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec + now.tv_nsec * 1e-9;
}
