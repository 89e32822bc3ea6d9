// Exclusive prefix sums three ways: the doubling scan of Hillis and Steele, the tree scan of Blelloch, and one pass
// over the whole array in which blocks look back at the totals of those before them.
//
// Usage: scan_variants [elements]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 256;

// Block by block; the host checks each block on its own.
__global__ void scan_doubling(const int* values, int* scanned, int count) {
    __shared__ int buffers[2][THREADS];
    int i = blockIdx.x * THREADS + threadIdx.x;
    int t = threadIdx.x;
    int now = 0;
    buffers[0][t] = t > 0 && i - 1 < count ? values[i - 1] : 0;
    __syncthreads();
    for (int distance = 1; distance < THREADS; distance *= 2) {
        buffers[1 - now][t] = buffers[now][t] + (t >= distance ? buffers[now][t - distance] : 0);
        now = 1 - now;
        __syncthreads();
    }
    if (i < count) scanned[i] = buffers[now][t];
}

__global__ void scan_tree(const int* values, int* scanned, int count) {
    __shared__ int tree[2 * THREADS];
    int base = blockIdx.x * 2 * THREADS;
    int t = threadIdx.x;
    for (int k = t; k < 2 * THREADS; k += THREADS) tree[k] = base + k < count ? values[base + k] : 0;
    int offset = 1;
    for (int pairs = THREADS; pairs > 0; pairs /= 2) {
        __syncthreads();
        if (t < pairs) tree[offset * (2 * t + 2) - 1] += tree[offset * (2 * t + 1) - 1];
        offset *= 2;
    }
    if (t == 0) tree[2 * THREADS - 1] = 0;
    for (int pairs = 1; pairs <= THREADS; pairs *= 2) {
        offset /= 2;
        __syncthreads();
        if (t < pairs) {
            int left = offset * (2 * t + 1) - 1;
            int right = offset * (2 * t + 2) - 1;
            int value = tree[left];
            tree[left] = tree[right];
            tree[right] += value;
        }
    }
    __syncthreads();
    for (int k = t; k < 2 * THREADS; k += THREADS)
        if (base + k < count) scanned[base + k] = tree[k];
}

// State of a block, one word: what is known in the upper half, a sum below.
enum Known : unsigned long long { NOTHING = 0, OWN_TOTAL = 1, ALL_BEFORE = 2 };

__global__ void scan_look_back(const int* values, int* scanned, int count, int* next_block, unsigned long long* states) {
    __shared__ int block;
    __shared__ int warp_totals[THREADS / 32];
    __shared__ int before_block;
    // Blocks number themselves as they start, so that those before are running already.
    if (threadIdx.x == 0) block = atomicAdd(next_block, 1);
    __syncthreads();
    int lane = threadIdx.x % 32;
    int warp = threadIdx.x / 32;
    int i = block * THREADS + threadIdx.x;
    int own = i < count ? values[i] : 0;
    int sum = own;
    for (int distance = 1; distance < 32; distance *= 2) {
        int below = __shfl_up_sync(0xffffffffu, sum, distance);
        if (lane >= distance) sum += below;
    }
    if (lane == 31) warp_totals[warp] = sum;
    __syncthreads();
    for (int w = 0; w < warp; w++) sum += warp_totals[w];
    if (threadIdx.x == THREADS - 1) {
        volatile unsigned long long* mailbox = states;
        if (block == 0) {
            mailbox[0] = (unsigned long long)ALL_BEFORE << 32 | unsigned(sum);
            before_block = 0;
        } else {
            mailbox[block] = (unsigned long long)OWN_TOTAL << 32 | unsigned(sum);
            int before = 0;
            int look = block - 1;
            while (true) {
                unsigned long long state = mailbox[look];
                if (state >> 32 == NOTHING) continue;
                before += int(unsigned(state));
                if (state >> 32 == ALL_BEFORE) break;
                look--;
            }
            mailbox[block] = (unsigned long long)ALL_BEFORE << 32 | unsigned(before + sum);
            before_block = before;
        }
    }
    __syncthreads();
    if (i < count) scanned[i] = before_block + sum - own;
}

// The exclusive scan that starts again every `segment` elements.
static std::vector<int> reference(const std::vector<int>& values, size_t segment) {
    std::vector<int> scanned(values.size());
    int sum = 0;
    for (size_t i = 0; i < values.size(); i++) {
        if (i % segment == 0) sum = 0;
        scanned[i] = sum;
        sum += values[i];
    }
    return scanned;
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 20000);
    std::vector<int> values(count);
    Random random(1);
    for (int& value : values) value = random.below(100);
    Buffer<int> device_values(values), scanned(count), next_block(1);
    size_t wrong[3];
    int blocks = blocks_for(count, THREADS);
    scanned.clear();
    scan_doubling<<<blocks, THREADS>>>(device_values, scanned, count);
    CHECK_LAUNCH();
    wrong[0] = mismatches(scanned.read(), reference(values, THREADS));
    scanned.clear();
    scan_tree<<<blocks_for(count, 2 * THREADS), THREADS>>>(device_values, scanned, count);
    CHECK_LAUNCH();
    wrong[1] = mismatches(scanned.read(), reference(values, 2 * THREADS));
    Buffer<unsigned long long> states(blocks);
    states.clear();
    next_block.clear();
    scanned.clear();
    scan_look_back<<<blocks, THREADS>>>(device_values, scanned, count, next_block, states);
    CHECK_LAUNCH();
    wrong[2] = mismatches(scanned.read(), reference(values, values.size()));
    return verdict("scan_variants", wrong[0] + wrong[1] + wrong[2] == 0,
                   "%d elements, wrong: %zu doubling, %zu tree, %zu look-back", count, wrong[0], wrong[1], wrong[2]);
}
