// One thread's accesses to one location keep their order, whether they are reductions, atomics, plain or volatile,
// even while other multiprocessors change neighbouring words of the same sector.
//
// Usage: reduction_then_store [seed] [repetitions]
#include "../litmus.cuh"

using namespace litmus;
using workload::Buffer;

constexpr int BLOCKS = 16;
constexpr int THREADS = 64;
// What each thread does to its own word, and what must be left there; `seen` is what the thread read back.
enum Case { REDUCTION_STORE, STORE_REDUCTION, ATOMIC_LOAD, STORE_ATOMIC_LOAD, REDUCTION_VOLATILE, LONG_MIX, CASES };
const char* const NAMES[CASES] = {"reduction then store", "store then reduction",  "atomic then load",
                                  "store, atomic, load",  "reduction then volatile load", "long mix"};

// Words of different blocks alternate, so that every sector is shared by two to eight multiprocessors.
__global__ void same_thread_order(int* words, int* seen, unsigned seed, int which) {
    int word = threadIdx.x * BLOCKS + blockIdx.x;
    int* p = words + word;
    int value = 1000 + word;
    jitter(seed, word, 0);
    switch (which) {
        case REDUCTION_STORE:
            atomicAdd(p, 5);
            *p = value;
            seen[word] = *p;
            break;
        case STORE_REDUCTION:
            *p = value;
            atomicAdd(p, 5);
            seen[word] = 0;
            break;
        case ATOMIC_LOAD: {
            int before = atomicAdd(p, value);
            seen[word] = *p - before;
            break;
        }
        case STORE_ATOMIC_LOAD: {
            *p = 3;
            int before = atomicExch(p, value);
            seen[word] = *p * 10 + before;
            break;
        }
        case REDUCTION_VOLATILE:
            atomicAdd(p, value);
            seen[word] = *(volatile int*)p;
            break;
        case LONG_MIX: {
            int sum = 0;
            for (int i = 0; i < 4; i++) {
                atomicAdd(p, 1);
                sum = sum * 3 + *p;
                *p = *p * 2;
                jitter(seed, word, i + 1);
                sum = sum * 3 + atomicAdd(p, 1);
            }
            seen[word] = sum;
            break;
        }
    }
}

// The same program on one word, alone.
static void expected(int which, int value, int& left, int& seen) {
    left = value;
    seen = 0;
    switch (which) {
        case REDUCTION_STORE: seen = value; break;
        case STORE_REDUCTION: left = value + 5; break;
        case ATOMIC_LOAD: seen = value; break;
        case STORE_ATOMIC_LOAD: seen = value * 10 + 3; break;
        case REDUCTION_VOLATILE: seen = value; break;
        case LONG_MIX:
            left = 0;
            for (int i = 0; i < 4; i++) {
                left += 1;
                seen = seen * 3 + left;
                left *= 2;
                seen = seen * 3 + left;
                left += 1;
            }
            break;
    }
}

int main(int argc, char** argv) {
    Arguments arguments(argc, argv, 4);
    Buffer<int> words(BLOCKS * THREADS), seen(BLOCKS * THREADS);
    long forbidden = 0;
    for (int which = 0; which < CASES; which++) {
        long wrong_left = 0;
        long wrong_seen = 0;
        for (int repetition = 0; repetition < arguments.repetitions; repetition++) {
            words.clear();
            same_thread_order<<<BLOCKS, THREADS>>>(words, seen, arguments.at(repetition), which);
            CHECK_LAUNCH();
            std::vector<int> left = words.read();
            std::vector<int> read = seen.read();
            for (int word = 0; word < BLOCKS * THREADS; word++) {
                int wanted_left, wanted_seen;
                expected(which, 1000 + word, wanted_left, wanted_seen);
                wrong_left += left[word] != wanted_left;
                wrong_seen += read[word] != wanted_seen;
            }
        }
        std::printf("%s: wrong left %ld, wrong seen %ld; ", NAMES[which], wrong_left, wrong_seen);
        forbidden += wrong_left + wrong_seen;
    }
    std::printf("\n");
    return workload::verdict("reduction_then_store", forbidden == 0, "seed %u, %d repetitions, %ld forbidden outcomes",
                             arguments.seed, arguments.repetitions, forbidden);
}
