// Histograms under contention: a copy a warp in shared memory, lanes that agree before one of them adds, and 64-bit
// weights in many bins of global memory.
//
// Usage: histogram_variants [elements]
#include "../common/workload.cuh"

using namespace workload;

constexpr int BINS = 64;
constexpr int WIDE_BINS = 4096;
constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;

__global__ void histogram_per_warp(const unsigned* data, int count, unsigned* bins) {
    __shared__ unsigned local[WARPS][BINS];
    for (int k = threadIdx.x; k < WARPS * BINS; k += THREADS) local[k / BINS][k % BINS] = 0;
    __syncthreads();
    unsigned* mine = local[threadIdx.x / 32];
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS)
        atomicAdd(&mine[data[i] % BINS], 1u);
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += THREADS) {
        unsigned sum = 0;
        for (int warp = 0; warp < WARPS; warp++) sum += local[warp][bin];
        atomicAdd(&bins[bin], sum);
    }
}

// Lanes that hold the same bin elect the lowest, which adds for all.
__global__ void histogram_agreed(const unsigned* data, int count, unsigned* bins) {
    for (int start = blockIdx.x * THREADS; start < count; start += gridDim.x * THREADS) {
        int i = start + threadIdx.x;
        bool valid = i < count;
        unsigned active = __ballot_sync(0xffffffffu, valid);
        if (!valid) continue;
        int bin = data[i] % BINS;
        unsigned same = __match_any_sync(active, bin);
        if (__ffs(same) - 1 == int(threadIdx.x % 32)) atomicAdd(&bins[bin], unsigned(__popc(same)));
    }
}

__global__ void histogram_weighted(const unsigned* data, int count, unsigned long long* bins) {
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS)
        atomicAdd(&bins[data[i] >> 20], (unsigned long long)data[i]);
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 40000);
    std::vector<unsigned> data(count), wanted(BINS, 0);
    std::vector<unsigned long long> wanted_weights(WIDE_BINS, 0);
    Random random(1);
    for (unsigned& value : data) {
        // The product of two numbers makes small ones frequent.
        value = static_cast<unsigned>((uint64_t(random.next()) * random.next()) >> 32);
        wanted[value % BINS]++;
        wanted_weights[value >> 20] += value;
    }
    Buffer<unsigned> device_data(data), per_warp(BINS), agreed(BINS);
    Buffer<unsigned long long> weights(WIDE_BINS);
    per_warp.clear();
    agreed.clear();
    weights.clear();
    int blocks = std::min(blocks_for(count, THREADS * 4), 512);
    histogram_per_warp<<<blocks, THREADS>>>(device_data, count, per_warp);
    histogram_agreed<<<blocks, THREADS>>>(device_data, count, agreed);
    histogram_weighted<<<blocks, THREADS>>>(device_data, count, weights);
    CHECK_LAUNCH();
    size_t wrong[3] = {mismatches(per_warp.read(), wanted), mismatches(agreed.read(), wanted),
                       mismatches(weights.read(), wanted_weights)};
    return verdict("histogram_variants", wrong[0] + wrong[1] + wrong[2] == 0,
                   "%d elements, wrong bins: %zu per warp, %zu agreed, %zu weighted", count, wrong[0], wrong[1], wrong[2]);
}
