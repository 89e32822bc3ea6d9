// What the programs of the ranking study share: which questions are asked, what is printed, and the comparison of results.
#pragma once

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include <cuda_runtime.h>

#include "../../validation/microbench/common.cuh"

static const char* chosen = nullptr;
static int launches = 0;
static bool failed = false;

static bool asked(const char* question) { return !chosen || std::strcmp(chosen, question) == 0; }

static void say(const char* question, const std::string& variant) {
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    std::printf("%d,%s,%s\n", launches++, question, variant.c_str());
    std::fflush(stdout);
}

static float* filled(size_t count) {
    std::vector<float> host(count);
    for (size_t i = 0; i < count; i++) host[i] = float(i * 2654435761u % 1024) * 0.001f;
    float* device;
    CHECK(cudaMalloc(&device, count * sizeof(float)));
    CHECK(cudaMemcpy(device, host.data(), count * sizeof(float), cudaMemcpyHostToDevice));
    return device;
}

// The sum of what a variant wrote; all variants of a question must agree.
static void compare(const char* question, const float* device, size_t count, double& reference, bool first) {
    std::vector<float> host(count);
    CHECK(cudaMemcpy(host.data(), device, count * sizeof(float), cudaMemcpyDeviceToHost));
    double sum = 0;
    for (float value : host) sum += value;
    if (first) reference = sum;
    double off = sum - reference;
    if (off < 0) off = -off;
    if (off > 1e-3 * (reference < 0 ? -reference : reference) + 1e-3) {
        std::printf("MISMATCH in %s: %g, not %g\n", question, sum, reference);
        failed = true;
    }
    CHECK(cudaMemset(const_cast<float*>(device), 0, count * sizeof(float)));
}
