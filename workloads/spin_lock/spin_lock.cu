// A spin lock between blocks. While a block holds the lock, all its threads update memory with plain loads and
// stores, so a lost update, a stale read or a store that escapes the critical section shows in the result.
//
// Usage: spin_lock [blocks] [rounds]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 64;

struct Protected {
    int lock;
    int entries;           // times that the lock was taken
    unsigned checksum;     // depends on the order of entries, kept twice
    unsigned checksum_copy;
    int torn;              // entries that found the two checksums different
    int slots[THREADS];    // one a thread
};

__global__ void increment_under_lock(Protected* shared, int* order, int rounds) {
    for (int round = 0; round < rounds; round++) {
        if (threadIdx.x == 0) {
            while (atomicCAS(&shared->lock, 0, 1) != 0) {
            }
            __threadfence();
        }
        __syncthreads();
        shared->slots[threadIdx.x] += 1;
        if (threadIdx.x == 0) {
            int entry = shared->entries;
            shared->entries = entry + 1;
            order[entry] = blockIdx.x;
            if (shared->checksum != shared->checksum_copy) shared->torn += 1;
            unsigned checksum = shared->checksum * 31 + blockIdx.x;
            shared->checksum = checksum;
            shared->checksum_copy = checksum;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicExch(&shared->lock, 0);
        }
    }
}

int main(int argc, char** argv) {
    int blocks = argument(argc, argv, 1, 24, 65535);
    int rounds = argument(argc, argv, 2, 2);
    Buffer<Protected> shared(1);
    Buffer<int> order(size_t(blocks) * rounds);
    shared.clear();
    order.clear();
    increment_under_lock<<<blocks, THREADS>>>(shared, order, rounds);
    CHECK_LAUNCH();

    Protected result = shared.read_one();
    std::vector<int> entered(blocks, 0);
    unsigned checksum = 0;
    for (int block : order.read()) {
        if (block >= 0 && block < blocks) entered[block]++;
        checksum = checksum * 31 + block;
    }
    bool passed = result.lock == 0 && result.entries == blocks * rounds && result.torn == 0 &&
                  result.checksum == checksum && result.checksum_copy == checksum;
    for (int count : entered) passed = passed && count == rounds;
    for (int slot : result.slots) passed = passed && slot == blocks * rounds;
    return verdict("spin_lock", passed, "%d blocks, %d rounds, %d entries, %d torn", blocks, rounds, result.entries,
                   result.torn);
}
