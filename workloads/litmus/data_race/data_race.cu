// Programs whose result depends on the order in which threads run. Nothing here has one right answer on
// hardware; a deterministic simulator must give the same digest every time, however many threads simulate.
//
// Usage: data_race [seed] [repetitions]
#include "../locks.cuh"

using namespace litmus;
using workload::Buffer;

constexpr int BLOCKS = 32;
constexpr int THREADS = 128;
constexpr int WORDS = 256;

// Plain read-modify-write without any order: updates are lost, which ones depends on timing.
__global__ void lose_updates(int* words, unsigned seed) {
    unsigned role = blockIdx.x * THREADS + threadIdx.x;
    for (int i = 0; i < 4; i++) {
        int word = mix(seed, role * 4 + i) % WORDS;
        words[word] = words[word] * 3 + role;
    }
}

// Sums of floats of very different size: rounding depends on the order of the atomics.
__global__ void sum_floats(float* words, unsigned seed) {
    unsigned role = blockIdx.x * THREADS + threadIdx.x;
    unsigned h = mix(seed, role);
    float value = __uint_as_float((96u + h % 48u) << 23 | (h >> 9));
    atomicAdd(&words[h % 16], value);
}

// The order in which blocks enter a lock.
__global__ void record_entries(int* lock, int* next, int* order, unsigned seed) {
    if (threadIdx.x != 0) return;
    jitter(seed, blockIdx.x, 0);
    int ticket = TestAndSet::acquire(lock);
    int entry = *next;
    order[entry] = blockIdx.x;
    *next = entry + 1;
    TestAndSet::release(lock, ticket);
}

// Who wins an exchange, and what a reader without order finds.
__global__ void exchange_winners(int* words, int* found, unsigned seed) {
    unsigned role = blockIdx.x * THREADS + threadIdx.x;
    int word = mix(seed, role) % WORDS;
    int previous = atomicExch(&words[word], role);
    atomicMax(&words[WORDS + word], previous);
    found[role] = words[(word + 1) % WORDS];
}

int main(int argc, char** argv) {
    Arguments arguments(argc, argv, 2);
    uint64_t digest = 14695981039346656037ull;
    Buffer<int> words(WORDS * 2), lock(LINE), next(LINE), order(BLOCKS), found(BLOCKS * THREADS);
    Buffer<float> sums(16);
    bool entered_once = true;
    for (int repetition = 0; repetition < arguments.repetitions; repetition++) {
        unsigned seed = arguments.at(repetition);
        words.clear();
        lose_updates<<<BLOCKS, THREADS>>>(words, seed);
        CHECK_LAUNCH();
        digest = workload::digest(words.read(), digest);

        sums.clear();
        sum_floats<<<BLOCKS, THREADS>>>(sums, seed);
        CHECK_LAUNCH();
        digest = workload::digest(sums.read(), digest);

        lock.clear();
        next.clear();
        order.clear();
        record_entries<<<BLOCKS, 32>>>(lock, next, order, seed);
        CHECK_LAUNCH();
        std::vector<int> entries = order.read();
        std::vector<int> times(BLOCKS, 0);
        for (int block : entries) times[block & (BLOCKS - 1)]++;
        for (int count : times) entered_once = entered_once && count == 1;
        digest = workload::digest(entries, digest);

        words.clear();
        exchange_winners<<<BLOCKS, THREADS>>>(words, found, seed);
        CHECK_LAUNCH();
        digest = workload::digest(words.read(), digest);
        digest = workload::digest(found.read(), digest);
    }
    return workload::verdict("data_race", entered_once, "seed %u, %d repetitions, digest %016llx", arguments.seed,
                             arguments.repetitions, static_cast<unsigned long long>(digest));
}
