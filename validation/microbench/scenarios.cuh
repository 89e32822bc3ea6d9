// What the scenarios around kernels share: the kernels that they launch, and the two clocks.
#pragma once

#include <chrono>
#include <cstring>

#include <cooperative_groups.h>

#include "common.cuh"

constexpr size_t KIB = 1 << 10, MIB = 1 << 20;
constexpr int STREAMS = 16;

static int repetitions = 15;
static const char* only = "";

// ---- what is timed ----

__global__ void empty() {}

__global__ void work(float* words, int count, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float value = words[i];
    for (int k = 0; k < rounds; k++) value = value * 0.999f + 0.5f;
    words[i] = value;
}

__global__ void add_one(float* words, size_t count) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) words[i] += 1.0f;
}

__global__ void read_all(const float* words, size_t count, float* out) {
    float sum = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) sum += words[i];
    if (sum == 12345.0f) *out = sum;
}

__global__ void count_at(int* counters, int apart, int rounds) {
    int* own = counters + (blockIdx.x % 32) * apart;
    for (int i = 0; i < rounds; i++) atomicAdd(own, int(threadIdx.x) + 1);
}

__global__ void meet_grid(int* rounds, int count) {
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    for (int i = 0; i < count; i++) {
        if (grid.thread_rank() == 0) *rounds += 1;
        grid.sync();
    }
}

// A barrier of our own: all blocks are resident, and the counter begins at zero.
__global__ void meet_by_counter(unsigned* counter, int count) {
    for (unsigned i = 1; i <= unsigned(count); i++) {
        __syncthreads();
        if (threadIdx.x == 0) {
            atomicAdd(counter, 1u);
            while (*static_cast<volatile unsigned*>(counter) < gridDim.x * i) {}
        }
        __syncthreads();
    }
}

struct LargeArgument {
    int words[1000];
};
__global__ void takes_much(LargeArgument argument, int* out) {
    if (argument.words[threadIdx.x] == 77) *out = 1;
}

// Kernels that were never launched: one for each repetition.
template <int NUMBER>
__global__ void never_launched(int* out) {
    if (threadIdx.x == NUMBER + 1000) *out = NUMBER;
}
template <int NUMBER>
__global__ void never_launched_long(unsigned* out) {
    unsigned value = *out;
#pragma unroll
    for (int i = 0; i < 2000; i++) value = (value ^ value >> (i % 11 + 2)) * (2u * i + NUMBER * 65537u + 1u);
    if (value == 0x12345u) *out = value;
}

// ---- clocks ----

static cudaEvent_t begin_event, end_event;

static void print(const char* name, const std::string& parameter, const char* clock, std::vector<double> values) {
    std::sort(values.begin(), values.end());
    std::printf("%s,%s,%s,%.3f,%.3f,%.3f,%zu\n", name, parameter.c_str(), clock, values[values.size() / 2], values.front(), values.back(), values.size());
    std::fflush(stdout);
}

static bool asked(const char* name) { return std::strstr(name, only) != nullptr; }

using Step = std::function<void()>;

static double timed_by_events(const Step& step) {
    CHECK(cudaDeviceSynchronize());
    return 1000.0 * elapsed(begin_event, end_event, step);
}

static double timed_by_host(const Step& step) {
    auto begin = std::chrono::steady_clock::now();
    step();
    return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin).count();
}

static void device(const char* name, const std::string& parameter, const Step& step, const Step& before = [] {}) {
    if (!asked(name)) return;
    std::vector<double> values;
    for (int i = 0; i <= repetitions; i++) {
        before();
        double time = timed_by_events(step);
        if (i > 0) values.push_back(time);
    }
    print(name, parameter, "device", values);
}

// `after` is not timed: it undoes or waits.
static void host(const char* name, const std::string& parameter, const Step& step, const Step& after = [] {}, int calls = 1) {
    if (!asked(name)) return;
    std::vector<double> values;
    for (int i = 0; i <= repetitions; i++) {
        CHECK(cudaDeviceSynchronize());
        double time = timed_by_host([&] {
            for (int call = 0; call < calls; call++) step();
        });
        after();
        if (i > 0) values.push_back(time / calls);
    }
    print(name, parameter, "host", values);
}
