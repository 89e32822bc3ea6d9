// All-reduce over one GPU of each of several processes with NVIDIA's own NCCL, as it comes from PyPI.
//
// Usage: nccl_processes PROCESSES [elements]      forks them; needs as many GPUs: lockstep run --gpus PROCESSES
//        nccl_processes FOLDER [elements]         is one process of `mpirun`, which passes on the rank
//
// NCCL's identifier of the group goes from the first process to the others over pipes: those of a fork, or named ones
// in FOLDER, which must exist. It is not among the workloads, since it needs a library that is not ours: see
// docs/book/several_processes.md.
#include "../../workloads/common/workload.cuh"
#include "nccl.cuh"

#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <string>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace workload;

// Ends the program with the place and the system's own sentence when a call fails.
#define CHECK_SYSTEM(call)                                                                            \
    do {                                                                                              \
        if ((call) < 0) {                                                                             \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, std::strerror(errno)); \
            std::exit(2);                                                                             \
        }                                                                                             \
    } while (0)

static void send(int pipe, const ncclUniqueId& id) {
    // Shorter than what a pipe takes at once.
    if (write(pipe, &id, sizeof id) != sizeof id) CHECK_SYSTEM(-1);
}

static ncclUniqueId receive(int pipe) {
    ncclUniqueId id;
    size_t got = 0;
    while (got < sizeof id) {
        ssize_t more = read(pipe, reinterpret_cast<char*>(&id) + got, sizeof id - got);
        CHECK_SYSTEM(more);
        if (more == 0) std::fprintf(stderr, "nccl_processes: the first process has gone\n"), std::exit(2);
        got += more;
    }
    return id;
}

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

static int fork_all(int ranks, int count) {
    std::vector<int> readers(ranks), writers(ranks);
    for (int rank = 1; rank < ranks; rank++) {
        int ends[2];
        CHECK_SYSTEM(pipe(ends));
        readers[rank] = ends[0], writers[rank] = ends[1];
    }
    for (int rank = 0; rank < ranks; rank++) {
        pid_t child = fork();
        CHECK_SYSTEM(child);
        if (child > 0) continue;
        ncclUniqueId id;
        if (rank > 0) {
            id = receive(readers[rank]);
        } else {
            CHECK_NCCL(ncclGetUniqueId(&id));
            for (int other = 1; other < ranks; other++) send(writers[other], id);
        }
        std::exit(all_reduce(rank, ranks, count, id));
    }
    int failed = 0, status = 0;
    for (int rank = 0; rank < ranks; rank++) {
        CHECK_SYSTEM(wait(&status));
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    return failed > 0;
}

static int one_of_mpirun(const std::string& folder, int rank, int ranks, int count) {
    auto name = [&](int rank) { return folder + "/" + std::to_string(rank); };
    auto opened = [&](int rank, int how) {
        if (mkfifo(name(rank).c_str(), 0600) < 0 && errno != EEXIST) CHECK_SYSTEM(-1);
        int pipe = open(name(rank).c_str(), how);
        CHECK_SYSTEM(pipe);
        return pipe;
    };
    ncclUniqueId id;
    if (rank > 0) {
        id = receive(opened(rank, O_RDONLY));
        CHECK_SYSTEM(unlink(name(rank).c_str()));
    } else {
        CHECK_NCCL(ncclGetUniqueId(&id));
        for (int other = 1; other < ranks; other++) send(opened(other, O_WRONLY), id);
    }
    return all_reduce(rank, ranks, count, id);
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 2, 4096);
    const char *rank = std::getenv("OMPI_COMM_WORLD_RANK"), *ranks = std::getenv("OMPI_COMM_WORLD_SIZE");
    if (argc > 1 && rank && ranks) return one_of_mpirun(argv[1], std::atoi(rank), std::atoi(ranks), count);
    return fork_all(argument(argc, argv, 1, 2), count);
}
