// Bitonic sort of keys with values: steps with long distance in global memory, the rest inside a block.
//
// Usage: bitonic_sort [elements, rounded up to a power of two]
#include <algorithm>

#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 256;
constexpr int TILE = 2 * THREADS;

struct Item {
    unsigned key;
    unsigned value;
};

__device__ inline void order(Item& a, Item& b, bool ascending) {
    bool swap = ascending ? a.key > b.key : a.key < b.key;
    if (swap) {
        Item t = a;
        a = b;
        b = t;
    }
}

// All steps with distances below TILE, for sequence lengths `from` to `to`.
__global__ void sort_in_block(Item* items, int from, int to) {
    __shared__ Item tile[TILE];
    int base = blockIdx.x * TILE;
    tile[threadIdx.x] = items[base + threadIdx.x];
    tile[threadIdx.x + THREADS] = items[base + threadIdx.x + THREADS];
    for (int length = from; length <= to; length *= 2)
        for (int distance = min(length / 2, THREADS); distance > 0; distance /= 2) {
            __syncthreads();
            int low = 2 * threadIdx.x - (threadIdx.x & (distance - 1));
            order(tile[low], tile[low + distance], ((base + low) & length) == 0);
        }
    __syncthreads();
    items[base + threadIdx.x] = tile[threadIdx.x];
    items[base + threadIdx.x + THREADS] = tile[threadIdx.x + THREADS];
}

__global__ void merge_step(Item* items, int length, int distance) {
    int t = blockIdx.x * blockDim.x + threadIdx.x;
    int low = 2 * t - (t & (distance - 1));
    order(items[low], items[low + distance], (low & length) == 0);
}

int main(int argc, char** argv) {
    int asked = argument(argc, argv, 1, 4096, 1 << 26);
    int count = TILE;
    while (count < asked) count *= 2;
    std::vector<Item> items(count);
    Random random(1);
    // Keys all different: the low bits number them.
    for (int i = 0; i < count; i++) items[i] = {(random.next() & ~unsigned(count - 1)) | unsigned(i), unsigned(i)};
    std::vector<Item> wanted = items;
    std::sort(wanted.begin(), wanted.end(), [](Item a, Item b) { return a.key < b.key; });

    Buffer<Item> device(items);
    sort_in_block<<<count / TILE, THREADS>>>(device, 2, TILE);
    CHECK_LAUNCH();
    for (int length = 2 * TILE; length <= count; length *= 2) {
        for (int distance = length / 2; distance >= TILE; distance /= 2)
            merge_step<<<count / TILE, THREADS>>>(device, length, distance);
        sort_in_block<<<count / TILE, THREADS>>>(device, length, length);
        CHECK_LAUNCH();
    }
    std::vector<Item> got = device.read();
    int wrong = 0;
    for (int i = 0; i < count; i++) wrong += got[i].key != wanted[i].key || got[i].value != wanted[i].value;
    return verdict("bitonic_sort", wrong == 0, "%d elements, %d wrong", count, wrong);
}
