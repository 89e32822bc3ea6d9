// CUDA's words for programs that run on the host: one lane at a time, each a fiber, block after block.
//
// A program is compiled with this in place of CUDA's headers; judge.py turns its inline PTX into calls of
// `host::ptx` and lists its kernels and module variables behind it. `judge.cpp` is the machine below.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <math.h>
#include <new>

namespace host {

struct Dim {
    unsigned x, y, z;
};

// What a thread sees of itself.
struct Place {
    Dim thread, block;
    unsigned lane;
};

struct Launch {
    const char *name;
    void (*call)(const unsigned char *input, unsigned long long *output, unsigned char *memory, const unsigned char *params);
};

struct Variable {
    const char *name;
    void *address;
    size_t bytes;
};

// Of the program.
extern const Launch launches[];
extern const Variable variables[];
extern unsigned char *shared_start, *shared_end;

// Of the machine.
extern const Place *now;
extern Dim block_dim, grid_dim;
extern unsigned char *dynamic_shared;

// Waits for the lanes of a mask, gives a value and gets theirs; returns those that took part.
unsigned together(unsigned mask, uint64_t value, const uint64_t *&values);

// What a barrier of a block answers.
struct Met {
    unsigned count, all, any;
};
Met barrier(unsigned number, unsigned threads, bool waits, unsigned predicate);

// Lets other threads run.
void yield();

[[noreturn]] void unsupported(const char *what);
[[noreturn]] void trap();

// One piece of inline PTX, read once; the values are its operands.
struct Code;
const Code *read(const char *text);
void run(const Code *code, uint64_t *values);

template <class T> uint64_t word(T value) {
    static_assert(sizeof(T) <= 8);
    uint64_t all = 0;
    memcpy(&all, &value, sizeof value);
    return all;
}

template <class T> void unword(T &place, uint64_t value) { memcpy(&place, &value, sizeof place); }

} // namespace host

// -- words of the language --------------------------------------------------------------------------------------

#define __global__
#define __device__
#define __host__
#define __constant__
#define __managed__
#define __shared__ static __attribute__((section("of_a_block")))
#define __restrict__ __restrict
#define __grid_constant__
#define __launch_bounds__(...)
#define __cluster_dims__(...)
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __align__(bytes) __attribute__((aligned(bytes)))
#define threadIdx (host::now->thread)
#define blockIdx (host::now->block)
#define blockDim (host::block_dim)
#define gridDim (host::grid_dim)
#define warpSize 32
#define __nv_is_extended_device_lambda_closure_type(T) false

#define VECTOR(NAME, T)                                              \
    struct NAME##1 { T x; };                                         \
    struct alignas(2 * sizeof(T)) NAME##2 { T x, y; };               \
    struct NAME##3 { T x, y, z; };                                   \
    struct alignas(4 * sizeof(T) < 16 ? 4 * sizeof(T) : 16) NAME##4 { T x, y, z, w; }; \
    inline NAME##1 make_##NAME##1(T x) { return {x}; }               \
    inline NAME##2 make_##NAME##2(T x, T y) { return {x, y}; }       \
    inline NAME##3 make_##NAME##3(T x, T y, T z) { return {x, y, z}; } \
    inline NAME##4 make_##NAME##4(T x, T y, T z, T w) { return {x, y, z, w}; }
VECTOR(char, signed char)
VECTOR(uchar, unsigned char)
VECTOR(short, short)
VECTOR(ushort, unsigned short)
VECTOR(int, int)
VECTOR(uint, unsigned)
VECTOR(long, long)
VECTOR(ulong, unsigned long)
VECTOR(longlong, long long)
VECTOR(ulonglong, unsigned long long)
VECTOR(float, float)
VECTOR(double, double)
#undef VECTOR

#include "numbers.h"
#include "packed.h"
#include "halves.h"
#include "lanes.h"

namespace host {

template <class T> T parameter(const unsigned char *&params) {
    T value;
    memcpy(&value, params, sizeof value);
    params += sizeof value;
    return value;
}

// A kernel with its parameters taken from bytes, in order.
template <auto KERNEL> struct Caller;
template <class... P, void (*KERNEL)(const unsigned char *, unsigned long long *, unsigned char *, P...)> struct Caller<KERNEL> {
    // A constructor in braces takes its arguments in order.
    struct Call {
        Call(const unsigned char *input, unsigned long long *output, unsigned char *memory, P... params) { KERNEL(input, output, memory, params...); }
    };
    static void call(const unsigned char *input, unsigned long long *output, unsigned char *memory, const unsigned char *params) {
        Call{input, output, memory, parameter<P>(params)...};
    }
};

} // namespace host
