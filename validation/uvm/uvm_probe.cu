// What managed memory costs on a real GPU. At most 256 MiB are allocated at a time.
//
//   nvcc -O2 -arch=sm_90 -o uvm_probe uvm_probe.cu && ./uvm_probe 20 > uvm_probe_MACHINE.csv
//
// Each repetition has other 2 MiB of the device's memory: what a touch without a fault takes
// depends on where in L2 it is answered. `./uvm_probe 20 first` measures first touches alone.

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

#include "../microbench/common.cuh"
#include "touch.cuh"

const size_t KIB = 1024, MIB = 1024 * KIB;

const int MOST_TOUCHES = 16;

struct Offsets {
    uint32_t at[MOST_TOUCHES];
};

// One thread touches addresses in turn and notes how long each takes. Where to touch is a parameter
// and known before the clock is read: what is timed reads nothing but what it touches. What is noted
// has arrived before the clock is read again: the fence of a write waits for nothing else.
__global__ void touch_in_turn(char *base, const Offsets offsets, int count, bool write,
                              uint64_t *took, int *sink) {
    int sum = 0;
    took[0] = 0;
    __threadfence_system();
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        uint64_t before, after;
        volatile int *at = reinterpret_cast<volatile int *>(base + offsets.at[i]);
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(before) : "l"(at) : "memory");
        if (write) {
            *at = i;
            __threadfence_system();
        } else {
            sum += *at;
        }
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(after) : "r"(sum) : "memory");
        took[i] = after - before;
        __threadfence_system();
    }
    *sink = sum;
}

__global__ void touch_all(const char *base, size_t bytes, size_t stride, int *sink) {
    int sum = read_all(base, bytes, stride);
    if (sum == 123456789)
        *sink = sum;
}

// Touches 4 KiB pages in a scrambled order.
__global__ void touch_scrambled(const char *base, size_t pages, int *sink) {
    size_t threads = (size_t)gridDim.x * blockDim.x;
    int sum = 0;
    for (size_t page = (size_t)blockIdx.x * blockDim.x + threadIdx.x; page < pages; page += threads) {
        size_t scrambled = (page * 2654435761u) % pages; // pages is a power of two
        sum += *reinterpret_cast<const volatile int *>(base + scrambled * 4096);
    }
    if (sum == 123456789)
        *sink = sum;
}

static int *sink;
static uint64_t *took;
static cudaEvent_t begin_event, end_event;

static void in_turn(const char *name, int repetition, bool host_writes, bool write,
                    const uint32_t *order, int count) {
    char *memory;
    CHECK(cudaMallocManaged(&memory, 4 * MIB));
    if (host_writes)
        std::memset(memory, 1, 4 * MIB);
    Offsets offsets = {};
    std::memcpy(offsets.at, order, count * sizeof(uint32_t));
    touch_in_turn<<<1, 1>>>(memory, offsets, count, write, took, sink);
    CHECK(cudaDeviceSynchronize());
    uint64_t times[64];
    CHECK(cudaMemcpy(times, took, count * sizeof(uint64_t), cudaMemcpyDeviceToHost));
    for (int i = 0; i < count; i++)
        std::printf("%s,offset %u KiB (touch %d),%d,%llu,ns\n", name, order[i] / 1024, i, repetition,
                    (unsigned long long)times[i]);
    CHECK(cudaFree(memory));
}

template <typename F> static float timed(F launch) {
    float milliseconds = 0;
    CHECK(cudaEventRecord(begin_event));
    launch();
    CHECK(cudaEventRecord(end_event));
    CHECK(cudaEventSynchronize(end_event));
    CHECK(cudaEventElapsedTime(&milliseconds, begin_event, end_event));
    return milliseconds;
}

// Takes 2 MiB of the device's memory away for good, so that what comes next lies elsewhere.
static void take_away() {
    char *kept;
    cudaMemLocation device = {cudaMemLocationTypeDevice, 0};
    CHECK(cudaMallocManaged(&kept, 2 * MIB));
    std::memset(kept, 1, 2 * MIB);
    CHECK(cudaMemPrefetchAsync(kept, 2 * MIB, device, 0, 0));
    CHECK(cudaDeviceSynchronize());
}

static double host_us() {
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::micro>(now).count();
}

