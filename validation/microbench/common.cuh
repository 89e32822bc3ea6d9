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

// The median time of `work` between two events, in milliseconds.
inline double milliseconds(const std::function<void()>& work) {
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    std::vector<double> values;
    for (int repetition = 0; repetition <= REPETITIONS; repetition++) {
        CHECK(cudaEventRecord(begin));
        work();
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float time;
        CHECK(cudaEventElapsedTime(&time, begin, end));
        if (repetition > 0) values.push_back(time);
    }
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    return median(values);
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
