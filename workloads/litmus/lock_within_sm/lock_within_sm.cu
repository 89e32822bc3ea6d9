// A lock that the warps of one block take from each other: they share a multiprocessor and its L1 cache.
//
// Usage: lock_within_sm [seed] [repetitions]
#include "../locks.cuh"

using namespace litmus;
using workload::Buffer;

constexpr int WARPS = 16;
constexpr int ROUNDS = 2;

template <typename Lock>
__global__ void contend_within_block(int* lock, int* words, unsigned seed) {
    if (threadIdx.x % 32 != 0) return;
    for (int round = 0; round < ROUNDS; round++) {
        jitter(seed, threadIdx.x, round);
        int ticket = Lock::acquire(lock);
        update_under_lock(words, seed, threadIdx.x);
        Lock::release(lock, ticket);
    }
}

template <typename Lock>
long run(const Arguments& arguments) {
    Buffer<int> lock(LINE), words(LINE);
    long lost = 0;
    for (int repetition = 0; repetition < arguments.repetitions; repetition++) {
        lock.clear();
        words.clear();
        contend_within_block<Lock><<<1, WARPS * 32>>>(lock, words, arguments.at(repetition));
        CHECK_LAUNCH();
        lost += damage(words.read(), 0, WARPS * ROUNDS);
    }
    return lost;
}

int main(int argc, char** argv) {
    Arguments arguments(argc, argv, 4);
    long test_and_set = run<TestAndSet>(arguments);
    long ticket = run<Ticket>(arguments);
    long acquire_release = run<AcquireRelease>(arguments);
    std::printf("lost or torn: test-and-set %ld, ticket %ld, acquire/release %ld\n", test_and_set, ticket, acquire_release);
    return workload::verdict("lock_within_sm", test_and_set + ticket + acquire_release == 0, "seed %u, %d repetitions",
                             arguments.seed, arguments.repetitions);
}
