// Every GPU hands its block to the next one, all at the same time, until each has seen all blocks.
//
// Usage: peer_copy_ring [elements of a block]      needs two GPUs or more: lockstep run --gpus 4
#include "../common/workload.cuh"

using namespace workload;

extern "C" __global__ void accumulate(const int* block, int* sum, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) sum[i] += block[i];
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 16384);
    int gpus = 0;
    CHECK(cudaGetDeviceCount(&gpus));
    if (gpus < 2) return verdict("peer_copy_ring", false, "needs two GPUs, found %d", gpus);

    size_t bytes = count * sizeof(int);
    // Two blocks a GPU: the one it works on, and the one that arrives.
    std::vector<int*> blocks[2] = {std::vector<int*>(gpus), std::vector<int*>(gpus)};
    std::vector<int*> sums(gpus);
    std::vector<cudaStream_t> streams(gpus);
    std::vector<cudaEvent_t> arrived(gpus);
    std::vector<int> wanted(count);
    for (int gpu = 0; gpu < gpus; gpu++) {
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaStreamCreate(&streams[gpu]));
        CHECK(cudaEventCreateWithFlags(&arrived[gpu], cudaEventDisableTiming));
        for (auto& side : blocks) CHECK(cudaMalloc(&side[gpu], bytes));
        CHECK(cudaMalloc(&sums[gpu], bytes));
        CHECK(cudaMemset(sums[gpu], 0, bytes));
        std::vector<int> own(count);
        Random random(gpu + 1);
        for (int i = 0; i < count; i++) wanted[i] += own[i] = random.below(1000);
        CHECK(cudaMemcpy(blocks[0][gpu], own.data(), bytes, cudaMemcpyHostToDevice));
    }
    for (int round = 0; round < gpus; round++) {
        auto &here = blocks[round % 2], &there = blocks[(round + 1) % 2];
        for (int gpu = 0; gpu < gpus; gpu++) {
            CHECK(cudaSetDevice(gpu));
            accumulate<<<blocks_for(count, 256), 256, 0, streams[gpu]>>>(here[gpu], sums[gpu], count);
            CHECK_LAUNCH();
            int next = (gpu + 1) % gpus;
            // Odd rounds leave it to the driver to see that the memory is on two GPUs.
            if (round % 2 == 0) {
                CHECK(cudaMemcpyPeerAsync(there[next], next, here[gpu], gpu, bytes, streams[gpu]));
            } else {
                CHECK(cudaMemcpyAsync(there[next], here[gpu], bytes, cudaMemcpyDefault, streams[gpu]));
            }
            CHECK(cudaEventRecord(arrived[gpu], streams[gpu]));
        }
        for (int gpu = 0; gpu < gpus; gpu++) {
            CHECK(cudaSetDevice(gpu));
            // What arrives from before, and what the next one must have taken before it is overwritten.
            CHECK(cudaStreamWaitEvent(streams[gpu], arrived[(gpu + gpus - 1) % gpus], 0));
            CHECK(cudaStreamWaitEvent(streams[gpu], arrived[(gpu + 1) % gpus], 0));
        }
    }
    size_t wrong = 0;
    for (int gpu = 0; gpu < gpus; gpu++) {
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaStreamSynchronize(streams[gpu]));
        std::vector<int> got(count);
        CHECK(cudaMemcpy(got.data(), sums[gpu], bytes, cudaMemcpyDeviceToHost));
        wrong += mismatches(got, wanted);
    }
    return verdict("peer_copy_ring", wrong == 0, "%d GPUs, blocks of %zu bytes, %zu wrong", gpus, bytes, wrong);
}
