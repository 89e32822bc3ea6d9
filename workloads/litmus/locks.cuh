// Locks that one thread a warp (or a block) takes: test-and-set, and a ticket lock that serves in order.
#pragma once

#include "litmus.cuh"

namespace litmus {

struct TestAndSet {
    static __device__ int acquire(int* lock) {
        while (atomicCAS(lock, 0, 1) != 0) {
        }
        __threadfence();
        return 0;
    }
    static __device__ void release(int* lock, int) {
        __threadfence();
        atomicExch(lock, 0);
    }
};

// Word 0 is the next ticket, word 1 the ticket served now.
struct Ticket {
    static __device__ int acquire(int* lock) {
        int ticket = atomicAdd(lock, 1);
        while (*(volatile int*)(lock + 1) != ticket) {
        }
        __threadfence();
        return ticket;
    }
    static __device__ void release(int* lock, int ticket) {
        __threadfence();
        *(volatile int*)(lock + 1) = ticket + 1;
    }
};

// Acquire and release as the PTX memory model spells them.
struct AcquireRelease {
    static __device__ int acquire(int* lock) {
        int taken;
        do {
            asm volatile("atom.acquire.gpu.global.cas.b32 %0, [%1], 0, 1;" : "=r"(taken) : "l"(lock) : "memory");
        } while (taken != 0);
        return 0;
    }
    static __device__ void release(int* lock, int) { store_release(lock, 0); }
};

// Plain accesses to several words; a stale read or an escaped store loses an update or tears the pair.
__device__ inline void update_under_lock(int* words, unsigned seed, unsigned role) {
    int count = words[0];
    if (words[1] != words[2]) words[3] += 1;
    words[1] += role + 1;
    jitter(seed, role, count);
    words[2] += role + 1;
    words[0] = count + 1;
}

// Lost and torn updates after `wanted` entries.
inline long damage(const std::vector<int>& words, int offset, int wanted) {
    return std::labs(long(wanted) - words[offset]) + words[offset + 3] + (words[offset + 1] != words[offset + 2]);
}

}  // namespace litmus
