// A barrier of the whole grid made of an atomic counter: after it, every block sees what every other wrote before it.
// All blocks must be resident at once, as on hardware, so the grid is small.
//
// Usage: grid_barrier [seed] [repetitions]
#include "../litmus.cuh"

using namespace litmus;
using workload::Buffer;

constexpr int BLOCKS = 24;
constexpr int THREADS = 64;
constexpr int PHASES = 4;

// Arrivals only ever grow; a block waits until all blocks of this phase have come.
__device__ void wait_for_grid(int* arrivals, int phase) {
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrivals, 1);
        while (*(volatile int*)arrivals < (phase + 1) * BLOCKS) {
        }
        __threadfence();
    }
    __syncthreads();
}

// Each phase writes with plain stores and reads the words of another block, which changes with the phase.
__global__ void rotate_through_barrier(int* arrivals, int* first, int* second, unsigned seed) {
    int index = blockIdx.x * THREADS + threadIdx.x;
    int* from = first;
    int* to = second;
    for (int phase = 0; phase < PHASES; phase++) {
        jitter(seed, blockIdx.x, phase);
        int source = ((blockIdx.x + phase * 7 + 1) % BLOCKS) * THREADS + (threadIdx.x + phase) % THREADS;
        to[index] = from[source] * 3 + index;
        wait_for_grid(arrivals, phase);
        int* swap = from;
        from = to;
        to = swap;
    }
}

int main(int argc, char** argv) {
    Arguments arguments(argc, argv, 4);
    constexpr int COUNT = BLOCKS * THREADS;
    std::vector<int> start(COUNT);
    for (int i = 0; i < COUNT; i++) start[i] = i * 17;
    std::vector<int> wanted = start;
    for (int phase = 0; phase < PHASES; phase++) {
        std::vector<int> next(COUNT);
        for (int i = 0; i < COUNT; i++) {
            int source = ((i / THREADS + phase * 7 + 1) % BLOCKS) * THREADS + (i % THREADS + phase) % THREADS;
            next[i] = wanted[source] * 3 + i;
        }
        wanted = next;
    }
    Buffer<int> arrivals(LINE), first(start), second(COUNT);
    size_t wrong = 0;
    for (int repetition = 0; repetition < arguments.repetitions; repetition++) {
        arrivals.clear();
        first.write(start);
        second.clear();
        rotate_through_barrier<<<BLOCKS, THREADS>>>(arrivals, first, second, arguments.at(repetition));
        CHECK_LAUNCH();
        wrong += workload::mismatches(PHASES % 2 == 0 ? first.read() : second.read(), wanted);
    }
    return workload::verdict("grid_barrier", wrong == 0, "seed %u, %d repetitions, %zu words wrong", arguments.seed,
                             arguments.repetitions, wrong);
}