int main(int argc, char **argv) {
    int repetitions = argc > 1 ? std::atoi(argv[1]) : 1;
    CHECK(cudaMalloc(&sink, 4));
    CHECK(cudaMalloc(&took, 64 * sizeof(uint64_t)));
    CHECK(cudaEventCreate(&begin_event));
    CHECK(cudaEventCreate(&end_event));
    touch_all<<<1, 1>>>(nullptr, 0, 128, sink);
    CHECK(cudaDeviceSynchronize());
    std::printf("name,parameter,repetition,value,unit\n");
    const uint32_t K = 1024;
    uint32_t doubling[] = {0, 4 * K, 64 * K, 128 * K, 192 * K, 256 * K, 512 * K, 1024 * K, 1536 * K, 2048 * K, 2112 * K};
    uint32_t odd_first[] = {64 * K, 192 * K, 320 * K, 448 * K, 0, 128 * K, 256 * K, 512 * K, 576 * K, 1024 * K, 1088 * K};
    uint32_t middle[] = {36 * K, 32 * K, 60 * K, 100 * K, 2048 * K + 20 * K, 2048 * K};
    for (int r = 0; r < repetitions; r++) {
        in_turn("first_touch_read_host_written", r, true, false, doubling, 11);
        in_turn("first_touch_write_host_written", r, true, true, doubling, 11);
        in_turn("first_touch_read_never_written", r, false, false, doubling, 11);
        in_turn("first_touch_write_never_written", r, false, true, doubling, 11);
        in_turn("first_touch_odd_blocks", r, true, false, odd_first, 11);
        in_turn("first_touch_middle_of_block", r, true, false, middle, 6);
        take_away();
    }
    if (argc > 2 && !std::strcmp(argv[2], "first"))
        return 0;
    struct Case {
        size_t mib, stride;
        int blocks, threads;
    } cases[] = {{64, 128, 1056, 256}, {64, 4096, 64, 256}, {64, 65536, 4, 256}, {64, 128, 132, 1024},
                 {64, 4096, 1, 256},   {64, 4096, 1, 32},   {2, 4096, 2, 256},   {2, 128, 64, 256},
                 {8, 4096, 8, 256},    {8, 128, 256, 256},  {16, 128, 512, 256}, {32, 128, 1056, 256},
                 {32, 4096, 32, 256},  {64, 2097152, 1, 32}};
    for (int r = 0; r < repetitions; r++) {
        for (const Case &c : cases) {
            char *memory;
            CHECK(cudaMallocManaged(&memory, c.mib * MIB));
            std::memset(memory, 1, c.mib * MIB);
            float ms = timed([&] { touch_all<<<c.blocks, c.threads>>>(memory, c.mib * MIB, c.stride, sink); });
            std::printf("touch,%zu MiB stride %zu B %dx%d,%d,%.3f,us\n", c.mib, c.stride, c.blocks,
                        c.threads, r, ms * 1000);
            ms = timed([&] { touch_all<<<c.blocks, c.threads>>>(memory, c.mib * MIB, c.stride, sink); });
            std::printf("touch_again,%zu MiB stride %zu B %dx%d,%d,%.3f,us\n", c.mib, c.stride,
                        c.blocks, c.threads, r, ms * 1000);
            CHECK(cudaFree(memory));
        }
        char *memory;
        size_t bytes = 64 * MIB;
        CHECK(cudaMallocManaged(&memory, bytes));
        float ms = timed([&] { write_all<<<1056, 256>>>(memory, bytes, 128); });
        std::printf("write_never_written,64 MiB stride 128 B,%d,%.3f,us\n", r, ms * 1000);
        double before = host_us();
        volatile char *host = memory;
        host[0] = 2;
        double first = host_us();
        host[4096] = 2;
        double second = host_us();
        host[65536] = 2;
        double third = host_us();
        host[2 * MIB] = 2;
        double fourth = host_us();
        std::printf("host_touch,first page,%d,%.3f,us\n", r, first - before);
        std::printf("host_touch,next page,%d,%.3f,us\n", r, second - first);
        std::printf("host_touch,next 64 KiB block,%d,%.3f,us\n", r, third - second);
        std::printf("host_touch,next 2 MiB region,%d,%.3f,us\n", r, fourth - third);
        before = host_us();
        for (size_t at = 0; at < bytes; at += 4096)
            host[at] = 3;
        std::printf("host_touch,64 MiB every page,%d,%.3f,us\n", r, host_us() - before);
        cudaMemLocation device = {cudaMemLocationTypeDevice, 0}, cpu = {cudaMemLocationTypeHost, 0};
        for (size_t mib : {2, 8, 64}) {
            ms = timed([&] { CHECK(cudaMemPrefetchAsync(memory, mib * MIB, device, 0, 0)); });
            std::printf("prefetch_to_device,%zu MiB,%d,%.3f,us\n", mib, r, ms * 1000);
            ms = timed([&] { touch_all<<<1056, 256>>>(memory, mib * MIB, 128, sink); });
            std::printf("touch_prefetched,%zu MiB stride 128 B,%d,%.3f,us\n", mib, r, ms * 1000);
            ms = timed([&] { CHECK(cudaMemPrefetchAsync(memory, mib * MIB, cpu, 0, 0)); });
            std::printf("prefetch_to_host,%zu MiB,%d,%.3f,us\n", mib, r, ms * 1000);
        }
        ms = timed([&] { touch_scrambled<<<64, 256>>>(memory, bytes / 4096, sink); });
        std::printf("touch_scrambled,64 MiB every page,%d,%.3f,us\n", r, ms * 1000);
        CHECK(cudaFree(memory));
    }
    return 0;
}
