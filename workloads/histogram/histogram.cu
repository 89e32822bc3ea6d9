// A 256-bin histogram of bytes, with atomics on global memory alone and with a private copy in shared memory.
//
// Usage: histogram [bytes]
#include "../common/workload.cuh"

using namespace workload;

constexpr int BINS = 256;
constexpr int THREADS = 256;

__global__ void histogram_global(const unsigned char* data, int count, unsigned* bins) {
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) atomicAdd(&bins[data[i]], 1u);
}

__global__ void histogram_shared(const unsigned char* data, int count, unsigned* bins) {
    __shared__ unsigned local[BINS];
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x) local[bin] = 0;
    __syncthreads();
    int stride = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += stride) atomicAdd(&local[data[i]], 1u);
    __syncthreads();
    for (int bin = threadIdx.x; bin < BINS; bin += blockDim.x)
        if (local[bin] != 0) atomicAdd(&bins[bin], local[bin]);
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 65536);
    // Two dice make the middle bins hot, as real images do.
    std::vector<unsigned char> data(count);
    std::vector<unsigned> wanted(BINS, 0);
    Random random(1);
    for (unsigned char& value : data) {
        value = static_cast<unsigned char>(random.below(128) + random.below(129));
        wanted[value]++;
    }

    Buffer<unsigned char> device_data(data);
    Buffer<unsigned> global_bins(BINS), shared_bins(BINS);
    global_bins.clear();
    shared_bins.clear();
    int blocks = std::min(blocks_for(count, THREADS * 8), 1024);
    histogram_global<<<blocks, THREADS>>>(device_data, count, global_bins);
    CHECK_LAUNCH();
    histogram_shared<<<blocks, THREADS>>>(device_data, count, shared_bins);
    CHECK_LAUNCH();
    size_t global_wrong = mismatches(global_bins.read(), wanted);
    size_t shared_wrong = mismatches(shared_bins.read(), wanted);
    return verdict("histogram", global_wrong + shared_wrong == 0, "%d bytes, wrong bins: %zu global, %zu shared", count,
                   global_wrong, shared_wrong);
}
