// A collective of NCCL over all GPUs of one process, for growing sizes: every element is compared, times are simulated.
//
// Usage: collective_sizes COLLECTIVE FIRST_KIB LAST_KIB [launches]      lockstep run --gpus N
//
// COLLECTIVE is all_reduce, all_gather, reduce_scatter, broadcast or all_to_all. Sizes grow by four. As in nccl-tests a
// size is that of the larger side of a GPU, the first launch of each size is not timed, and bus bandwidth is what a link
// of each GPU must carry in one direction.
#include "../../validation/clients/nccl.cuh"
#include "../../workloads/common/workload.cuh"

#include <functional>
#include <string>

using namespace workload;

// What a GPU has.
struct Rank {
    ncclComm_t communicator;
    cudaStream_t stream;
    float *in, *out;
    cudaEvent_t begin, end;
};

// One of NCCL's collectives.
struct Collective {
    const char* name;
    // Whether each GPU gives, and gets, one part of the whole.
    bool gives_part, gets_part;
    // Bus bandwidth over bytes by time, for so many GPUs.
    double (*factor)(int);
    void (*call)(const Rank&, size_t count, int gpus);
    // The element at `index` of `rank`, where GPU `from` gave (from + 1) * 1000 + index % 1000.
    double (*wanted)(int rank, size_t index, size_t count, int gpus);
};

static double given(int from, size_t index) { return (from + 1) * 1000.0 + index % 1000; }

static double summed(size_t index, int gpus) {
    double sum = 0;
    for (int from = 0; from < gpus; from++) sum += given(from, index);
    return sum;
}

static double others(int gpus) { return double(gpus - 1) / gpus; }

static const Collective COLLECTIVES[] = {
    {"all_reduce", false, false, [](int gpus) { return 2 * others(gpus); },
     [](const Rank& rank, size_t count, int) {
         CHECK_NCCL(ncclAllReduce(rank.in, rank.out, count, ncclFloat, ncclSum, rank.communicator, rank.stream));
     },
     [](int, size_t index, size_t, int gpus) { return summed(index, gpus); }},
    {"all_gather", true, false, others,
     [](const Rank& rank, size_t count, int gpus) {
         CHECK_NCCL(ncclAllGather(rank.in, rank.out, count / gpus, ncclFloat, rank.communicator, rank.stream));
     },
     [](int, size_t index, size_t count, int gpus) { return given(index / (count / gpus), index % (count / gpus)); }},
    {"reduce_scatter", false, true, others,
     [](const Rank& rank, size_t count, int gpus) {
         CHECK_NCCL(ncclReduceScatter(rank.in, rank.out, count / gpus, ncclFloat, ncclSum, rank.communicator, rank.stream));
     },
     [](int rank, size_t index, size_t count, int gpus) { return summed(rank * (count / gpus) + index, gpus); }},
    {"broadcast", false, false, [](int) { return 1.0; },
     [](const Rank& rank, size_t count, int) {
         CHECK_NCCL(ncclBroadcast(rank.in, rank.out, count, ncclFloat, 0, rank.communicator, rank.stream));
     },
     [](int, size_t index, size_t, int) { return given(0, index); }},
    {"all_to_all", false, false, others,
     [](const Rank& rank, size_t count, int gpus) {
         size_t part = count / gpus;
         for (int peer = 0; peer < gpus; peer++) {
             CHECK_NCCL(ncclSend(rank.in + peer * part, part, ncclFloat, peer, rank.communicator, rank.stream));
             CHECK_NCCL(ncclRecv(rank.out + peer * part, part, ncclFloat, peer, rank.communicator, rank.stream));
         }
     },
     [](int rank, size_t index, size_t count, int gpus) {
         size_t part = count / gpus;
         return given(index / part, rank * part + index % part);
     }},
};

// Launches once on every GPU.
static void launch(const Collective& collective, const std::vector<Rank>& ranks, size_t count) {
    CHECK_NCCL(ncclGroupStart());
    for (const Rank& rank : ranks) collective.call(rank, count, ranks.size());
    CHECK_NCCL(ncclGroupEnd());
}

