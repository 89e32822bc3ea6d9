// Lanes that take a lock on their way to where all lanes of a mask meet (`WARPSYNC.COLLECTIVE`): kernels of one warp whose
// instruction counts, or whose marks, tell who waits for whom (decision 0007).
//
// Usage: leaders counts   every kernel without marks, to be counted by ncu
//        leaders marks    the same with marks, printed: where, which lanes were active, in the order of the clock
//        Behind either, a kernel's name stands for that kernel alone.
//
// Who takes a lock tries at most LIMIT times, so that a rule which never lets the holder go on shows as places 90 and 91
// and not as a kernel that hangs.
#include "marks.cuh"

constexpr int LIMIT = 1 << 16;

template <int T>
__device__ __forceinline__ bool take(unsigned* lock) {
    for (int tries = 0; tries < LIMIT; tries++)
        if (atomicCAS(lock, 0u, 1u) == 0u) {
            __threadfence();
            return true;
        }
    return false;
}

__device__ __forceinline__ void give(unsigned* lock) {
    __threadfence();
    atomicExch(lock, 0u);
}

__device__ __noinline__ unsigned neighbour(unsigned mask, unsigned value, unsigned from) { return __shfl_sync(mask, value, from); }

// Lanes meet at one of two shuffles: compilers make a collective of them.
template <int T>
__device__ __forceinline__ unsigned meet(unsigned mask, unsigned sum, unsigned lane, bool here) {
    unsigned from = (lane + 1) & 31;
    if (here) {
        mark<T>(5);
        sum += neighbour(mask, sum, from);
        mark<T>(6);
    } else {
        mark<T>(7);
        sum += 3 * __shfl_sync(mask, sum, from);
        mark<T>(8);
    }
    return sum;
}

// Some lanes loop, each its own number of times: a convergence barrier between the lock and the collective.
__device__ __forceinline__ unsigned loop_apart(unsigned lane, unsigned round) {
    unsigned sum = 0, n = lane % 5 + round;
    if (lane % 5) {
#pragma unroll 1
        do {
            n = n & 1 ? 3 * n + 1 : n >> 1;
            sum += n;
        } while (n != 1);
    }
    return sum;
}

// Leaders work while they hold the lock; whether they loop apart inside, and whether anything is locked, are parameters.
template <int T, bool LOCKS, bool LOOPS>
__global__ void leaders(unsigned leading, unsigned rounds, unsigned side, unsigned* lock, unsigned* out) {
    begin<T>();
    unsigned lane = threadIdx.x, sum = 0, mask = __activemask();
    bool leads = leading >> lane & 1;
#pragma unroll 1
    for (unsigned round = 0; round < rounds; ++round) {
        bool holds = false;
        if (leads) {
            if (LOCKS) holds = take<T>(lock);
            mark<T>(LOCKS && !holds ? 90 : 1);
        }
        if (LOOPS) sum += loop_apart(lane, round);
        mark<T>(2);
        if (leads) {
            lock[1] += lane + 1;
            if (LOCKS && holds) give(lock);
            mark<T>(3);
        }
        mark<T>(4);
        sum = meet<T>(mask, sum + 1, lane, lane % 4 > side);
    }
    mark<T>(9);
    out[lane] = sum;
}

// The critical section ends before lanes go on: the barrier behind it is the collective's.
template <int T>
__global__ void lock_before(unsigned leading, unsigned rounds, unsigned side, unsigned* lock, unsigned* out) {
    begin<T>();
    unsigned lane = threadIdx.x, sum = 0, mask = __activemask();
    bool leads = leading >> lane & 1;
#pragma unroll 1
    for (unsigned round = 0; round < rounds; ++round) {
        if (leads) {
            bool holds = take<T>(lock);
            mark<T>(holds ? 1 : 91);
            lock[1] += lane + 1;
            if (holds) give(lock);
            mark<T>(3);
        }
        mark<T>(4);
        sum = meet<T>(mask, sum + 1, lane, lane % 4 > side);
    }
    mark<T>(9);
    out[lane] = sum;
}

// The first lane of each group draws a number under the lock and tells its group: one WARPSYNC, several masks.
template <int T>
__global__ void numbers(unsigned size, unsigned rounds, unsigned unused, unsigned* lock, unsigned* out) {
    begin<T>();
    unsigned lane = threadIdx.x, first = lane / size * size, sum = 0;
    unsigned mask = (size == 32 ? 0xffffffffu : (1u << size) - 1) << first;
#pragma unroll 1
    for (unsigned round = 0; round < rounds; ++round) {
        unsigned number = 0;
        if (lane == first) {
            bool holds = take<T>(lock);
            mark<T>(holds ? 1 : 90);
            number = ++lock[1];
            if (holds) give(lock);
            mark<T>(3);
        }
        mark<T>(4);
        sum += __shfl_sync(mask, number, first);
        mark<T>(5);
    }
    mark<T>(9);
    out[lane] = sum + unused;
}

static unsigned* memory;
static const char* only;

#define LAUNCH(name, plain, traced, a, b, c)                                                  \
    if (!only || !strcmp(only, name)) {                                                       \
        cudaMemset(memory, 0, 4096);                                                          \
        if (printed) traced<<<1, 32>>>(a, b, c, memory, memory + 64);                         \
        else plain<<<1, 32>>>(a, b, c, memory, memory + 64);                                  \
        print(name, {int(a), int(b), int(c)});                                                \
        unsigned left[96];                                                                    \
        cudaMemcpy(left, memory, sizeof left, cudaMemcpyDeviceToHost);                        \
        unsigned digest = 0;                                                                  \
        for (int lane = 0; lane < 32; lane++) digest = digest * 31 + left[64 + lane];         \
        printf("left %u %u %08x\n", left[0], left[1], digest);                                \
    }

int main(int argc, char** argv) {
    printed = argc > 1 && !strcmp(argv[1], "marks");
    only = argc > 2 ? argv[2] : nullptr;
    cudaMalloc(&memory, 4096);
    for (unsigned leading : {0x1u, 0x2u, 0x10001u, 0x3u, 0x11111111u, 0x80000001u, 0xf0u, 0x55555555u, 0xffffffffu})
        for (unsigned rounds : {1u, 2u, 4u})
            for (unsigned side : {0u, 1u, 2u}) {
                LAUNCH("leaders", (leaders<0, true, true>), (leaders<1, true, true>), leading, rounds, side);
                LAUNCH("leaders_free", (leaders<0, false, true>), (leaders<1, false, true>), leading, rounds, side);
                LAUNCH("leaders_straight", (leaders<0, true, false>), (leaders<1, true, false>), leading, rounds, side);
                LAUNCH("lock_before", (lock_before<0>), (lock_before<1>), leading, rounds, side);
            }
    for (unsigned size : {1u, 2u, 4u, 8u, 16u, 32u})
        for (unsigned rounds : {1u, 3u}) LAUNCH("numbers", (numbers<0>), (numbers<1>), size, rounds, 0u);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
