// All-reduce over one GPU of each of several processes with NVIDIA's own NCCL, as it comes from PyPI.
//
// Usage: nccl_processes PROCESSES [elements]      forks them; needs as many GPUs: lockstep run --gpus PROCESSES
//        nccl_processes FOLDER [elements]         is one process of `mpirun`, which passes on the rank; FOLDER must
//                                                 exist
//
// It is not among the workloads, since it needs a library that is not ours: see docs/book/several_gpus.md.
#include "../../workloads/common/workload.cuh"
#include "nccl_ranks.cuh"

using namespace workload;

// What one process does.
static int all_reduce(int rank, int ranks, int count, const ncclUniqueId& id) {
    CHECK(cudaSetDevice(rank));
    ncclComm_t communicator;
    CHECK_NCCL(ncclCommInitRank(&communicator, ranks, id, rank));
    std::vector<float> own(count), got(count), wanted(count);
    // Small whole numbers: sums are exact in any order.
    for (int i = 0; i < count; i++) {
        for (int other = 0; other < ranks; other++) wanted[i] += static_cast<float>(i % 1000 + 1000 * other);
        own[i] = static_cast<float>(i % 1000 + 1000 * rank);
    }
    float *in, *out;
    cudaStream_t stream;
    size_t bytes = count * sizeof(float);
    CHECK(cudaMalloc(&in, bytes));
    CHECK(cudaMalloc(&out, bytes));
    CHECK(cudaStreamCreate(&stream));
    CHECK(cudaMemcpy(in, own.data(), bytes, cudaMemcpyHostToDevice));
    CHECK_NCCL(ncclAllReduce(in, out, count, ncclFloat, ncclSum, communicator, stream));
    CHECK(cudaStreamSynchronize(stream));
    CHECK(cudaMemcpy(got.data(), out, bytes, cudaMemcpyDeviceToHost));
    size_t wrong = mismatches(got, wanted);
    CHECK_NCCL(ncclCommDestroy(communicator));
    return verdict("nccl_processes", wrong == 0, "rank %d of %d, %d elements, %zu wrong", rank, ranks, count, wrong);
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 2, 4096);
    const char *rank = std::getenv("OMPI_COMM_WORLD_RANK"), *ranks = std::getenv("OMPI_COMM_WORLD_SIZE");
    auto work = [&](int rank, int ranks, const ncclUniqueId& id) { return all_reduce(rank, ranks, count, id); };
    if (argc > 1 && rank && ranks) return one_of_mpirun(argv[1], std::atoi(rank), std::atoi(ranks), work);
    return fork_all(argument(argc, argv, 1, 2), work);
}
