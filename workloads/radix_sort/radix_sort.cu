// Least-significant-digit radix sort: count digits a block, scan the counts, scatter with stable ranks.
//
// Usage: radix_sort [elements]
#include <algorithm>

#include "../common/workload.cuh"

using namespace workload;

constexpr int BITS = 4;
constexpr int DIGITS = 1 << BITS;
constexpr int THREADS = 256;
constexpr int WARPS = THREADS / 32;

__device__ inline int digit_of(unsigned key, int shift) { return (key >> shift) & (DIGITS - 1); }

// counts[digit * blocks + block], so that one scan gives every block its place for every digit.
__global__ void count_digits(const unsigned* keys, int* counts, int count, int shift) {
    __shared__ int local[DIGITS];
    if (threadIdx.x < DIGITS) local[threadIdx.x] = 0;
    __syncthreads();
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count) atomicAdd(&local[digit_of(keys[i], shift)], 1);
    __syncthreads();
    if (threadIdx.x < DIGITS) counts[threadIdx.x * gridDim.x + blockIdx.x] = local[threadIdx.x];
}

// Exclusive scan by one block that walks over the array with a running total.
__global__ void scan_counts(int* counts, int length) {
    __shared__ int warp_totals[32];
    __shared__ int carry;
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
    if (threadIdx.x == 0) carry = 0;
    for (int start = 0; start < length; start += blockDim.x) {
        int i = start + threadIdx.x;
        int own = i < length ? counts[i] : 0;
        int sum = own;
        for (int distance = 1; distance < 32; distance *= 2) {
            int below = __shfl_up_sync(0xffffffffu, sum, distance);
            if (lane >= distance) sum += below;
        }
        if (lane == 31) warp_totals[warp] = sum;
        __syncthreads();
        if (warp == 0) {
            int total = lane < blockDim.x / 32 ? warp_totals[lane] : 0;
            for (int distance = 1; distance < 32; distance *= 2) {
                int below = __shfl_up_sync(0xffffffffu, total, distance);
                if (lane >= distance) total += below;
            }
            warp_totals[lane] = total;
        }
        __syncthreads();
        int before = carry + (warp > 0 ? warp_totals[warp - 1] : 0);
        if (i < length) counts[i] = before + sum - own;
        __syncthreads();
        if (threadIdx.x == blockDim.x - 1) carry = before + sum;
        __syncthreads();
    }
}

// A key's rank among equal digits of its block: those of earlier warps, then those of lower lanes by a vote.
__global__ void scatter_keys(const unsigned* keys, unsigned* sorted, const int* places, int count, int shift) {
    __shared__ int warp_counts[WARPS][DIGITS];
    int i = blockIdx.x * THREADS + threadIdx.x;
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
    for (int k = threadIdx.x; k < WARPS * DIGITS; k += THREADS) warp_counts[k / DIGITS][k % DIGITS] = 0;
    __syncthreads();
    bool valid = i < count;
    unsigned key = valid ? keys[i] : 0;
    int digit = digit_of(key, shift);
    // Lanes with the same digit: the agreement of one vote a bit.
    unsigned same = __ballot_sync(0xffffffffu, valid);
    for (int bit = 0; bit < BITS; bit++) {
        unsigned set = __ballot_sync(0xffffffffu, digit >> bit & 1);
        same &= digit >> bit & 1 ? set : ~set;
    }
    int rank = __popc(same & ((1u << lane) - 1));
    if (valid && rank == 0) warp_counts[warp][digit] = __popc(same);
    __syncthreads();
    if (!valid) return;
    for (int earlier = 0; earlier < warp; earlier++) rank += warp_counts[earlier][digit];
    sorted[places[digit * gridDim.x + blockIdx.x] + rank] = key;
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 6000, 1 << 26);
    std::vector<unsigned> keys(count);
    Random random(1);
    for (unsigned& key : keys) key = random.next();
    int blocks = blocks_for(count, THREADS);
    Buffer<unsigned> first(keys), second(count);
    Buffer<int> counts(size_t(blocks) * DIGITS);
    unsigned* from = first;
    unsigned* to = second;
    for (int shift = 0; shift < 32; shift += BITS) {
        count_digits<<<blocks, THREADS>>>(from, counts, count, shift);
        scan_counts<<<1, 512>>>(counts, blocks * DIGITS);
        scatter_keys<<<blocks, THREADS>>>(from, to, counts, count, shift);
        CHECK_LAUNCH();
        std::swap(from, to);
    }
    std::sort(keys.begin(), keys.end());
    size_t wrong = mismatches(first.read(), keys);
    return verdict("radix_sort", wrong == 0, "%d elements, %zu wrong", count, wrong);
}
