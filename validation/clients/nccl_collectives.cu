// Collectives of NVIDIA's own NCCL, as it comes from PyPI, between the GPUs of one process or of several.
//
// Usage: nccl_collectives one|processes GPUS [elements] [collective...]
//
// With `processes` it forks one for each GPU. Without names it runs all collectives, one after the other, each over
// `elements` floats a GPU. Every element of every result is compared. It is not among the workloads, since it needs a
// library that is not ours: see docs/book/several_gpus.md.
#include "../../workloads/common/workload.cuh"
#include "nccl_ranks.cuh"

#include <algorithm>

using namespace workload;

// A rank of the group that lives in this process.
struct Member {
    int rank, ranks;
    ncclComm_t communicator;
    cudaStream_t stream;
};

// What rank `rank` has at `index`: small whole numbers, so that sums are exact in any order.
static float given(int rank, size_t index) { return static_cast<float>(index % 1000 + 1000 * rank); }

static float sum(int ranks, size_t index) {
    float total = 0;
    for (int rank = 0; rank < ranks; rank++) total += given(rank, index);
    return total;
}

struct Collective {
    const char* name;
    // Whether a rank gives, and gets, as many elements for each of all ranks.
    bool gives_for_each, gets_for_each;
    ncclResult_t (*start)(const Member&, const float* in, float* out, size_t count);
    // What a rank gets at an index.
    float (*wanted)(int rank, int ranks, size_t count, size_t index);
};

static ncclResult_t send_to_next(const Member& one, const float* in, float* out, size_t count) {
    int next = (one.rank + 1) % one.ranks, previous = (one.rank + one.ranks - 1) % one.ranks;
    ncclResult_t sent = ncclSend(in, count, ncclFloat, next, one.communicator, one.stream);
    return sent != ncclSuccess ? sent : ncclRecv(out, count, ncclFloat, previous, one.communicator, one.stream);
}

// The root is the last rank where there is one.
static const Collective collectives[] = {
    {"all_reduce", false, false,
     [](const Member& one, const float* in, float* out, size_t count) {
         return ncclAllReduce(in, out, count, ncclFloat, ncclSum, one.communicator, one.stream);
     },
     [](int, int ranks, size_t, size_t index) { return sum(ranks, index); }},
    {"all_gather", false, true,
     [](const Member& one, const float* in, float* out, size_t count) {
         return ncclAllGather(in, out, count, ncclFloat, one.communicator, one.stream);
     },
     [](int, int, size_t count, size_t index) { return given(static_cast<int>(index / count), index % count); }},
    {"reduce_scatter", true, false,
     [](const Member& one, const float* in, float* out, size_t count) {
         return ncclReduceScatter(in, out, count, ncclFloat, ncclSum, one.communicator, one.stream);
     },
     [](int rank, int ranks, size_t count, size_t index) { return sum(ranks, rank * count + index); }},
    {"broadcast", false, false,
     [](const Member& one, const float* in, float* out, size_t count) {
         return ncclBroadcast(in, out, count, ncclFloat, one.ranks - 1, one.communicator, one.stream);
     },
     [](int, int ranks, size_t, size_t index) { return given(ranks - 1, index); }},
    // Nobody but the root gets anything.
    {"reduce", false, false,
     [](const Member& one, const float* in, float* out, size_t count) {
         return ncclReduce(in, out, count, ncclFloat, ncclSum, one.ranks - 1, one.communicator, one.stream);
     },
     [](int rank, int ranks, size_t, size_t index) { return rank == ranks - 1 ? sum(ranks, index) : 0; }},
    {"all_to_all", true, true,
     [](const Member& one, const float* in, float* out, size_t count) {
         return ncclAlltoAll(in, out, count, ncclFloat, one.communicator, one.stream);
     },
     [](int rank, int, size_t count, size_t index) {
         return given(static_cast<int>(index / count), rank * count + index % count);
     }},
    {"send_receive", false, false, send_to_next,
     [](int rank, int ranks, size_t, size_t index) { return given((rank + ranks - 1) % ranks, index); }},
};

