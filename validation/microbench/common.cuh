// What the microbenchmarks share. Each prints lines `name,parameter,value,unit`, the median of five repetitions.
#pragma once

#include <algorithm>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                                        \
    do {                                                                                                   \
        cudaError_t status_ = (call);                                                                      \
        if (status_ != cudaSuccess) {                                                                      \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, cudaGetErrorString(status_)); \
            std::exit(2);                                                                                  \
        }                                                                                                  \
    } while (0)

constexpr int REPETITIONS = 5;

inline std::string text(const char* format, ...) {
    char buffer[200];
    va_list arguments;
    va_start(arguments, format);
    std::vsnprintf(buffer, sizeof buffer, format, arguments);
    va_end(arguments);
    return buffer;
}

inline double median(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];
}

inline void row(const char* name, const std::string& parameter, double value, const char* unit) {
    std::printf("%s,%s,%.4f,%s\n", name, parameter.c_str(), value, unit);
    std::fflush(stdout);
}

// One word of 64 bits on the device, in which a kernel leaves how many cycles it took.
struct Clock {
    long long* cycles;
    Clock() { CHECK(cudaMalloc(&cycles, 4096)); }
    ~Clock() { cudaFree(cycles); }
    long long read() const {
        long long value;
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(&value, cycles, sizeof value, cudaMemcpyDeviceToHost));
        return value;
    }
    // The median over repetitions of what `launch` leaves; the first run warms caches and does not count.
    double median_of(const std::function<void(long long*)>& launch) const {
        std::vector<double> values;
        for (int repetition = 0; repetition <= REPETITIONS; repetition++) {
            launch(cycles);
            CHECK(cudaGetLastError());
            if (repetition > 0) values.push_back(double(read()));
            else read();
        }
        return median(values);
    }
};

// The time of `work` between two events, in milliseconds.
inline float elapsed(cudaEvent_t begin, cudaEvent_t end, const std::function<void()>& work) {
    CHECK(cudaEventRecord(begin));
    work();
    CHECK(cudaEventRecord(end));
    CHECK(cudaEventSynchronize(end));
    float time;
    CHECK(cudaEventElapsedTime(&time, begin, end));
    return time;
}

// The median time of `work` between two events, in milliseconds.
inline double milliseconds(const std::function<void()>& work) {
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    std::vector<double> values;
    for (int repetition = 0; repetition <= REPETITIONS; repetition++) {
        float time = elapsed(begin, end, work);
        if (repetition > 0) values.push_back(time);
    }
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    return median(values);
}

// The SM that a thread is on.
static __device__ inline unsigned sm() {
    unsigned number;
    asm volatile("mov.u32 %0,%%smid;" : "=r"(number));
    return number;
}

// The words of a cycle through `lines` lines of `words` words, each the index of the next; lines are `stride` lines apart.
inline std::vector<unsigned> cycle(int lines, unsigned words, bool random, unsigned stride = 1) {
    std::vector<unsigned> order(lines), next(size_t(lines) * words * stride, 0);
    for (int i = 0; i < lines; i++) order[i] = i;
    unsigned state = 12345;
    if (random)
        for (int i = lines - 1; i > 0; i--) {
            state = state * 1664525u + 1013904223u;
            std::swap(order[i], order[(state >> 8) % i]);
        }
    for (int i = 0; i < lines; i++) next[size_t(order[i]) * stride * words] = order[(i + 1) % lines] * stride * words;
    return next;
}

// Leaves how many cycles a block takes for `body(i)`, i below `steps`; the first of two rounds brings code and data.
template <class Body>
__device__ __forceinline__ void time_second_round(long long* out, int steps, Body body) {
    for (int round = 0; round < 2; round++) {
        __syncthreads();
        long long begin = clock64();
#pragma unroll 1
        for (int i = 0; i < steps; i++) body(i);
        __syncthreads();
        long long end = clock64();
        if (threadIdx.x == 0) out[0] = end - begin;
    }
}

// Launches blocks of 32 threads in clusters of any size that the card has.
template <class... Parameters, class... Arguments>
cudaError_t launch_clusters(void (*kernel)(Parameters...), unsigned blocks, unsigned cluster, int shared, Arguments... arguments) {
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = cluster;
    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(32);
    config.dynamicSmemBytes = shared;
    config.attrs = &attribute;
    config.numAttrs = 1;
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    return cudaLaunchKernelEx(&config, kernel, arguments...);
}

// Keeps the card busy until its clock is up.
static __global__ void spin(long long cycles) {
    long long begin = clock64();
    while (clock64() - begin < cycles) {}
}

inline void warm_up() {
    spin<<<1, 1>>>(400000000ll);
    CHECK(cudaDeviceSynchronize());
}
