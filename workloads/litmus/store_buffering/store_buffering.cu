// Store buffering: each of two threads writes its own location, then reads the other's.
//
// Forbidden with a sequentially consistent fence between: both read the old value. Without one, all is allowed.
//
// Usage: store_buffering [seed] [repetitions]
#include "../litmus.cuh"

using namespace litmus;
using workload::Buffer;

constexpr int PAIRS = 16;
constexpr int STRIDE = 2 * LINE;

enum Variant { FENCES, ATOMICS, WITHIN_BLOCK, UNORDERED, VARIANTS };
const char* const NAMES[VARIANTS] = {"fences", "atomics and fences", "within block", "unordered"};

template <int variant>
__global__ void store_buffering(int* locations, int* seen, unsigned seed) {
    bool within_block = variant == WITHIN_BLOCK;
    int agent = within_block ? blockIdx.x * 2 + threadIdx.x / 32 : blockIdx.x;
    if (threadIdx.x % 32 != 0) return;
    int pair = agent / 2;
    int side = agent % 2;
    int* mine = locations + pair * STRIDE + side * LINE;
    int* other = locations + pair * STRIDE + (1 - side) * LINE;
    jitter(seed, agent, 0);
    int value;
    if (variant == ATOMICS) {
        atomicExch(mine, 1);
        __threadfence();
        value = atomicAdd(other, 0);
    } else {
        store_relaxed(mine, 1);
        if (variant == FENCES) __threadfence();
        if (variant == WITHIN_BLOCK) __threadfence_block();
        value = load_relaxed(other);
    }
    seen[agent] = value;
}

template <int variant>
Outcomes run(const Arguments& arguments) {
    Buffer<int> locations(PAIRS * STRIDE), seen(PAIRS * 2);
    Outcomes outcomes;
    for (int repetition = 0; repetition < arguments.repetitions; repetition++) {
        locations.clear();
        bool within_block = variant == WITHIN_BLOCK;
        store_buffering<variant>
            <<<within_block ? PAIRS : PAIRS * 2, within_block ? 64 : 32>>>(locations, seen, arguments.at(repetition));
        CHECK_LAUNCH();
        std::vector<int> result = seen.read();
        for (int pair = 0; pair < PAIRS; pair++) outcomes.add(result[pair * 2], result[pair * 2 + 1]);
    }
    return outcomes;
}

int main(int argc, char** argv) {
    Arguments arguments(argc, argv);
    Outcomes outcomes[VARIANTS] = {run<FENCES>(arguments), run<ATOMICS>(arguments), run<WITHIN_BLOCK>(arguments),
                                   run<UNORDERED>(arguments)};
    long forbidden = 0;
    for (int variant = 0; variant < VARIANTS; variant++) {
        outcomes[variant].print(NAMES[variant]);
        if (variant != UNORDERED) forbidden += outcomes[variant].counts[0][0];
    }
    std::printf("(first, second)\n");
    return workload::verdict("store_buffering", forbidden == 0, "seed %u, %d repetitions, %ld forbidden outcomes",
                             arguments.seed, arguments.repetitions, forbidden);
}
