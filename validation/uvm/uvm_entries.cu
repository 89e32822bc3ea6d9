// How many entries of the fault buffer warps that touch one page make, on a real GPU: run with
// uvm_log.cpp, whose rows of faults have the number of entries that name the page in their value.
//
//   nvcc -O2 -arch=sm_90 -o uvm_entries uvm_entries.cu
//   UVM_LOG=log.csv CUDA_INJECTION64_PATH=./libuvm_log.so ./uvm_entries 5 > cases.csv
//
// Each case prints the address of the page that its warps touch.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

#include "../microbench/common.cuh"

const size_t MIB = 1 << 20;

// How the warps of a block spread over a page.
enum Way { ONE_LINE, LINE_A_WARP, LINES_OF_A_LANE, STORES };

// With `ahead` every block touches another 2 MiB first: the driver is awake when it comes to `page`.
__global__ void touch(volatile int *page, volatile int *ahead, int way, int *sink) {
    int sum = 0, warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (ahead) {
        if (threadIdx.x == 0)
            sum += ahead[0];
        if (sum == 123456789)
            *sink = sum;
        __syncthreads();
    }
    if (way == ONE_LINE && lane == 0)
        sum += page[0];
    else if (way == LINE_A_WARP && lane == 0)
        sum += page[32 * ((warp + blockIdx.x) % 32)];
    else if (way == LINES_OF_A_LANE)
        sum += page[32 * lane];
    else if (way == STORES && lane == 0)
        page[32 * ((warp + blockIdx.x) % 32)] = warp;
    if (sum == 123456789)
        *sink = sum;
}

int main(int argc, char **argv) {
    int repetitions = argc > 1 ? std::atoi(argv[1]) : 1;
    int *sink;
    CHECK(cudaMalloc(&sink, 4));
    std::printf("way,blocks,warps,awake,repetition,address\n");
    const char *ways[] = {"one line", "a line a warp", "32 lines a warp", "a store a warp"};
    struct Case {
        int way, blocks, warps;
    } cases[] = {{0, 1, 1},  {0, 1, 8},   {0, 1, 32},  {1, 1, 2},   {1, 1, 8},   {1, 1, 32}, {2, 1, 1},
                 {2, 1, 8},  {3, 1, 8},   {1, 2, 8},   {1, 8, 8},   {1, 132, 1}, {1, 132, 8}, {3, 132, 8},
                 {2, 132, 1}, {1, 264, 8}};
    for (int r = 0; r < repetitions; r++)
        for (const Case &c : cases)
            for (int awake : {0, 1}) {
                char *memory;
                CHECK(cudaMallocManaged(&memory, 4 * MIB));
                std::memset(memory, 1, 4 * MIB);
                int *page = reinterpret_cast<int *>(memory + 2 * MIB);
                int *ahead = awake ? reinterpret_cast<int *>(memory) : nullptr;
                touch<<<c.blocks, 32 * c.warps>>>(page, ahead, c.way, sink);
                CHECK(cudaDeviceSynchronize());
                std::printf("%s,%d,%d,%d,%d,%llu\n", ways[c.way], c.blocks, c.warps, awake, r,
                            (unsigned long long)(uintptr_t)page);
                CHECK(cudaFree(memory));
            }
    return 0;
}
