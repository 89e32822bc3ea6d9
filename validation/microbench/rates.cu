// Bandwidth of reads as in core.cu, over the number of repetitions, and how long each SM takes.
//
// Prints `rd,MIB,BLOCKS,REPETITIONS,TRY,MICROSECONDS` (between two events, a launch with two repetitions before them) and
// `sms,MIB,BLOCKS,REPETITIONS,SM:BLOCKS:CYCLES,...` (from the start of an SM's first block to the end of its last).
#include "common.cuh"

#define READ                                                                                                     \
    float sum = 0;                                                                                               \
    for (int r = 0; r < repetitions; r++)                                                                        \
        for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) { \
            float4 v;                                                                                            \
            asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3},[%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(memory + i)); \
            sum += v.x + v.y + v.z + v.w;                                                                        \
        }                                                                                                        \
    if (sum == 1.2345f) out[0] = sum;

__global__ void rd(const float4* __restrict__ memory, float* out, size_t count, int repetitions) { READ }

__global__ void timed(const float4* __restrict__ memory, float* out, size_t count, int repetitions, long long* times) {
    __syncthreads();
    long long begin = clock64();
    READ;
    __syncthreads();
    if (threadIdx.x == 0) {
        unsigned sm;
        asm volatile("mov.u32 %0,%%smid;" : "=r"(sm));
        long long* row = times + blockIdx.x * 3;
        row[0] = sm, row[1] = begin, row[2] = clock64();
    }
}

int main() {
    warm_up();
    const int sms = 132;
    const size_t all = 2ull << 30;
    float4* memory;
    float* out;
    long long* times;
    CHECK(cudaMalloc(&memory, all));
    CHECK(cudaMalloc(&out, 4));
    CHECK(cudaMalloc(&times, 1056 * 24));
    CHECK(cudaMemset(memory, 1, all));
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    for (size_t bytes : {size_t(4) << 20, size_t(16) << 20, size_t(24) << 20, size_t(32) << 20, size_t(48) << 20, all})
        for (int blocks : {sms / 4, sms, sms * 2, sms * 4, sms * 8})
            for (int repetitions : {0, 1, 2, 3, 5, 10, 25, 50, 100, 200})
                for (int attempt = 0; attempt < (bytes == all ? 2 : 4); attempt++) {
                    if (bytes == all && repetitions > 2) continue;
                    rd<<<blocks, 512>>>(memory, out, bytes / 16, bytes == all ? 1 : 2);
                    CHECK(cudaEventRecord(begin));
                    rd<<<blocks, 512>>>(memory, out, bytes / 16, repetitions);
                    CHECK(cudaEventRecord(end));
                    CHECK(cudaEventSynchronize(end));
                    float time;
                    CHECK(cudaEventElapsedTime(&time, begin, end));
                    std::printf("rd,%zu,%d,%d,%d,%.3f\n", bytes >> 20, blocks, repetitions, attempt, time * 1e3);
                }
    std::vector<long long> rows(1056 * 3);
    for (int mebibytes : {4, 16, 48})
        for (int blocks : {33, 132, 264, 528}) {
            for (int attempt = 0; attempt < 2; attempt++) timed<<<blocks, 512>>>(memory, out, size_t(mebibytes) << 16, 50, times);
            CHECK(cudaDeviceSynchronize());
            CHECK(cudaMemcpy(rows.data(), times, blocks * 24, cudaMemcpyDeviceToHost));
            std::printf("sms,%d,%d,50", mebibytes, blocks);
            for (int sm = 0; sm < sms; sm++) {
                long long first = 1ll << 62, last = 0;
                int count = 0;
                for (int block = 0; block < blocks; block++)
                    if (rows[block * 3] == sm) count++, first = std::min(first, rows[block * 3 + 1]), last = std::max(last, rows[block * 3 + 2]);
                if (count) std::printf(",%d:%d:%lld", sm, count, last - first);
            }
            std::printf("\n");
        }
}
