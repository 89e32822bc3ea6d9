// A lock that the threads of one warp take from each other, so that the warp must diverge and every thread still
// make progress. Written both as careful programs write it and as threads of their own would.
//
// Usage: lock_within_warp [seed] [repetitions]
#include "../litmus.cuh"

using namespace litmus;
using workload::Buffer;

constexpr int WARPS = 4;  // each with its own lock
constexpr int WORDS = LINE;

enum Form { TRY_AND_RETRY, WAIT_THEN_ENTER, SHARED_MEMORY, FORMS };
const char* const NAMES[FORMS] = {"try and retry", "wait then enter", "shared memory"};

// Reads and writes with plain accesses: only the lock keeps the sum right.
__device__ void critical_section(volatile int* protected_words, unsigned seed) {
    int count = protected_words[0];
    jitter(seed, threadIdx.x, count);
    protected_words[1] = protected_words[1] ^ threadIdx.x % 32;
    protected_words[0] = count + 1;
}

// do { if (taken) { … } } while (…): the release is inside the branch, so even lockstep execution ends.
__global__ void try_and_retry(int* locks, int* words, unsigned seed) {
    int warp = threadIdx.x / 32;
    int* lock = locks + warp * LINE;
    jitter(seed, threadIdx.x, 100);
    bool done = false;
    do {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            critical_section(words + warp * WORDS, seed);
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    } while (!done);
}

// while (not taken); … : ends only if the thread that holds the lock goes on while its warp waits.
__global__ void wait_then_enter(int* locks, int* words, unsigned seed) {
    int warp = threadIdx.x / 32;
    int* lock = locks + warp * LINE;
    jitter(seed, threadIdx.x, 100);
    while (atomicCAS(lock, 0, 1) != 0) {
    }
    __threadfence();
    critical_section(words + warp * WORDS, seed);
    __threadfence();
    atomicExch(lock, 0);
}

__global__ void shared_memory_lock(int*, int* words, unsigned seed) {
    __shared__ int lock[WARPS];
    __shared__ int protected_words[WARPS][2];
    int warp = threadIdx.x / 32;
    if (threadIdx.x % 32 == 0) {
        lock[warp] = 0;
        protected_words[warp][0] = 0;
        protected_words[warp][1] = 0;
    }
    __syncthreads();
    jitter(seed, threadIdx.x, 100);
    while (atomicCAS(&lock[warp], 0, 1) != 0) {
    }
    __threadfence_block();
    critical_section(protected_words[warp], seed);
    __threadfence_block();
    atomicExch(&lock[warp], 0);
    __syncthreads();
    if (threadIdx.x % 32 < 2) words[warp * WORDS + threadIdx.x % 32] = protected_words[warp][threadIdx.x % 32];
}

int main(int argc, char** argv) {
    Arguments arguments(argc, argv, 3);
    Buffer<int> locks(WARPS * LINE), words(WARPS * WORDS);
    long forbidden = 0;
    for (int form = 0; form < FORMS; form++) {
        long lost = 0;
        for (int repetition = 0; repetition < arguments.repetitions; repetition++) {
            locks.clear();
            words.clear();
            unsigned seed = arguments.at(repetition);
            if (form == TRY_AND_RETRY) try_and_retry<<<1, WARPS * 32>>>(locks, words, seed);
            if (form == WAIT_THEN_ENTER) wait_then_enter<<<1, WARPS * 32>>>(locks, words, seed);
            if (form == SHARED_MEMORY) shared_memory_lock<<<1, WARPS * 32>>>(locks, words, seed);
            CHECK_LAUNCH();
            std::vector<int> result = words.read();
            for (int warp = 0; warp < WARPS; warp++) lost += 32 - result[warp * WORDS];
            for (int lock : locks.read()) lost += lock;
        }
        std::printf("%s: lost updates %ld; ", NAMES[form], lost);
        forbidden += lost != 0;
    }
    std::printf("\n");
    return workload::verdict("lock_within_warp", forbidden == 0, "seed %u, %d repetitions, %ld forms lost updates",
                             arguments.seed, arguments.repetitions, forbidden);
}
