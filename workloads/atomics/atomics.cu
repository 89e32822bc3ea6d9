// Every atomic operation on global and shared memory, with results that do not depend on the order.
//
// Usage: atomics [threads, rounded up to a multiple of 256]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 256;

struct Totals {
    unsigned long long add_long;
    unsigned long long min_long;
    unsigned long long max_long;
    double add_double;
    unsigned long long cas_long;
    int add;
    int subtract;
    int minimum;
    int maximum;
    unsigned unsigned_minimum;
    unsigned unsigned_maximum;
    unsigned conjunction;
    unsigned disjunction;
    unsigned parity;
    unsigned increment;
    unsigned decrement;
    unsigned exchanged;  // sum of what exchanges returned, plus what is left
    float add_float;
    float cas_maximum;
};

__host__ __device__ inline unsigned number(unsigned i) { return i * 2654435761u ^ (i >> 3); }

// The same operations on any memory.
__device__ void apply_all(Totals* t, unsigned i, unsigned* exchange_cell, unsigned* exchange_sum) {
    unsigned v = number(i);
    atomicAdd(&t->add, int(v));
    atomicSub(&t->subtract, int(v >> 1));
    atomicMin(&t->minimum, int(v));
    atomicMax(&t->maximum, int(v));
    atomicMin(&t->unsigned_minimum, v);
    atomicMax(&t->unsigned_maximum, v);
    atomicAnd(&t->conjunction, ~(1u << (v % 31)) | (v & 1u ? 0 : 1u << (v % 31)));
    atomicOr(&t->disjunction, v & 0x0f0f0000u);
    atomicXor(&t->parity, v);
    atomicInc(&t->increment, 1000u);
    atomicDec(&t->decrement, 1000u);
    atomicAdd(&t->add_long, (unsigned long long)v << 8);
    atomicMin(&t->min_long, (unsigned long long)v << 16);
    atomicMax(&t->max_long, (unsigned long long)v << 16);
    // Sums of small whole numbers are exact in any order.
    atomicAdd(&t->add_float, float(v % 8));
    atomicAdd(&t->add_double, double(v % 1024));
    atomicAdd(exchange_sum, atomicExch(exchange_cell, v));
}

// Operations that hardware lacks, by compare-and-swap.
__device__ void apply_by_swapping(Totals* t, unsigned i) {
    float value = float(number(i) >> 8) - 8000000.0f;
    int* bits = reinterpret_cast<int*>(&t->cas_maximum);
    int seen = *bits;
    int assumed;
    do {
        assumed = seen;
        seen = atomicCAS(bits, assumed, __float_as_int(fmaxf(__int_as_float(assumed), value)));
    } while (seen != assumed);
    // Sum of numbers modulo a prime.
    unsigned long long seen_long = t->cas_long;
    unsigned long long assumed_long;
    do {
        assumed_long = seen_long;
        seen_long = atomicCAS(&t->cas_long, assumed_long, (assumed_long + number(i)) % 1000003ull);
    } while (seen_long != assumed_long);
}

__global__ void atomics_global(Totals* totals, unsigned* exchange_cell, unsigned* exchange_sum) {
    apply_all(totals, blockIdx.x * THREADS + threadIdx.x, exchange_cell, exchange_sum);
}

// Within a block, then the block's results are compared by the host.
__global__ void atomics_shared(Totals* totals, Totals start, unsigned* exchange_sums) {
    __shared__ Totals local;
    __shared__ unsigned cell, sum;
    if (threadIdx.x == 0) {
        local = start;
        cell = sum = 0;
    }
    __syncthreads();
    apply_all(&local, blockIdx.x * THREADS + threadIdx.x, &cell, &sum);
    __syncthreads();
    if (threadIdx.x == 0) {
        totals[blockIdx.x] = local;
        exchange_sums[blockIdx.x] = sum + cell;
    }
}

__global__ void atomics_by_swapping(Totals* totals) { apply_by_swapping(totals, blockIdx.x * THREADS + threadIdx.x); }

// No operation should be merged with a neighbour's: a word a thread, several rounds.
__global__ void atomics_scattered(int* words, int rounds) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    int count = gridDim.x * THREADS;
    for (int round = 0; round < rounds; round++) atomicAdd(&words[(i * 33 + round * 17) % count], i % 7 + round);
}

static Totals initial() {
    Totals t = {};
    t.min_long = ~0ull;
    t.minimum = 0x7fffffff;
    t.maximum = int(0x80000000u);
    t.unsigned_minimum = ~0u;
    t.conjunction = ~0u;
    t.decrement = 17;
    t.cas_maximum = -1e9f;
    return t;
}

