// All-reduce over all GPUs of several simulated nodes, one process a node, with NVIDIA's own NCCL, as it comes from
// PyPI. Between nodes NCCL goes over sockets.
//
// Usage: nccl_nodes NODES GPUS [elements]      lockstep run --nodes NODES --gpus GPUS
//
// It is not among the workloads, since it needs a library that is not ours: see docs/book/clusters.md.
#include "../../workloads/common/workload.cuh"
#include "nccl_ranks.cuh"

using namespace workload;

// What the process of one node does.
static int all_reduce(int node, int nodes, int gpus, int count, const ncclUniqueId& id) {
    CHECK_SYSTEM(setenv("LOCKSTEP_NODE", std::to_string(node).c_str(), 1));
    int ranks = nodes * gpus, seen = 0;
    CHECK(cudaGetDeviceCount(&seen));
    if (seen != gpus) return verdict("nccl_nodes", false, "node %d has %d GPUs, not %d", node, seen, gpus);
    std::vector<ncclComm_t> communicators(gpus);
    CHECK_NCCL(ncclGroupStart());
    for (int gpu = 0; gpu < gpus; gpu++) {
        CHECK(cudaSetDevice(gpu));
        CHECK_NCCL(ncclCommInitRank(&communicators[gpu], ranks, id, node * gpus + gpu));
    }
    CHECK_NCCL(ncclGroupEnd());
    std::vector<float*> in(gpus), out(gpus);
    std::vector<cudaStream_t> streams(gpus);
    std::vector<float> own(count), got(count), wanted(count);
    size_t bytes = count * sizeof(float);
    // Small whole numbers: sums are exact in any order.
    auto value = [](int rank, int i) { return static_cast<float>(i % 1000 + 1000 * rank); };
    for (int i = 0; i < count; i++)
        for (int rank = 0; rank < ranks; rank++) wanted[i] += value(rank, i);
    for (int gpu = 0; gpu < gpus; gpu++) {
        for (int i = 0; i < count; i++) own[i] = value(node * gpus + gpu, i);
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaMalloc(&in[gpu], bytes));
        CHECK(cudaMalloc(&out[gpu], bytes));
        CHECK(cudaStreamCreate(&streams[gpu]));
        CHECK(cudaMemcpy(in[gpu], own.data(), bytes, cudaMemcpyHostToDevice));
    }
    CHECK_NCCL(ncclGroupStart());
    for (int gpu = 0; gpu < gpus; gpu++)
        CHECK_NCCL(ncclAllReduce(in[gpu], out[gpu], count, ncclFloat, ncclSum, communicators[gpu], streams[gpu]));
    CHECK_NCCL(ncclGroupEnd());
    size_t wrong = 0;
    for (int gpu = 0; gpu < gpus; gpu++) {
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaStreamSynchronize(streams[gpu]));
        CHECK(cudaMemcpy(got.data(), out[gpu], bytes, cudaMemcpyDeviceToHost));
        wrong += mismatches(got, wanted);
    }
    for (ncclComm_t communicator : communicators) CHECK_NCCL(ncclCommDestroy(communicator));
    return verdict("nccl_nodes", wrong == 0, "node %d of %d, %d GPUs each, %d elements, %zu wrong", node, nodes, gpus,
                   count, wrong);
}

int main(int argc, char** argv) {
    int nodes = argument(argc, argv, 1, 2), gpus = argument(argc, argv, 2, 1), count = argument(argc, argv, 3, 256);
    return fork_all(nodes, [&](int node, int nodes, const ncclUniqueId& id) {
        return all_reduce(node, nodes, gpus, count, id);
    });
}
