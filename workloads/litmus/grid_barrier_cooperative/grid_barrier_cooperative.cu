// The barrier of the whole grid that cooperative groups offer, with a cooperative launch.
//
// Usage: grid_barrier_cooperative [seed] [repetitions]
#include <cooperative_groups.h>

#include "../litmus.cuh"

using namespace litmus;
using workload::Buffer;

constexpr int BLOCKS = 24;
constexpr int THREADS = 64;
constexpr int PHASES = 4;

// A ring sum: after each phase every word holds the sum of more neighbours of the phase before.
__global__ void ring_sums(int* first, int* second, unsigned seed) {
    cooperative_groups::grid_group grid = cooperative_groups::this_grid();
    constexpr int COUNT = BLOCKS * THREADS;
    int index = blockIdx.x * THREADS + threadIdx.x;
    int* from = first;
    int* to = second;
    for (int phase = 0; phase < PHASES; phase++) {
        jitter(seed, blockIdx.x, phase);
        int reach = THREADS << phase;
        to[index] = from[index] + from[(index + reach) % COUNT];
        grid.sync();
        int* swap = from;
        from = to;
        to = swap;
    }
}

int main(int argc, char** argv) {
    Arguments arguments(argc, argv, 4);
    constexpr int COUNT = BLOCKS * THREADS;
    std::vector<int> start(COUNT);
    for (int i = 0; i < COUNT; i++) start[i] = i * 31 + 7;
    std::vector<int> wanted = start;
    for (int phase = 0; phase < PHASES; phase++) {
        std::vector<int> next(COUNT);
        for (int i = 0; i < COUNT; i++) next[i] = wanted[i] + wanted[(i + (THREADS << phase)) % COUNT];
        wanted = next;
    }
    Buffer<int> first(start), second(COUNT);
    size_t wrong = 0;
    for (int repetition = 0; repetition < arguments.repetitions; repetition++) {
        first.write(start);
        second.clear();
        int* first_pointer = first;
        int* second_pointer = second;
        unsigned seed = arguments.at(repetition);
        void* parameters[] = {&first_pointer, &second_pointer, &seed};
        CHECK(cudaLaunchCooperativeKernel((void*)ring_sums, dim3(BLOCKS), dim3(THREADS), parameters, 0, nullptr));
        wrong += workload::mismatches(PHASES % 2 == 0 ? first.read() : second.read(), wanted);
    }
    return workload::verdict("grid_barrier_cooperative", wrong == 0, "seed %u, %d repetitions, %zu words wrong",
                             arguments.seed, arguments.repetitions, wrong);
}
