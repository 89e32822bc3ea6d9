// How the driver serves far faults that many SMs raise at once, on a real GPU: when which pages of
// a region arrive. Each warp notes the time at which the page that it touched was there; pages that
// arrive together were replayed together.
//
//   nvcc -O2 -arch=sm_90 -o uvm_batches uvm_batches.cu && ./uvm_batches 4 > uvm_batches.csv
//
// A second number chooses one pattern, from 0 on.

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <set>
#include <vector>

#include <cuda_runtime.h>

#include "../microbench/common.cuh"

const size_t KIB = 1024, MIB = 1024 * KIB;
// Arrivals that are closer than this belong to one replay.
const uint64_t TOGETHER_NS = 2500;

static __device__ uint64_t now() {
    uint64_t time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
    return time;
}

// Every thread touches addresses that are `stride` apart; the first thread of each page notes when
// it had its value.
__global__ void touch(const char *base, size_t bytes, size_t stride, uint64_t *when, int *sink) {
    size_t threads = (size_t)gridDim.x * blockDim.x;
    size_t thread = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    int sum = 0;
    if (thread == 0)
        when[bytes / 4096] = now();
    for (size_t at = thread * stride; at < bytes; at += threads * stride) {
        sum += *reinterpret_cast<const volatile int *>(base + at);
        uint64_t time = now() + (sum == 123456789);
        if (at % 4096 == 0)
            when[at / 4096] = time;
    }
    if (sum == 123456789)
        *sink = sum;
}

// A stencil by tiles of 16 x 16 that reads one array and writes two. A block notes when it had what
// it reads and when its stores were done.
__global__ void tiles(const float *image, float *first, float *second, int size, uint64_t *loaded,
                      uint64_t *stored) {
    int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
    int at = y * size + x, block = blockIdx.y * gridDim.x + blockIdx.x;
    if (block == 0 && threadIdx.x == 0 && threadIdx.y == 0)
        loaded[gridDim.x * gridDim.y] = now();
    float own = image[at];
    float others = image[y > 0 ? at - size : at] + image[y < size - 1 ? at + size : at] +
                   image[x > 0 ? at - 1 : at] + image[x < size - 1 ? at + 1 : at];
    if (own + others == 123456789.0f)
        first[0] = own;
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0)
        loaded[block] = now();
    first[at] = own + others;
    second[at] = own - others;
    __threadfence_system();
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0)
        stored[block] = now();
}

struct Arrival {
    uint64_t time;
    size_t page;
    bool operator<(const Arrival &other) const { return time < other.time; }
};

// One row for each replay: when, how many of the marks arrived, and how far they are spread.
static void report(const char *what, int repetition, uint64_t begin, std::vector<Arrival> arrivals) {
    std::sort(arrivals.begin(), arrivals.end());
    for (size_t first = 0; first < arrivals.size();) {
        size_t end = first + 1;
        while (end < arrivals.size() && arrivals[end].time - arrivals[end - 1].time < TOGETHER_NS)
            end++;
        std::set<size_t> blocks, regions;
        size_t least = arrivals[first].page, most = least;
        for (size_t i = first; i < end; i++) {
            blocks.insert(arrivals[i].page / 16);
            regions.insert(arrivals[i].page / 512);
            least = std::min(least, arrivals[i].page);
            most = std::max(most, arrivals[i].page);
        }
        std::printf("%s,%d,%.3f,%.3f,%zu,%zu,%zu,%zu,%zu\n", what, repetition,
                    (arrivals[first].time - begin) / 1000.0, (arrivals[end - 1].time - begin) / 1000.0,
                    end - first, blocks.size(), regions.size(), least, most);
        first = end;
    }
}

int main(int argc, char **argv) {
    int repetitions = argc > 1 ? std::atoi(argv[1]) : 1;
    int only = argc > 2 ? std::atoi(argv[2]) : -1;
    int *sink;
    uint64_t *when, *stored;
    CHECK(cudaMalloc(&sink, 4));
    CHECK(cudaMalloc(&when, 16 * MIB));
    CHECK(cudaMalloc(&stored, 16 * MIB));
    std::printf("pattern,repetition,first_us,last_us,marks,blocks,regions,lowest_page,highest_page\n");
    struct Case {
        size_t mib, stride;
        int blocks, threads;
    } cases[] = {{64, 128, 1056, 256}, {64, 4096, 64, 256}, {64, 65536, 4, 256}, {64, 4096, 1, 256},
                 {8, 4096, 8, 256},    {8, 128, 256, 256},  {2, 4096, 2, 256},   {64, 128, 132, 1024}};
    // One round more than asked for warms up, but not for a single one.
    for (int r = repetitions > 1 ? -1 : 0; r < repetitions; r++) {
        int number = 0;
        for (const Case &c : cases) {
            if (only >= 0 && number++ != only)
                continue;
            size_t bytes = c.mib * MIB, pages = bytes / 4096;
            char *memory;
            CHECK(cudaMallocManaged(&memory, bytes));
            std::memset(memory, 1, bytes);
            CHECK(cudaMemset(when, 0, (pages + 1) * 8));
            touch<<<c.blocks, c.threads>>>(memory, bytes, c.stride, when, sink);
            CHECK(cudaDeviceSynchronize());
            std::vector<uint64_t> times(pages + 1);
            CHECK(cudaMemcpy(times.data(), when, (pages + 1) * 8, cudaMemcpyDeviceToHost));
            std::vector<Arrival> arrivals;
            for (size_t page = 0; page < pages; page++)
                if (times[page])
                    arrivals.push_back({times[page], page});
            char what[100];
            std::snprintf(what, sizeof what, "%zu MiB stride %zu B %dx%d", c.mib, c.stride, c.blocks, c.threads);
            if (r >= 0)
                report(what, r, times[pages], arrivals);
            CHECK(cudaFree(memory));
        }
        for (int size : {512, 1024}) {
            if (only >= 0 && number++ != only)
                continue;
            size_t bytes = (size_t)size * size * 4, count = (size_t)(size / 16) * (size / 16);
            float *image, *first, *second;
            CHECK(cudaMallocManaged(&image, bytes));
            CHECK(cudaMallocManaged(&first, bytes));
            CHECK(cudaMallocManaged(&second, bytes));
            std::memset(image, 1, bytes), std::memset(first, 1, bytes), std::memset(second, 1, bytes);
            tiles<<<dim3(size / 16, size / 16), dim3(16, 16)>>>(image, first, second, size, when, stored);
            CHECK(cudaDeviceSynchronize());
            std::vector<uint64_t> loads(count + 1), stores(count);
            CHECK(cudaMemcpy(loads.data(), when, (count + 1) * 8, cudaMemcpyDeviceToHost));
            CHECK(cudaMemcpy(stores.data(), stored, count * 8, cudaMemcpyDeviceToHost));
            std::vector<Arrival> loaded, done;
            // The first page that a block reads stands for it.
            for (size_t block = 0; block < count; block++) {
                size_t page = block / (size / 16) * 16 * size * 4 / 4096;
                loaded.push_back({loads[block], page});
                done.push_back({stores[block], page});
            }
            char what[100];
            if (r >= 0) {
                std::snprintf(what, sizeof what, "tiles of %d x %d loaded", size, size);
                report(what, r, loads[count], loaded);
                std::snprintf(what, sizeof what, "tiles of %d x %d stored", size, size);
                report(what, r, loads[count], done);
            }
            CHECK(cudaFree(image));
            CHECK(cudaFree(first));
            CHECK(cudaFree(second));
        }
    }
    return 0;
}
