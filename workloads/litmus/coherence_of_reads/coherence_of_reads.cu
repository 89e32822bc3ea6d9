// Coherence: all agree on one order of the writes to a location, and a thread never reads backwards in it.
//
// Monotonic: one thread writes 1, 2, 3, … and readers never see a smaller number after a larger one.
// Agreement: two threads write different values; no two readers see them in opposite orders, and the
// value left in memory is the last in that order.
//
// Usage: coherence_of_reads [seed] [repetitions]
#include "../litmus.cuh"

using namespace litmus;
using workload::Buffer;

constexpr int GROUPS = 8;
constexpr int READERS = 3;
constexpr int READS = 8;
constexpr int WRITES = 6;

template <bool use_volatile>
__device__ int read(const int* p) {
    return use_volatile ? *(volatile const int*)p : load_relaxed(p);
}
template <bool use_volatile>
__device__ void write(int* p, int value) {
    if (use_volatile)
        *(volatile int*)p = value;
    else
        store_relaxed(p, value);
}

// Block 0 of a group writes, the others read. `seen` holds READS values a reader.
template <bool use_volatile>
__global__ void monotonic(int* locations, int* seen, unsigned seed) {
    if (threadIdx.x != 0) return;
    int group = blockIdx.x / (READERS + 1);
    int role = blockIdx.x % (READERS + 1);
    int* location = locations + group * LINE;
    for (int i = 0; i < (role == 0 ? WRITES : READS); i++) {
        jitter(seed, blockIdx.x, i);
        if (role == 0)
            write<use_volatile>(location, i + 1);
        else
            seen[(group * READERS + role - 1) * READS + i] = read<use_volatile>(location);
    }
}

// Blocks 0 and 1 of a group write 1 and 2 once each, the others read until the end of their list.
template <bool use_volatile>
__global__ void agreement(int* locations, int* seen, unsigned seed) {
    if (threadIdx.x != 0) return;
    int group = blockIdx.x / (READERS + 2);
    int role = blockIdx.x % (READERS + 2);
    int* location = locations + group * LINE;
    if (role < 2) {
        jitter(seed, blockIdx.x, 0);
        jitter(seed, blockIdx.x, 1);
        write<use_volatile>(location, role + 1);
        return;
    }
    for (int i = 0; i < READS; i++) {
        jitter(seed, blockIdx.x, i);
        seen[(group * READERS + role - 2) * READS + i] = read<use_volatile>(location);
    }
}

struct Counts {
    long moved = 0;       // readers that saw at least two different values
    long backwards = 0;   // forbidden
    long disagreed = 0;   // forbidden
    long last_wrong = 0;  // forbidden
};

template <bool use_volatile>
void run_monotonic(const Arguments& arguments, Counts& counts) {
    Buffer<int> locations(GROUPS * LINE), seen(GROUPS * READERS * READS);
    for (int repetition = 0; repetition < arguments.repetitions; repetition++) {
        locations.clear();
        monotonic<use_volatile><<<GROUPS * (READERS + 1), 32>>>(locations, seen, arguments.at(repetition));
        CHECK_LAUNCH();
        std::vector<int> result = seen.read();
        std::vector<int> last = locations.read();
        for (int reader = 0; reader < GROUPS * READERS; reader++) {
            const int* values = &result[reader * READS];
            counts.moved += values[0] != values[READS - 1];
            for (int i = 1; i < READS; i++) counts.backwards += values[i] < values[i - 1];
        }
        for (int group = 0; group < GROUPS; group++) counts.last_wrong += last[group * LINE] != WRITES;
    }
}

template <bool use_volatile>
void run_agreement(const Arguments& arguments, Counts& counts) {
    Buffer<int> locations(GROUPS * LINE), seen(GROUPS * READERS * READS);
    for (int repetition = 0; repetition < arguments.repetitions; repetition++) {
        locations.clear();
        agreement<use_volatile><<<GROUPS * (READERS + 2), 32>>>(locations, seen, arguments.at(repetition));
        CHECK_LAUNCH();
        std::vector<int> result = seen.read();
        std::vector<int> last = locations.read();
        for (int group = 0; group < GROUPS; group++) {
            bool first_then_second = false;
            bool second_then_first = false;
            for (int reader = 0; reader < READERS; reader++) {
                const int* values = &result[(group * READERS + reader) * READS];
                counts.moved += values[0] != values[READS - 1];
                for (int i = 1; i < READS; i++) {
                    counts.backwards += values[i] == 0 && values[i - 1] != 0;
                    first_then_second |= values[i - 1] == 1 && values[i] == 2;
                    second_then_first |= values[i - 1] == 2 && values[i] == 1;
                }
            }
            int final_value = last[group * LINE];
            counts.disagreed += first_then_second && second_then_first;
            counts.last_wrong += (first_then_second && final_value != 2) || (second_then_first && final_value != 1) ||
                                 final_value < 1 || final_value > 2;
        }
    }
}

int main(int argc, char** argv) {
    Arguments arguments(argc, argv);
    Counts counts;
    run_monotonic<true>(arguments, counts);
    run_monotonic<false>(arguments, counts);
    run_agreement<true>(arguments, counts);
    run_agreement<false>(arguments, counts);
    long forbidden = counts.backwards + counts.disagreed + counts.last_wrong;
    std::printf("readers that saw a change %ld, read backwards %ld, disagreed %ld, wrong last value %ld\n", counts.moved,
                counts.backwards, counts.disagreed, counts.last_wrong);
    return workload::verdict("coherence_of_reads", forbidden == 0, "seed %u, %d repetitions, %ld forbidden outcomes",
                             arguments.seed, arguments.repetitions, forbidden);
}
