// Kernels of one warp whose lanes call functions that call themselves.
#pragma once
#include "marks.cuh"

// Calls that return at different depths.
template <int T>
__device__ __noinline__ unsigned descend(int depth, unsigned value) {
    mark<T>(1);
    if (depth <= 0) return value ^ 5;
    unsigned got = descend<T>(depth - 1, value * 1664525u + 1013904223u);
    mark<T>(2);
    return got * 3 + value;
}
template <int T>
__global__ void recursion(int pattern, unsigned* out) {
    begin<T>();
    unsigned got = descend<T>(of(pattern) % 7, threadIdx.x);
    mark<T>(3);
    out[threadIdx.x] = got;
}

template <int T>
__device__ __noinline__ unsigned fibonacci(int n) {
    mark<T>(1);
    if (n < 2) return n + 1;
    unsigned first = fibonacci<T>(n - 1);
    mark<T>(2);
    unsigned second = fibonacci<T>(n - 2);
    mark<T>(3);
    return first * 7 + second;
}
template <int T>
__global__ void two_calls(int pattern, unsigned* out) {
    begin<T>();
    unsigned got = fibonacci<T>(of(pattern) % 5);
    mark<T>(4);
    out[threadIdx.x] = got;
}

template <int T>
__device__ __noinline__ unsigned tree(unsigned node, int depth) {
    mark<T>(1);
    if (depth == 0) return node & 7;
    unsigned sum = 0;
#pragma unroll 1
    for (unsigned open = (node >> 3) & 7; open != 0; open &= open - 1) {
        sum += tree<T>((node ^ (open & -open)) * 2654435761u >> 5, depth - 1);
        mark<T>(2);
    }
    mark<T>(3);
    return sum;
}
template <int T>
__global__ void loop_of_calls(int pattern, unsigned* out) {
    begin<T>();
    int n = of(pattern);
    unsigned got = 0;
    if (n != 0) got = tree<T>((threadIdx.x + 1) * 40503u * n, 1 + n % 3);
    mark<T>(4);
    out[threadIdx.x] = got;
}

// The search of the workload n_queens, whose calls return from many depths at once.
template <int T>
__device__ __noinline__ int queens_from(unsigned columns, unsigned left, unsigned right, unsigned all) {
    mark<T>(1);
    if (columns == all) return 1;
    int found = 0;
    for (unsigned open = all & ~(columns | left | right); open != 0; open &= open - 1) {
        unsigned bit = open & -open;
        found += queens_from<T>(columns | bit, (left | bit) << 1, (right | bit) >> 1, all);
        mark<T>(2);
    }
    mark<T>(3);
    return found;
}
template <int T>
__global__ void queens(unsigned* out, int size, int first) {
    begin<T>();
    int index = first + threadIdx.x;
    if (index >= size * size) return;
    unsigned all = (1u << size) - 1, top = 1u << index % size, second = 1u << index / size;
    int found = 0;
    if (all & ~(top | top << 1 | top >> 1) & second)
        found = queens_from<T>(top | second, (top << 1 | second) << 1, (top >> 1 | second) >> 1, all);
    mark<T>(4);
    out[threadIdx.x] = found;
}