// Runs one collective for the ranks of this process; how many elements are wrong.
static size_t run(const Collective& collective, const std::vector<Member>& members, size_t count) {
    size_t ranks = members[0].ranks, wrong = 0;
    size_t gives = count * (collective.gives_for_each ? ranks : 1), gets = count * (collective.gets_for_each ? ranks : 1);
    std::vector<float*> in(members.size()), out(members.size());
    for (size_t place = 0; place < members.size(); place++) {
        std::vector<float> own(gives);
        for (size_t index = 0; index < gives; index++) own[index] = given(members[place].rank, index);
        CHECK(cudaSetDevice(members[place].rank));
        CHECK(cudaMalloc(&in[place], gives * sizeof(float)));
        CHECK(cudaMalloc(&out[place], gets * sizeof(float)));
        CHECK(cudaMemset(out[place], 0, gets * sizeof(float)));
        CHECK(cudaMemcpy(in[place], own.data(), gives * sizeof(float), cudaMemcpyHostToDevice));
    }
    CHECK_NCCL(ncclGroupStart());
    for (size_t place = 0; place < members.size(); place++)
        CHECK_NCCL(collective.start(members[place], in[place], out[place], count));
    CHECK_NCCL(ncclGroupEnd());
    for (size_t place = 0; place < members.size(); place++) {
        CHECK(cudaSetDevice(members[place].rank));
        CHECK(cudaStreamSynchronize(members[place].stream));
        std::vector<float> got(gets);
        CHECK(cudaMemcpy(got.data(), out[place], gets * sizeof(float), cudaMemcpyDeviceToHost));
        for (size_t index = 0; index < gets; index++)
            wrong += got[index] != collective.wanted(members[place].rank, static_cast<int>(ranks), count, index);
        CHECK(cudaFree(in[place]));
        CHECK(cudaFree(out[place]));
    }
    return wrong;
}

// Runs those that are named, or all, for the ranks of this process.
static int run_all(const std::vector<Member>& members, size_t count, const std::vector<std::string>& names) {
    int failed = 0;
    for (const Collective& collective : collectives) {
        bool named = names.empty();
        for (const std::string& name : names) named |= name == collective.name;
        if (!named) continue;
        size_t wrong = run(collective, members, count);
        failed += verdict(collective.name, wrong == 0, "from rank %d, %zu of %d GPUs, %zu elements, %zu wrong",
                          members[0].rank, members.size(), members[0].ranks, count, wrong);
        std::fflush(stdout);
    }
    for (const Member& one : members) CHECK_NCCL(ncclCommDestroy(one.communicator));
    return failed > 0;
}

static Member member(int rank, int ranks, ncclComm_t communicator) {
    Member one{rank, ranks, communicator, nullptr};
    CHECK(cudaSetDevice(rank));
    CHECK(cudaStreamCreate(&one.stream));
    return one;
}

int main(int argc, char** argv) {
    std::string place = argc > 1 ? argv[1] : "";
    int gpus = argument(argc, argv, 2, 2);
    size_t count = argument(argc, argv, 3, 256);
    std::vector<std::string> names(argv + std::min(argc, 4), argv + argc);
    for (const std::string& name : names) {
        bool known = false;
        for (const Collective& collective : collectives) known |= name == collective.name;
        if (!known) return std::fprintf(stderr, "no collective is called `%s`\n", name.c_str()), 2;
    }
    if (place == "processes") {
        return fork_all(gpus, [&](int rank, int ranks, const ncclUniqueId& id) {
            CHECK(cudaSetDevice(rank));
            ncclComm_t communicator;
            CHECK_NCCL(ncclCommInitRank(&communicator, ranks, id, rank));
            return run_all({member(rank, ranks, communicator)}, count, names);
        });
    }
    if (place != "one") return std::fprintf(stderr, "usage: nccl_collectives one|processes GPUS [elements] [collective...]\n"), 2;
    std::vector<ncclComm_t> communicators(gpus);
    CHECK_NCCL(ncclCommInitAll(communicators.data(), gpus, nullptr));
    std::vector<Member> members;
    for (int rank = 0; rank < gpus; rank++) members.push_back(member(rank, gpus, communicators[rank]));
    return run_all(members, count, names);
}
