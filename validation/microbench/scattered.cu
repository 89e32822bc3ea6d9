// Loads whose lanes lie in several lines: how long one takes by the number of lines, from L2 and from DRAM, and how long
// several warps take that do so at once.
#include "common.cuh"

constexpr int TRIALS = 96;
constexpr size_t APART = 4096 + 128;

// Every warp loads once a trial, its lanes spread over `lines` lines that nobody has touched; the time until all warps
// of the block have their values.
__global__ void scattered(const char* memory, int lines, long long* out) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    long long sum = 0;
    for (int trial = 0; trial < TRIALS; trial++) {
        const char* first = memory + (size_t(trial) * warps + warp) * lines * APART;
        // The page's translation first.
        unsigned value;
        asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(value) : "l"(first - 64) : "memory");
        asm volatile("{.reg .pred p; setp.eq.u32 p,%0,0xffffffff; @p trap;}" ::"r"(value) : "memory");
        const char* own = first + size_t(lane % lines) * APART + lane / lines * 4;
        __syncthreads();
        long long begin = clock64();
        asm volatile("ld.global.u32 %0,[%1];" : "=r"(value) : "l"(own) : "memory");
        asm volatile("{.reg .pred p; setp.eq.u32 p,%0,0xffffffff; @p trap;}" ::"r"(value) : "memory");
        __syncthreads();
        sum += clock64() - begin;
    }
    if (threadIdx.x == 0 && blockIdx.x == 0) out[0] = sum;
}

__global__ void read_all(const uint4* from, size_t count, unsigned* never) {
    unsigned all = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
        uint4 four = __ldcg(from + i);
        all |= four.x | four.y | four.z | four.w;
    }
    if (all == 12345) never[0] = all;
}

int main() {
    warm_up();
    Clock clock;
    char *memory, *other;
    const size_t bytes = size_t(TRIALS) * 32 * 32 * APART + (2 << 20), flushed = 256 << 20;
    CHECK(cudaMalloc(&memory, bytes));
    CHECK(cudaMalloc(&other, flushed));
    CHECK(cudaMemset(memory, 0, bytes));
    CHECK(cudaMemset(other, 0, flushed));
    for (int from_l2 = 0; from_l2 < 2; from_l2++)
        for (int warps : {1, 4, 16})
            for (int lines : {1, 2, 4, 8, 16, 32}) {
                size_t used = size_t(TRIALS) * warps * lines * APART;
                if (from_l2 && used > (24 << 20)) continue;
                read_all<<<264, 1024>>>(reinterpret_cast<uint4*>(other), flushed / 16, reinterpret_cast<unsigned*>(memory));
                if (from_l2) read_all<<<264, 1024>>>(reinterpret_cast<uint4*>(memory), (used + (1 << 20)) / 16, reinterpret_cast<unsigned*>(memory));
                scattered<<<1, 32 * warps>>>(memory + 4096, lines, clock.cycles);
                CHECK(cudaGetLastError());
                row("scattered", text("%s warps=%d lines=%d", from_l2 ? "l2" : "dram", warps, lines), double(clock.read()) / TRIALS, "cycles");
            }
    return 0;
}
