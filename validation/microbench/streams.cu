// Reads of bandwidth measurements, warp by warp: how long each load of 512 B waits, and how long each block takes.
//
//   streams [MIB BLOCKS WARPS REPETITIONS]      one case (2048 and more MiB: one pass)
//
// Prints `sms,MIB,BLOCKS,WARPS SM:BLOCKS:CYCLES:MEAN LATENCY ...` and `latency,MIB,BLOCKS,WARPS,all,MEAN,COUNT, BIN:COUNT ...`
// (bins of 32 cycles, by where they begin). Reading the clock and counting are part of both.
#include "common.cuh"

constexpr int BINS = 128, WIDTH = 32;

__global__ void rd(const float4* __restrict__ memory, float* out, size_t count, int repetitions, long long* times, unsigned* bins) {
    __shared__ unsigned histogram[BINS];
    for (int i = threadIdx.x; i < BINS; i += blockDim.x) histogram[i] = 0;
    __syncthreads();
    long long begin = clock64();
    float sum = 0;
    long long waited = 0;
    for (int r = 0; r < repetitions; r++)
        for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
            float4 v;
            unsigned t0 = clock();
            asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3},[%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(memory + i) : "memory");
            float s = v.x + v.y + v.z + v.w;
            asm volatile("{.reg .pred p; setp.eq.f32 p,%0,0f3f9e0652; @p trap;}" ::"f"(s) : "memory");
            unsigned took = clock() - t0;
            sum += s;
            if (threadIdx.x % 32 == 0) {
                waited += took;
                atomicAdd(&histogram[min(took / WIDTH, unsigned(BINS - 1))], 1u);
            }
        }
    if (sum == 1.2345f) out[0] = sum;
    __syncthreads();
    long long end = clock64();
    if (threadIdx.x == 0) times[blockIdx.x * 3] = sm(), times[blockIdx.x * 3 + 1] = begin, times[blockIdx.x * 3 + 2] = end;
    for (int i = threadIdx.x; i < BINS; i += blockDim.x) bins[blockIdx.x * BINS + i] = histogram[i];
}

void measure(const float4* memory, float* out, long long* times, unsigned* bins, size_t mebibytes, int blocks, int warps, int repetitions) {
    for (int attempt = 0; attempt < 2; attempt++) rd<<<blocks, warps * 32>>>(memory, out, mebibytes << 16, mebibytes >= 2048 ? 1 : repetitions, times, bins);
    CHECK(cudaDeviceSynchronize());
    std::vector<long long> rows(blocks * 3);
    std::vector<unsigned> counts(blocks * BINS);
    CHECK(cudaMemcpy(rows.data(), times, rows.size() * 8, cudaMemcpyDeviceToHost));
    CHECK(cudaMemcpy(counts.data(), bins, counts.size() * 4, cudaMemcpyDeviceToHost));
    std::vector<double> all(BINS);
    std::printf("sms,%zu,%d,%d", mebibytes, blocks, warps);
    for (int which = 0; which < 132; which++) {
        long long first = 1ll << 62, last = 0;
        int count = 0;
        double sum = 0, number = 0;
        for (int block = 0; block < blocks; block++)
            if (rows[block * 3] == which) {
                count++, first = std::min(first, rows[block * 3 + 1]), last = std::max(last, rows[block * 3 + 2]);
                for (int bin = 0; bin < BINS; bin++) {
                    double n = counts[block * BINS + bin];
                    all[bin] += n, number += n, sum += n * (bin + 0.5) * WIDTH;
                }
            }
        if (count) std::printf(" %d:%d:%lld:%.0f", which, count, last - first, sum / number);
    }
    double sum = 0, number = 0;
    for (int bin = 0; bin < BINS; bin++) number += all[bin], sum += all[bin] * (bin + 0.5) * WIDTH;
    std::printf("\nlatency,%zu,%d,%d,all,%.1f,%.0f,", mebibytes, blocks, warps, sum / number, number);
    for (int bin = 0; bin < BINS; bin++)
        if (all[bin] > 0) std::printf(" %d:%.0f", bin * WIDTH, all[bin]);
    std::printf("\n");
    std::fflush(stdout);
}

int main(int argc, char** argv) {
    float4* memory;
    float* out;
    long long* times;
    unsigned* bins;
    const size_t all = size_t(argc > 1 ? std::max(64, std::atoi(argv[1])) : 2048) << 20;
    CHECK(cudaMalloc(&memory, all));
    CHECK(cudaMalloc(&out, 4));
    CHECK(cudaMalloc(&times, 1056 * 24));
    CHECK(cudaMalloc(&bins, 1056 * BINS * 4));
    CHECK(cudaMemset(memory, 1, all));
    if (argc > 4) {
        measure(memory, out, times, bins, std::atoi(argv[1]), std::atoi(argv[2]), std::atoi(argv[3]), std::atoi(argv[4]));
        return 0;
    }
    warm_up();
    for (size_t mebibytes : {4, 16, 24, 32, 48, 2048})
        for (int blocks : {33, 132, 264, 528, 1056})
            for (int warps : {1, 4, 16}) {
                if (warps < 16 && blocks != 33 && blocks != 132) continue;
                measure(memory, out, times, bins, mebibytes, blocks, warps, 50);
            }
    // From one SM alone: what the ways are like without anybody else.
    for (size_t mebibytes : {4, 24, 32, 64}) {
        measure(memory, out, times, bins, mebibytes, 1, 1, 2);
        measure(memory, out, times, bins, mebibytes, 1, 16, 4);
    }
}
