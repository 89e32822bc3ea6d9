// When each warp of a read bandwidth ends: which of an SM's warps and blocks go ahead of others.
//
//   warps MIB BLOCKS REPETITIONS [MIB BLOCKS REPETITIONS ...]
//
// Prints `case,MIB,BLOCKS,MICROSECONDS` (between two events) and for each warp `BLOCK WARP SM SLOT BEGIN END` in cycles of its SM.
#include "common.cuh"

__global__ void rd(const float4* __restrict__ memory, float* out, size_t count, int repetitions, long long* times) {
    long long begin = clock64();
    float sum = 0;
    for (int r = 0; r < repetitions; r++)
        for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
            float4 v;
            asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3},[%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(memory + i));
            sum += v.x + v.y + v.z + v.w;
        }
    if (sum == 1.2345f) out[0] = sum;
    long long end = clock64();
    if (threadIdx.x % 32 == 0) {
        unsigned slot;
        asm volatile("mov.u32 %0,%%warpid;" : "=r"(slot));
        long long* row = times + (blockIdx.x * 16 + threadIdx.x / 32) * 3;
        row[0] = sm() * 64 + slot, row[1] = begin, row[2] = end;
    }
}

int main(int argc, char** argv) {
    float4* memory;
    float* out;
    long long* times;
    const size_t all = size_t(64) << 20;
    CHECK(cudaMalloc(&memory, all));
    CHECK(cudaMalloc(&out, 4));
    CHECK(cudaMalloc(&times, 1056 * 16 * 24));
    CHECK(cudaMemset(memory, 1, all));
    cudaEvent_t first, last;
    CHECK(cudaEventCreate(&first));
    CHECK(cudaEventCreate(&last));
    std::vector<long long> rows(1056 * 16 * 3);
    for (int at = 1; at + 2 < argc; at += 3) {
        int mebibytes = std::atoi(argv[at]), blocks = std::atoi(argv[at + 1]), repetitions = std::atoi(argv[at + 2]);
        rd<<<blocks, 512>>>(memory, out, size_t(mebibytes) << 16, 2, times);
        CHECK(cudaEventRecord(first));
        rd<<<blocks, 512>>>(memory, out, size_t(mebibytes) << 16, repetitions, times);
        CHECK(cudaEventRecord(last));
        CHECK(cudaEventSynchronize(last));
        float milliseconds;
        CHECK(cudaEventElapsedTime(&milliseconds, first, last));
        CHECK(cudaMemcpy(rows.data(), times, blocks * 16 * 24, cudaMemcpyDeviceToHost));
        std::printf("case,%d,%d,%.3f\n", mebibytes, blocks, milliseconds * 1e3);
        for (int warp = 0; warp < blocks * 16; warp++)
            std::printf("%d %d %lld %lld %lld %lld\n", warp / 16, warp % 16, rows[warp * 3] / 64, rows[warp * 3] % 64, rows[warp * 3 + 1], rows[warp * 3 + 2]);
    }
}
