// What decides how long a kernel takes that touches memory which is already on the device: what
// came before it, or the memory? Real GPU, 20 repetitions:
//
//   nvcc -O2 -arch=sm_90 -o uvm_resident uvm_resident.cu && ./uvm_resident 20 > uvm_resident.csv
//
// Each row has the time between events around the kernel, and the time from the first block's
// beginning to the last one's end on the device's own clock.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

#include "../microbench/common.cuh"
#include "touch.cuh"

const size_t KIB = 1024, MIB = 1024 * KIB;

static __device__ uint64_t now() {
    uint64_t time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
    return time;
}

__global__ void touch_all(const char *base, size_t bytes, size_t stride, int *sink,
                          unsigned long long *first, unsigned long long *last) {
    if (threadIdx.x == 0)
        atomicMin(first, now());
    int sum = read_all(base, bytes, stride);
    if (sum == 123456789)
        *sink = sum;
    __syncthreads();
    if (threadIdx.x == 0)
        atomicMax(last, now());
}

static int *sink;
static unsigned long long *times;
static cudaEvent_t begin_event, end_event;

static void measure(const char *before, const char *memory_name, const char *memory, size_t mib,
                    int repetition) {
    float milliseconds = 0;
    CHECK(cudaEventRecord(begin_event));
    touch_all<<<1056, 256>>>(memory, mib * MIB, 128, sink, times, times + 1);
    CHECK(cudaEventRecord(end_event));
    CHECK(cudaEventSynchronize(end_event));
    CHECK(cudaEventElapsedTime(&milliseconds, begin_event, end_event));
    unsigned long long seen[2], fresh[2] = {~0ull, 0};
    CHECK(cudaMemcpy(seen, times, sizeof seen, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(times, fresh, sizeof fresh, cudaMemcpyHostToDevice));
    std::printf("%s,%s %zu MiB,%d,%.3f,%.3f\n", before, memory_name, mib, repetition,
                milliseconds * 1000, (seen[1] - seen[0]) / 1000.0);
}

static void wait_us(double microseconds) {
    auto until = std::chrono::steady_clock::now() +
                 std::chrono::nanoseconds((long long)(microseconds * 1000));
    while (std::chrono::steady_clock::now() < until)
        ;
}

int main(int argc, char **argv) {
    int repetitions = argc > 1 ? std::atoi(argv[1]) : 1;
    CHECK(cudaMalloc(&sink, 4));
    CHECK(cudaMalloc(&times, 16));
    unsigned long long fresh[2] = {~0ull, 0};
    CHECK(cudaMemcpy(times, fresh, sizeof fresh, cudaMemcpyHostToDevice));
    CHECK(cudaEventCreate(&begin_event));
    CHECK(cudaEventCreate(&end_event));
    char *plain, *managed, *host = static_cast<char *>(std::malloc(64 * MIB));
    CHECK(cudaMalloc(&plain, 64 * MIB));
    CHECK(cudaMemset(plain, 1, 64 * MIB));
    CHECK(cudaMallocManaged(&managed, 64 * MIB));
    cudaMemLocation device = {cudaMemLocationTypeDevice, 0}, cpu = {cudaMemLocationTypeHost, 0};
    std::printf("before,what,repetition,events_us,inside_us\n");
    for (int r = 0; r < repetitions; r++) {
        for (size_t mib : {2, 8, 64}) {
            measure("plain memory once", "plain", plain, mib, r);
            measure("plain memory again", "plain", plain, mib, r);
        }
        for (double idle : {10.0, 100.0, 1000.0, 5000.0, 20000.0}) {
            char name[64];
            std::snprintf(name, sizeof name, "host busy for %g us", idle);
            wait_us(idle);
            measure(name, "plain", plain, 2, r);
        }
        write_all<<<1056, 256>>>(plain, 64 * MIB, 128);
        CHECK(cudaDeviceSynchronize());
        measure("another kernel", "plain", plain, 2, r);
        std::memset(host, r, 64 * MIB);
        measure("host wrote 64 MiB", "plain", plain, 2, r);
        for (size_t mib : {2, 8, 64, 2, 8, 64}) {
            std::memset(managed, r, 64 * MIB);
            CHECK(cudaMemPrefetchAsync(managed, mib * MIB, device, 0, 0));
            CHECK(cudaDeviceSynchronize());
            measure("prefetched", "managed", managed, mib, r);
            measure("touched before", "managed", managed, mib, r);
            CHECK(cudaMemPrefetchAsync(managed, mib * MIB, cpu, 0, 0));
            CHECK(cudaDeviceSynchronize());
        }
        std::memset(managed, r, 64 * MIB);
        for (size_t mib : {2, 2, 8, 8, 64, 64}) {
            CHECK(cudaMemPrefetchAsync(managed, mib * MIB, device, 0, 0));
            CHECK(cudaDeviceSynchronize());
            measure("prefetched in turn", "managed", managed, mib, r);
            CHECK(cudaMemPrefetchAsync(managed, mib * MIB, cpu, 0, 0));
            CHECK(cudaDeviceSynchronize());
        }
    }
    return 0;
}
