// Message passing: one thread writes data, then a flag; another reads the flag, then the data.
//
// Forbidden when the accesses are ordered (fences, or release and acquire): the flag is seen and the data is not.
// The last variant orders nothing and only counts.
//
// Usage: message_passing [seed] [repetitions]
#include <cuda/atomic>

#include "../litmus.cuh"

using namespace litmus;
using workload::Buffer;

constexpr int PAIRS = 16;
constexpr int STRIDE = 2 * LINE;  // data, then flag, on lines of their own

enum Variant { FENCES, RELEASE_ACQUIRE, ATOMIC_REFERENCE, WAITING, WITHIN_BLOCK, UNORDERED, VARIANTS };
const char* const NAMES[VARIANTS] = {"fences", "release/acquire", "atomic_ref", "waiting", "within block", "unordered"};

template <int variant>
__device__ void write_message(int* data, int* flag) {
    if (variant == RELEASE_ACQUIRE) {
        *data = 1;
        store_release(flag, 1);
    } else if (variant == ATOMIC_REFERENCE) {
        *data = 1;
        cuda::atomic_ref<int, cuda::thread_scope_device>(*flag).store(1, cuda::memory_order_release);
    } else {
        *(volatile int*)data = 1;
        if (variant == FENCES || variant == WAITING) __threadfence();
        if (variant == WITHIN_BLOCK) __threadfence_block();
        *(volatile int*)flag = 1;
    }
}

template <int variant>
__device__ void read_message(int* data, int* flag, int* seen) {
    int flag_seen, data_seen;
    if (variant == RELEASE_ACQUIRE) {
        flag_seen = load_acquire(flag);
        data_seen = flag_seen ? *data : 0;
    } else if (variant == ATOMIC_REFERENCE) {
        flag_seen = cuda::atomic_ref<int, cuda::thread_scope_device>(*flag).load(cuda::memory_order_acquire);
        data_seen = flag_seen ? *data : 0;
    } else {
        do {
            flag_seen = *(volatile int*)flag;
        } while (variant == WAITING && flag_seen == 0);
        if (variant == FENCES || variant == WAITING) __threadfence();
        if (variant == WITHIN_BLOCK) __threadfence_block();
        data_seen = *(volatile int*)data;
    }
    seen[0] = flag_seen;
    seen[1] = data_seen;
}

// Two blocks a pair (or two warps of one block); which one writes depends on the seed.
template <int variant>
__global__ void message_passing(int* locations, int* seen, unsigned seed) {
    bool within_block = variant == WITHIN_BLOCK;
    int agent = within_block ? blockIdx.x * 2 + threadIdx.x / 32 : blockIdx.x;
    if (threadIdx.x % 32 != 0) return;
    int pair = agent / 2;
    bool writes = (agent ^ mix(seed, pair)) & 1;
    int* data = locations + pair * STRIDE;
    int* flag = data + LINE;
    jitter(seed, agent, 0);
    if (writes)
        write_message<variant>(data, flag);
    else
        read_message<variant>(data, flag, seen + pair * 2);
}

template <int variant>
Outcomes run(const Arguments& arguments) {
    Buffer<int> locations(PAIRS * STRIDE), seen(PAIRS * 2);
    Outcomes outcomes;
    for (int repetition = 0; repetition < arguments.repetitions; repetition++) {
        locations.clear();
        bool within_block = variant == WITHIN_BLOCK;
        message_passing<variant>
            <<<within_block ? PAIRS : PAIRS * 2, within_block ? 64 : 32>>>(locations, seen, arguments.at(repetition));
        CHECK_LAUNCH();
        std::vector<int> result = seen.read();
        for (int pair = 0; pair < PAIRS; pair++) outcomes.add(result[pair * 2], result[pair * 2 + 1]);
    }
    return outcomes;
}

int main(int argc, char** argv) {
    Arguments arguments(argc, argv);
    Outcomes outcomes[VARIANTS] = {run<FENCES>(arguments),       run<RELEASE_ACQUIRE>(arguments),
                                   run<ATOMIC_REFERENCE>(arguments), run<WAITING>(arguments),
                                   run<WITHIN_BLOCK>(arguments), run<UNORDERED>(arguments)};
    long forbidden = 0;
    for (int variant = 0; variant < VARIANTS; variant++) {
        outcomes[variant].print(NAMES[variant]);
        if (variant != UNORDERED) forbidden += outcomes[variant].counts[1][0];
    }
    std::printf("(flag, data)\n");
    return workload::verdict("message_passing", forbidden == 0, "seed %u, %d repetitions, %ld forbidden outcomes",
                             arguments.seed, arguments.repetitions, forbidden);
}
