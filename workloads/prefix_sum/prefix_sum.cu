// Inclusive prefix sum: warps scan with shuffles, blocks scan their warps, and a second level scans the blocks.
//
// Usage: prefix_sum [elements]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;
constexpr unsigned FULL = 0xffffffffu;

__device__ unsigned scan_warp(unsigned value) {
    int lane = threadIdx.x % 32;
    for (int distance = 1; distance < 32; distance *= 2) {
        unsigned below = __shfl_up_sync(FULL, value, distance);
        if (lane >= distance) value += below;
    }
    return value;
}

// Scans each block's elements on their own and writes each block's total.
__global__ void scan_blocks(const unsigned* values, unsigned* scanned, unsigned* totals, int count) {
    __shared__ unsigned warp_totals[WARPS];
    int i = blockIdx.x * THREADS + threadIdx.x;
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
    unsigned sum = scan_warp(i < count ? values[i] : 0);
    if (lane == 31) warp_totals[warp] = sum;
    __syncthreads();
    if (warp == 0) {
        unsigned total = scan_warp(lane < WARPS ? warp_totals[lane] : 0);
        if (lane < WARPS) warp_totals[lane] = total;
    }
    __syncthreads();
    if (warp > 0) sum += warp_totals[warp - 1];
    if (i < count) scanned[i] = sum;
    if (threadIdx.x == THREADS - 1) totals[blockIdx.x] = sum;
}

// Adds to every block the sum of all blocks before it.
__global__ void add_offsets(unsigned* scanned, const unsigned* scanned_totals, int count) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (blockIdx.x > 0 && i < count) scanned[i] += scanned_totals[blockIdx.x - 1];
}

void scan(const unsigned* values, unsigned* scanned, int count) {
    int blocks = blocks_for(count, THREADS);
    Buffer<unsigned> totals(blocks), scanned_totals(blocks);
    scan_blocks<<<blocks, THREADS>>>(values, scanned, totals, count);
    CHECK_LAUNCH();
    if (blocks == 1) return;
    scan(totals, scanned_totals, blocks);
    add_offsets<<<blocks, THREADS>>>(scanned, scanned_totals, count);
    CHECK_LAUNCH();
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 100000);
    std::vector<unsigned> values(count), wanted(count);
    Random random(1);
    unsigned sum = 0;
    for (int i = 0; i < count; i++) {
        values[i] = random.next() % 1000;
        wanted[i] = sum += values[i];
    }
    Buffer<unsigned> device_values(values), device_scanned(count);
    scan(device_values, device_scanned, count);
    size_t wrong = mismatches(device_scanned.read(), wanted);
    return verdict("prefix_sum", wrong == 0, "%d elements, %zu wrong, total %u", count, wrong, sum);
}
