// What the host takes to serve one batch of faults, by what is in it, on a real GPU.
//
//   nvcc -O2 -arch=sm_90 -o uvm_service uvm_service.cu && ./uvm_service 20 > uvm_service.csv
//
// Warps, one a block, meet and touch pages of one 2 MiB at the same time: the first `pages` of them
// every `stride`, each page by as many warps as come out. With `awake` another fault was served just
// before: nobody has to be woken, and the host finds what is written when it looks. Of each
// repetition are noted when the first warp went on, how many did within 4 us of it (those that the
// first batch helped), and when the last did.

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <cuda_runtime.h>

#include "../microbench/common.cuh"

const size_t KIB = 1024, MIB = 1024 * KIB, PAGE = 4 * KIB;
const int MOST = 1056;

static __device__ uint64_t now() {
    uint64_t time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
    return time;
}

static __device__ void wait_for(volatile int *flag, int value) {
    while (*flag < value)
        ;
}

// `meet` has two words, zero at first.
__global__ void touch(char *base, int pages, size_t stride, char *wake, int *meet, uint64_t *begin,
                      uint64_t *end) {
    if (threadIdx.x != 0)
        return;
    volatile char *own = base + blockIdx.x % pages * stride;
    atomicAdd(meet, 1);
    wait_for(meet, gridDim.x);
    if (blockIdx.x == 0) {
        char woken = wake ? *reinterpret_cast<volatile char *>(wake) : 0;
        if (woken != 123)
            atomicExch(meet + 1, 1);
    }
    wait_for(meet + 1, 1);
    begin[blockIdx.x] = now();
    if (*own != 123)
        end[blockIdx.x] = now();
}

struct Case {
    const char *what;
    int warps, pages;
    size_t stride;
    int pause_microseconds;
};

int main(int argc, char **argv) {
    int repetitions = argc > 1 ? std::atoi(argv[1]) : 1;
    int *meet;
    uint64_t *times;
    CHECK(cudaMalloc(&meet, 2 * sizeof *meet));
    CHECK(cudaMalloc(&times, 2 * MOST * sizeof *times));
    std::vector<Case> cases;
    for (int warps : {1, 2, 4, 8, 16, 32, 64, 132, 264, 528, 1056})
        cases.push_back({"one page", warps, 1, PAGE, 1000});
    for (int warps : {16, 64, 132, 264, 1056})
        cases.push_back({"16 pages of a block", warps, 16, PAGE, 1000});
    for (int pages : {2, 4, 8, 16, 32, 64, 132})
        cases.push_back({"pages side by side", pages, pages, PAGE, 1000});
    for (int pages : {2, 4, 8, 16, 32, 64, 132})
        cases.push_back({"every third page", pages, pages, 3 * PAGE, 1000});
    for (int pages : {2, 4, 8, 16})
        cases.push_back({"every second block", pages, pages, 128 * KIB, 1000});
    for (int pages : {2, 3, 4})
        cases.push_back({"2 MiB apart", pages, pages, 2 * MIB, 1000});
    for (int pause : {20, 200, 5000, 20000, 40000})
        for (int warps : {1, 264})
            cases.push_back({"one page after a pause", warps, 1, PAGE, pause});
    std::printf("what,warps,pages,stride,pause_us,awake,repetition,first_ns,with_first,last_ns\n");
    for (const Case &c : cases)
        for (int awake : {0, 1}) {
            // Two regions a repetition, of 2 MiB or what the pages take.
            size_t region = std::max<size_t>(2 * MIB, c.pages * c.stride / (2 * MIB) * 2 * MIB);
            char *memory;
            CHECK(cudaMallocManaged(&memory, (repetitions + 1) * (region + 64 * KIB) + 2 * MIB));
            std::memset(memory, 1, (repetitions + 1) * (region + 64 * KIB) + 2 * MIB);
            char *wakes = memory + (repetitions + 1) * region;
            // The first time warms up.
            for (int r = 0; r <= repetitions; r++) {
                CHECK(cudaMemset(meet, 0, 2 * sizeof *meet));
                CHECK(cudaDeviceSynchronize());
                std::this_thread::sleep_for(std::chrono::microseconds(c.pause_microseconds));
                touch<<<c.warps, 32>>>(memory + r * region, c.pages, c.stride,
                                       awake ? wakes + r * 64 * KIB : nullptr, meet, times,
                                       times + MOST);
                CHECK(cudaDeviceSynchronize());
                uint64_t host[2 * MOST];
                CHECK(cudaMemcpy(host, times, sizeof host, cudaMemcpyDeviceToHost));
                uint64_t *ends = host + MOST;
                uint64_t begin = *std::min_element(host, host + c.warps);
                uint64_t first = *std::min_element(ends, ends + c.warps);
                uint64_t last = *std::max_element(ends, ends + c.warps);
                int with = (int)std::count_if(ends, ends + c.warps,
                                              [&](uint64_t end) { return end < first + 4000; });
                if (r > 0)
                    std::printf("%s,%d,%d,%zu,%d,%d,%d,%llu,%d,%llu\n", c.what, c.warps, c.pages,
                                c.stride, c.pause_microseconds, awake, r,
                                (unsigned long long)(first - begin), with,
                                (unsigned long long)(last - begin));
            }
            CHECK(cudaFree(memory));
        }
    return 0;
}
