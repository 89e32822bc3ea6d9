// What is left in L2 for the next kernel: a buffer is written or read in one of several ways, then one kernel reads all
// of it. Blocks take the kernel's time from the global timer, so that no profiler is needed; under one, `read_all` is the
// kernel to look at.
//
// Usage: residency [way] [MiB] [MiB read before: 256] [clean: the buffer is not written before that]
// Prints rows `way,MiB,repetition,ns`; without a way or a size, all of them.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>
#include <cuda_runtime.h>
#define CHECK(call) do { cudaError_t s_ = (call); if (s_ != cudaSuccess) { std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(s_)); std::exit(2); } } while (0)

constexpr int BLOCKS = 264, THREADS = 1024;
constexpr size_t MIB = 1 << 20, MOST = 64 * MIB, OTHER = 256 * MIB;

__device__ unsigned long long now() {
    unsigned long long time;
    asm volatile("mov.u64 %0, %globaltimer;" : "=l"(time));
    return time;
}

__device__ unsigned sum_of(const uint4* data, size_t count) {
    unsigned sum = 0;
    size_t step = size_t(gridDim.x) * blockDim.x;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += step) {
        uint4 v = __ldcg(data + i);
        sum += v.x ^ v.y ^ v.z ^ v.w;
    }
    return sum;
}

__global__ void read_all(const uint4* data, size_t count, unsigned* out, unsigned long long* times) {
    if (threadIdx.x == 0) times[2 * blockIdx.x] = now();
    unsigned sum = sum_of(data, count);
    if (sum == 0x12345678) *out = sum;
    __syncthreads();
    if (threadIdx.x == 0) times[2 * blockIdx.x + 1] = now();
}

__global__ void read_before(const uint4* data, size_t count, unsigned* out) {
    unsigned sum = sum_of(data, count);
    if (sum == 0x12345678) *out = sum;
}

__global__ void write_all(uint4* data, size_t count, unsigned v) {
    size_t step = size_t(gridDim.x) * blockDim.x;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += step) data[i] = make_uint4(v, v, v, v);
}

int main(int argc, char** argv) {
    std::string only = argc > 1 ? argv[1] : "";
    int mebibytes = argc > 2 ? std::atoi(argv[2]) : 0;
    size_t before = (argc > 3 ? std::atoi(argv[3]) : 256) * MIB;
    bool clean = argc > 4;
    char *data, *other, *source, *pinned;
    unsigned* out;
    unsigned long long* times;
    CHECK(cudaMalloc(&data, MOST));
    CHECK(cudaMalloc(&other, OTHER));
    CHECK(cudaMalloc(&source, MOST));
    CHECK(cudaMallocHost(&pinned, MOST));
    CHECK(cudaMalloc(&out, sizeof *out));
    CHECK(cudaMalloc(&times, BLOCKS * 2 * sizeof *times));
    std::vector<char> pageable(MOST, 1);
    std::memset(pinned, 1, MOST);
    if (before) CHECK(cudaMemset(other, 1, OTHER));
    std::printf("way,MiB,repetition,ns\n");
    for (std::string way : {"flush", "pageable", "pinned", "memset", "kernel_write", "kernel_read", "device_copy"}) {
        if (!only.empty() && only != way) continue;
        for (int size : {1, 2, 4, 8, 12, 16, 20, 24, 32, 40, 48, 64}) {
            if (mebibytes && size != mebibytes) continue;
            size_t bytes = size * MIB, count = bytes / sizeof(uint4);
            auto* words = reinterpret_cast<uint4*>(data);
            for (int repetition = 0; repetition < (mebibytes ? 1 : 4); repetition++) {
                if (!clean) CHECK(cudaMemset(data, 2, bytes));
                if (before) read_before<<<BLOCKS, THREADS>>>(reinterpret_cast<uint4*>(other), std::min(before, OTHER) / sizeof(uint4), out);
                CHECK(cudaDeviceSynchronize());
                if (way == "pageable") CHECK(cudaMemcpy(data, pageable.data(), bytes, cudaMemcpyHostToDevice));
                if (way == "pinned") CHECK(cudaMemcpy(data, pinned, bytes, cudaMemcpyHostToDevice));
                if (way == "memset") CHECK(cudaMemset(data, 3, bytes));
                if (way == "kernel_write") write_all<<<BLOCKS, THREADS>>>(words, count, repetition);
                if (way == "kernel_read") read_before<<<BLOCKS, THREADS>>>(words, count, out);
                if (way == "device_copy") CHECK(cudaMemcpy(data, source, bytes, cudaMemcpyDeviceToDevice));
                CHECK(cudaDeviceSynchronize());
                read_all<<<BLOCKS, THREADS>>>(words, count, out, times);
                std::vector<unsigned long long> t(2 * BLOCKS);
                CHECK(cudaMemcpy(t.data(), times, t.size() * sizeof t[0], cudaMemcpyDeviceToHost));
                unsigned long long first = t[0], last = t[1];
                for (int block = 0; block < BLOCKS; block++) {
                    first = std::min(first, t[2 * block]);
                    last = std::max(last, t[2 * block + 1]);
                }
                std::printf("%s,%d,%d,%llu\n", way.c_str(), size, repetition, last - first);
            }
        }
    }
}