static Totals reference(unsigned first, unsigned last) {
    Totals t = initial();
    unsigned add = 0, subtract = 0;
    for (unsigned i = first; i < last; i++) {
        unsigned v = number(i);
        add += v;
        subtract -= v >> 1;
        t.minimum = std::min(t.minimum, int(v));
        t.maximum = std::max(t.maximum, int(v));
        t.unsigned_minimum = std::min(t.unsigned_minimum, v);
        t.unsigned_maximum = std::max(t.unsigned_maximum, v);
        t.conjunction &= ~(1u << (v % 31)) | (v & 1u ? 0 : 1u << (v % 31));
        t.disjunction |= v & 0x0f0f0000u;
        t.parity ^= v;
        t.increment = t.increment >= 1000 ? 0 : t.increment + 1;
        t.decrement = t.decrement == 0 || t.decrement > 1000 ? 1000 : t.decrement - 1;
        t.add_long += (unsigned long long)v << 8;
        t.min_long = std::min(t.min_long, (unsigned long long)v << 16);
        t.max_long = std::max(t.max_long, (unsigned long long)v << 16);
        t.add_float += float(v % 8);
        t.add_double += double(v % 1024);
        t.exchanged += v;
        t.cas_maximum = std::fmax(t.cas_maximum, float(v >> 8) - 8000000.0f);
        t.cas_long = (t.cas_long + v) % 1000003ull;
    }
    t.add = int(add);
    t.subtract = int(subtract);
    return t;
}

static int differences(const Totals& a, const Totals& b, bool swapped) {
    int wrong = (a.add != b.add) + (a.subtract != b.subtract) + (a.minimum != b.minimum) + (a.maximum != b.maximum) +
                (a.unsigned_minimum != b.unsigned_minimum) + (a.unsigned_maximum != b.unsigned_maximum) +
                (a.conjunction != b.conjunction) + (a.disjunction != b.disjunction) + (a.parity != b.parity) +
                (a.increment != b.increment) + (a.decrement != b.decrement) + (a.add_long != b.add_long) +
                (a.min_long != b.min_long) + (a.max_long != b.max_long) + (a.add_float != b.add_float) +
                (a.add_double != b.add_double) + (a.exchanged != b.exchanged);
    if (swapped) wrong += (a.cas_maximum != b.cas_maximum) + (a.cas_long != b.cas_long);
    return wrong;
}

int main(int argc, char** argv) {
    int blocks = blocks_for(argument(argc, argv, 1, 1024, 1 << 20), THREADS);
    unsigned threads = blocks * THREADS;
    Buffer<Totals> totals(1), per_block(blocks);
    Buffer<unsigned> exchange(2), exchange_sums(blocks);
    totals.write_one(initial());
    exchange.clear();
    atomics_global<<<blocks, THREADS>>>(totals, exchange.get(), exchange.get() + 1);
    atomics_by_swapping<<<blocks, THREADS>>>(totals);
    atomics_shared<<<blocks, THREADS>>>(per_block, initial(), exchange_sums);
    CHECK_LAUNCH();

    Totals got = totals.read_one();
    std::vector<unsigned> cells = exchange.read();
    got.exchanged = cells[0] + cells[1];
    int global_wrong = differences(got, reference(0, threads), true);
    int shared_wrong = 0;
    std::vector<Totals> blocks_got = per_block.read();
    std::vector<unsigned> block_exchanged = exchange_sums.read();
    for (int block = 0; block < blocks; block++) {
        blocks_got[block].exchanged = block_exchanged[block];
        shared_wrong += differences(blocks_got[block], reference(block * THREADS, (block + 1) * THREADS), false);
    }

    std::vector<int> wanted(threads, 0);
    for (unsigned i = 0; i < threads; i++)
        for (int round = 0; round < 4; round++) wanted[(i * 33 + round * 17) % threads] += i % 7 + round;
    Buffer<int> words(threads);
    words.clear();
    atomics_scattered<<<blocks, THREADS>>>(words, 4);
    CHECK_LAUNCH();
    size_t scattered_wrong = mismatches(words.read(), wanted);
    return verdict("atomics", global_wrong + shared_wrong + scattered_wrong == 0,
                   "%u threads, wrong: %d global, %d shared, %zu scattered", threads, global_wrong, shared_wrong,
                   scattered_wrong);
}
