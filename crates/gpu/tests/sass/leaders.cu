// Kernels of one warp in which some lanes take a lock on their way to where all lanes of a mask meet.
//
// nvcc -cubin -arch=sm_90a -O3 -std=c++17 leaders.cu -o leaders.sm_90.cubin
#define KERNEL extern "C" __global__ void

__device__ __forceinline__ void take(unsigned *lock) {
    while (atomicCAS(lock, 0, 1) != 0) {}
    __threadfence();
}

__device__ __forceinline__ void give(unsigned *lock) {
    __threadfence();
    atomicExch(lock, 0);
}

__device__ __noinline__ unsigned neighbour(unsigned mask, unsigned v, unsigned from) { return __shfl_sync(mask, v, from); }

// Leaders work while they hold the lock. The others wait for them at one of two `WARPSYNC.COLLECTIVE`, recorded in the
// convergence barrier that the work of the leaders uses too. Behind the lock is what leaders add up.
KERNEL leaders(unsigned leaders, unsigned rounds, unsigned *lock, unsigned *out) {
    unsigned lane = threadIdx.x, sum = 0, mask = __activemask();
    bool leads = leaders >> lane & 1;
#pragma unroll 1
    for (unsigned round = 0; round < rounds; ++round) {
        if (leads) take(lock);
        if (lane % 5) {
            unsigned n = lane % 5 + round;
#pragma unroll 1
            do {
                n = n & 1 ? 3 * n + 1 : n >> 1;
                sum += n;
            } while (n != 1);
        }
        if (leads) {
            lock[1] += lane + 1;
            give(lock);
        }
        unsigned from = (lane + 1) & 31;
        if (lane % 4 > round)
            sum += neighbour(mask, sum, from);
        else
            sum += 3 * __shfl_sync(mask, sum, from);
    }
    out[lane] = sum;
}

// The first lane of each group draws a number under the lock and tells its group: lanes at one `WARPSYNC` name several
// masks.
KERNEL numbers(unsigned size, unsigned *lock, unsigned *out) {
    unsigned lane = threadIdx.x, first = lane / size * size, number = 0;
    unsigned mask = (size == 32 ? 0xffffffffu : (1u << size) - 1) << first;
    if (lane == first) {
        take(lock);
        number = ++lock[1];
        give(lock);
    }
    out[lane] = __shfl_sync(mask, number, first);
}
