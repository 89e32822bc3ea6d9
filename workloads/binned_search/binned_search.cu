// Values go into bins of unequal width: the bin is searched for (halving, walking from a guess, in global memory) and
// counted in shared memory, with lanes that diverge on the way.
//
// Usage: binned_search [values]
#include "../common/workload.cuh"

using namespace workload;

constexpr int BINS = 200;
constexpr int THREADS = 256;
constexpr int EACH = 4;
constexpr unsigned RANGE = 1u << 20;

// The last bin whose lower edge is not above the value.
__host__ __device__ inline int halve(const unsigned* edges, unsigned value) {
    int low = 0, high = BINS;
    while (high - low > 1) {
        int middle = (low + high) / 2;
        if (edges[middle] <= value) low = middle;
        else high = middle;
    }
    return low;
}

__device__ inline void add_block(const unsigned* local, unsigned* bins) {
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += THREADS)
        if (local[bin]) atomicAdd(&bins[bin], local[bin]);
}

__global__ void search_by_halving(const unsigned* values, int count, const unsigned* edges, unsigned* bins) {
    __shared__ unsigned local[BINS], own_edges[BINS + 1];
    for (int bin = threadIdx.x; bin <= BINS; bin += THREADS) own_edges[bin] = edges[bin];
    for (int bin = threadIdx.x; bin < BINS; bin += THREADS) local[bin] = 0;
    __syncthreads();
    for (int k = 0; k < EACH; k++) {
        int i = (blockIdx.x * EACH + k) * THREADS + threadIdx.x;
        if (i < count) atomicAdd(&local[halve(own_edges, values[i])], 1u);
    }
    add_block(local, bins);
}

// From the bin that equal widths would give, up or down.
__global__ void search_by_walking(const unsigned* values, int count, const unsigned* edges, unsigned* bins) {
    __shared__ unsigned local[BINS], own_edges[BINS + 1];
    for (int bin = threadIdx.x; bin <= BINS; bin += THREADS) own_edges[bin] = edges[bin];
    for (int bin = threadIdx.x; bin < BINS; bin += THREADS) local[bin] = 0;
    __syncthreads();
    for (int k = 0; k < EACH; k++) {
        int i = (blockIdx.x * EACH + k) * THREADS + threadIdx.x;
        if (i >= count) break;
        unsigned value = values[i];
        int bin = int(uint64_t(value) * BINS / RANGE);
        while (own_edges[bin] > value) bin--;
        while (own_edges[bin + 1] <= value) bin++;
        atomicAdd(&local[bin], 1u);
    }
    add_block(local, bins);
}

__global__ void search_in_global(const unsigned* values, int count, const unsigned* edges, unsigned* bins) {
    __shared__ unsigned local[BINS];
    for (int bin = threadIdx.x; bin < BINS; bin += THREADS) local[bin] = 0;
    __syncthreads();
    for (int k = 0; k < EACH; k++) {
        int i = (blockIdx.x * EACH + k) * THREADS + threadIdx.x;
        if (i < count) atomicAdd(&local[halve(edges, values[i])], 1u);
    }
    add_block(local, bins);
}

// Values of the first bins are counted at once, all others go through a list of the block and are searched for later.
__global__ void search_from_list(const unsigned* values, int count, const unsigned* edges, unsigned* bins) {
    __shared__ unsigned local[BINS], own_edges[BINS + 1], list[THREADS * EACH];
    __shared__ int listed;
    for (int bin = threadIdx.x; bin <= BINS; bin += THREADS) own_edges[bin] = edges[bin];
    for (int bin = threadIdx.x; bin < BINS; bin += THREADS) local[bin] = 0;
    if (threadIdx.x == 0) listed = 0;
    __syncthreads();
    for (int k = 0; k < EACH; k++) {
        int i = (blockIdx.x * EACH + k) * THREADS + threadIdx.x;
        if (i >= count) break;
        unsigned value = values[i];
        if (value < own_edges[1]) atomicAdd(&local[0], 1u);
        else if (value < own_edges[2]) atomicAdd(&local[1], 1u);
        else list[atomicAdd(&listed, 1)] = value;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < listed; i += THREADS) atomicAdd(&local[halve(own_edges, list[i])], 1u);
    add_block(local, bins);
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 16384, 1 << 24);
    Random random(11);
    std::vector<unsigned> edges(BINS + 1), values(count), wanted(BINS, 0);
    // Widths grow with the square of the number.
    for (int bin = 0; bin <= BINS; bin++) edges[bin] = unsigned(uint64_t(bin) * bin * RANGE / (BINS * BINS));
    for (unsigned& value : values) {
        value = unsigned(uint64_t(random.below(RANGE)) * random.below(RANGE) / RANGE);
        wanted[halve(edges.data(), value)]++;
    }
    Buffer<unsigned> device_values(values), device_edges(edges), halved(BINS), walked(BINS), global(BINS), listed(BINS);
    for (Buffer<unsigned>* bins : {&halved, &walked, &global, &listed}) bins->clear();
    int blocks = blocks_for(count, THREADS * EACH);
    search_by_halving<<<blocks, THREADS>>>(device_values, count, device_edges, halved);
    search_by_walking<<<blocks, THREADS>>>(device_values, count, device_edges, walked);
    search_in_global<<<blocks, THREADS>>>(device_values, count, device_edges, global);
    search_from_list<<<blocks, THREADS>>>(device_values, count, device_edges, listed);
    CHECK_LAUNCH();
    size_t wrong = mismatches(halved.read(), wanted) + mismatches(walked.read(), wanted) +
                   mismatches(global.read(), wanted) + mismatches(listed.read(), wanted);
    return verdict("binned_search", wrong == 0, "%d values, %zu bins wrong", count, wrong);
}