static size_t wrong(const Collective& collective, const std::vector<Rank>& ranks, size_t count) {
    int gpus = ranks.size();
    std::vector<float> got(collective.gets_part ? count / gpus : count);
    size_t wrong = 0;
    for (int gpu = 0; gpu < gpus; gpu++) {
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaMemcpy(got.data(), ranks[gpu].out, got.size() * sizeof(float), cudaMemcpyDeviceToHost));
        for (size_t i = 0; i < got.size(); i++) wrong += got[i] != collective.wanted(gpu, i, count, gpus);
    }
    return wrong;
}

int main(int argc, char** argv) {
    const Collective* collective = nullptr;
    for (const Collective& one : COLLECTIVES) {
        if (argc > 1 && std::string(argv[1]) == one.name) collective = &one;
    }
    if (collective == nullptr) return verdict("collective_sizes", false, "no such collective: %s", argc > 1 ? argv[1] : "none given");
    size_t first = size_t(argument(argc, argv, 2, 1)) << 10, last = size_t(argument(argc, argv, 3, 64)) << 10;
    int launches = argument(argc, argv, 4, 1);
    int gpus = 0;
    CHECK(cudaGetDeviceCount(&gpus));

    std::vector<Rank> ranks(gpus);
    std::vector<ncclComm_t> communicators(gpus);
    CHECK_NCCL(ncclCommInitAll(communicators.data(), gpus, nullptr));
    for (int gpu = 0; gpu < gpus; gpu++) {
        Rank& rank = ranks[gpu];
        rank.communicator = communicators[gpu];
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaStreamCreate(&rank.stream));
        CHECK(cudaMalloc(&rank.in, last));
        CHECK(cudaMalloc(&rank.out, last));
        CHECK(cudaEventCreate(&rank.begin));
        CHECK(cudaEventCreate(&rank.end));
        std::vector<float> values(last / sizeof(float));
        for (size_t i = 0; i < values.size(); i++) values[i] = given(gpu, i);
        CHECK(cudaMemcpy(rank.in, values.data(), last, cudaMemcpyHostToDevice));
    }
    std::printf("collective,gpus,bytes,microseconds,bus_gb_per_s,wrong\n");
    size_t all_wrong = 0;
    for (size_t bytes = first; bytes <= last; bytes *= 4) {
        size_t count = bytes / sizeof(float) / gpus * gpus;
        launch(*collective, ranks, count);
        for (int gpu = 0; gpu < gpus; gpu++) {
            CHECK(cudaSetDevice(gpu));
            CHECK(cudaStreamSynchronize(ranks[gpu].stream));
        }
        for (int gpu = 0; gpu < gpus; gpu++) CHECK(cudaEventRecord(ranks[gpu].begin, ranks[gpu].stream));
        for (int repeat = 0; repeat < launches; repeat++) launch(*collective, ranks, count);
        for (int gpu = 0; gpu < gpus; gpu++) CHECK(cudaEventRecord(ranks[gpu].end, ranks[gpu].stream));
        float longest = 0;
        for (int gpu = 0; gpu < gpus; gpu++) {
            float milliseconds = 0;
            CHECK(cudaSetDevice(gpu));
            CHECK(cudaStreamSynchronize(ranks[gpu].stream));
            CHECK(cudaEventElapsedTime(&milliseconds, ranks[gpu].begin, ranks[gpu].end));
            longest = milliseconds > longest ? milliseconds : longest;
        }
        size_t wrong_here = wrong(*collective, ranks, count);
        double seconds = longest / 1e3 / launches;
        std::printf("%s,%d,%zu,%.2f,%.1f,%zu\n", collective->name, gpus, count * sizeof(float), 1e6 * seconds,
                    count * sizeof(float) * collective->factor(gpus) / seconds / 1e9, wrong_here);
        std::fflush(stdout);
        all_wrong += wrong_here;
    }
    for (ncclComm_t communicator : communicators) CHECK_NCCL(ncclCommDestroy(communicator));
    return verdict("collective_sizes", all_wrong == 0, "%s on %d GPUs, %zu wrong", collective->name, gpus, all_wrong);
}
