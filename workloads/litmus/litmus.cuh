// What the litmus programs share: seeded delays that move the accesses of one thread against those of another.
//
// Each program takes `[seed] [repetitions]`, counts the outcomes it sees, and fails on one that CUDA's memory
// model forbids. Outcomes that are allowed but rare are counted, never demanded.
#pragma once

#include "../common/workload.cuh"

namespace litmus {

// Words between two locations that must not share a cache line.
constexpr int LINE = 32;

struct Arguments {
    unsigned seed;
    int repetitions;
    Arguments(int argc, char** argv, int default_repetitions = 10)
        : seed(workload::argument(argc, argv, 1, 1)),
          repetitions(workload::argument(argc, argv, 2, default_repetitions)) {}
    // A seed for one repetition.
    unsigned at(int repetition) const { return seed * 7919u + repetition * 104729u; }
};

// A hash of two words (the finaliser of a multiplicative hash), the same on host and device.
__host__ __device__ inline unsigned mix(unsigned a, unsigned b) {
    unsigned h = a * 0x9e3779b1u ^ (b + 0x7f4a7c15u) * 0x85ebca6bu;
    h ^= h >> 15;
    h *= 0x2c1b3c6du;
    h ^= h >> 12;
    h *= 0x297a2d39u;
    return h ^ (h >> 15);
}

// Spends about `steps` instructions; the empty statement keeps the loop.
__device__ inline void delay(unsigned steps) {
    for (unsigned i = 0; i < steps; i++) asm volatile("");
}

// Waits for a time that depends on the seed, the thread's role and the place in its program.
__device__ inline void jitter(unsigned seed, unsigned role, unsigned place) {
    unsigned h = mix(seed + place * 0x51ed27u, role);
    // Half of the waits are short, so that accesses also come close together.
    delay(h & 1 ? (h >> 8) & 7 : (h >> 8) & 127);
}

// Loads and stores with the orders and scopes that the PTX memory model names.
__device__ inline int load_relaxed(const int* p) {
    int value;
    asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
    return value;
}
__device__ inline int load_acquire(const int* p) {
    int value;
    asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(value) : "l"(p) : "memory");
    return value;
}
__device__ inline void store_relaxed(int* p, int value) {
    asm volatile("st.relaxed.gpu.global.s32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}
__device__ inline void store_release(int* p, int value) {
    asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(p), "r"(value) : "memory");
}

// For the variants of a program, how often each pair of values was read.
struct Outcomes {
    long counts[2][2] = {};
    void add(int first, int second) { counts[first != 0][second != 0]++; }
    void print(const char* variant) const {
        std::printf("%s: 00=%ld 01=%ld 10=%ld 11=%ld; ", variant, counts[0][0], counts[0][1], counts[1][0],
                    counts[1][1]);
    }
};

}  // namespace litmus
