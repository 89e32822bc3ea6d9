// All-reduce over two GPUs of one process with NVIDIA's own NCCL, as it comes from PyPI.
//
// Usage: nccl_all_reduce [elements]      needs two GPUs: lockstep run --gpus 2
//
// It is not among the workloads, since it needs a library that is not ours: see docs/book/several_gpus.md.
#include "../../workloads/common/workload.cuh"
#include "nccl.cuh"

using namespace workload;

int main(int argc, char** argv) {
    const int gpus = 2;
    int count = argument(argc, argv, 1, 4096);
    int devices[gpus] = {0, 1};
    ncclComm_t communicators[gpus];
    CHECK_NCCL(ncclCommInitAll(communicators, gpus, devices));

    float *in[gpus], *out[gpus];
    cudaStream_t streams[gpus];
    std::vector<float> wanted(count);
    for (int gpu = 0; gpu < gpus; gpu++) {
        std::vector<float> own(count);
        // Small whole numbers: sums are exact in any order.
        for (int i = 0; i < count; i++) wanted[i] += own[i] = static_cast<float>(i % 1000 + 1000 * gpu);
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaMalloc(&in[gpu], count * sizeof(float)));
        CHECK(cudaMalloc(&out[gpu], count * sizeof(float)));
        CHECK(cudaStreamCreate(&streams[gpu]));
        CHECK(cudaMemcpy(in[gpu], own.data(), count * sizeof(float), cudaMemcpyHostToDevice));
    }
    CHECK_NCCL(ncclGroupStart());
    for (int gpu = 0; gpu < gpus; gpu++) {
        CHECK_NCCL(ncclAllReduce(in[gpu], out[gpu], count, ncclFloat, ncclSum, communicators[gpu], streams[gpu]));
    }
    CHECK_NCCL(ncclGroupEnd());
    size_t wrong = 0;
    for (int gpu = 0; gpu < gpus; gpu++) {
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaStreamSynchronize(streams[gpu]));
        std::vector<float> got(count);
        CHECK(cudaMemcpy(got.data(), out[gpu], count * sizeof(float), cudaMemcpyDeviceToHost));
        wrong += mismatches(got, wanted);
    }
    for (ncclComm_t communicator : communicators) CHECK_NCCL(ncclCommDestroy(communicator));
    return verdict("nccl_all_reduce", wrong == 0, "%d elements on %d GPUs, %zu wrong", count, gpus, wrong);
}
