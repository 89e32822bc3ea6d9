// Locks that blocks on different multiprocessors take from each other, and one that every thread of them takes.
//
// Usage: lock_across_sms [seed] [repetitions]
#include "../locks.cuh"

using namespace litmus;
using workload::Buffer;

constexpr int BLOCKS = 24;
constexpr int ROUNDS = 2;

template <typename Lock>
__global__ void contend_across_blocks(int* lock, int* words, unsigned seed) {
    if (threadIdx.x != 0) return;
    for (int round = 0; round < ROUNDS; round++) {
        jitter(seed, blockIdx.x, round);
        int ticket = Lock::acquire(lock);
        update_under_lock(words, seed, blockIdx.x);
        Lock::release(lock, ticket);
    }
}

// Every thread of every block: divergence inside warps and contention between multiprocessors at once.
__global__ void contend_everywhere(int* lock, int* words, unsigned seed) {
    unsigned role = blockIdx.x * blockDim.x + threadIdx.x;
    jitter(seed, role, 0);
    bool done = false;
    while (!done) {
        if (atomicCAS(lock, 0, 1) == 0) {
            __threadfence();
            update_under_lock(words, seed, role);
            __threadfence();
            atomicExch(lock, 0);
            done = true;
        }
    }
}

template <typename Launch>
long run(const Arguments& arguments, int entries, Launch launch) {
    Buffer<int> lock(LINE), words(LINE);
    long lost = 0;
    for (int repetition = 0; repetition < arguments.repetitions; repetition++) {
        lock.clear();
        words.clear();
        launch(lock.get(), words.get(), arguments.at(repetition));
        CHECK_LAUNCH();
        lost += damage(words.read(), 0, entries);
    }
    return lost;
}

int main(int argc, char** argv) {
    Arguments arguments(argc, argv, 3);
    long test_and_set = run(arguments, BLOCKS * ROUNDS, [](int* lock, int* words, unsigned seed) {
        contend_across_blocks<TestAndSet><<<BLOCKS, 32>>>(lock, words, seed);
    });
    long ticket = run(arguments, BLOCKS * ROUNDS, [](int* lock, int* words, unsigned seed) {
        contend_across_blocks<Ticket><<<BLOCKS, 32>>>(lock, words, seed);
    });
    long acquire_release = run(arguments, BLOCKS * ROUNDS, [](int* lock, int* words, unsigned seed) {
        contend_across_blocks<AcquireRelease><<<BLOCKS, 32>>>(lock, words, seed);
    });
    long everywhere = run(arguments, 4 * 32, [](int* lock, int* words, unsigned seed) {
        contend_everywhere<<<4, 32>>>(lock, words, seed);
    });
    std::printf("lost or torn: test-and-set %ld, ticket %ld, acquire/release %ld, every thread %ld\n", test_and_set, ticket,
                acquire_release, everywhere);
    return workload::verdict("lock_across_sms", test_and_set + ticket + acquire_release + everywhere == 0,
                             "seed %u, %d repetitions", arguments.seed, arguments.repetitions);
}
