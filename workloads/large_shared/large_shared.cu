// Shared memory beyond 48 KB, asked for when the kernel is launched: a table of counters that fits only there.
// Also reads what the device says about its limits.
//
// Usage: large_shared [kilobytes of shared memory, at most 64] [blocks]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 256;

// Counts values of a stream modulo the number of counters that fit, then writes them out.
__global__ void count_in_shared(const unsigned* data, unsigned* counts, int per_block, int counters) {
    extern __shared__ unsigned table[];
    for (int i = threadIdx.x; i < counters; i += THREADS) table[i] = 0;
    __syncthreads();
    for (int i = threadIdx.x; i < per_block; i += THREADS)
        atomicAdd(&table[data[blockIdx.x * per_block + i] % counters], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < counters; i += THREADS) counts[blockIdx.x * counters + i] = table[i];
}

int main(int argc, char** argv) {
    int kilobytes = argument(argc, argv, 1, 64, 64);
    int blocks = argument(argc, argv, 2, 4, 4096);
    int bytes = kilobytes * 1024;
    int counters = bytes / int(sizeof(unsigned));
    int limit = 0;
    CHECK(cudaDeviceGetAttribute(&limit, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0));
    if (bytes > limit) return verdict("large_shared", false, "the device offers only %d bytes to a block", limit);
    CHECK(cudaFuncSetAttribute(count_in_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes));
    int resident = 0;
    CHECK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, count_in_shared, THREADS, bytes));

    int per_block = 8192;
    std::vector<unsigned> data(size_t(blocks) * per_block), wanted(size_t(blocks) * counters, 0);
    Random random(1);
    for (size_t i = 0; i < data.size(); i++) {
        data[i] = random.next();
        wanted[i / per_block * counters + data[i] % counters]++;
    }
    Buffer<unsigned> device_data(data), counts(wanted.size());
    count_in_shared<<<blocks, THREADS, bytes>>>(device_data, counts, per_block, counters);
    CHECK_LAUNCH();
    size_t wrong = mismatches(counts.read(), wanted);
    return verdict("large_shared", wrong == 0 && resident > 0, "%d KB a block, %d blocks, %zu counters wrong", kilobytes, blocks,
                   wrong);
}
