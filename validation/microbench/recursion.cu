// How lanes that parted in recursive calls are picked up again: many launches of one warp whose instruction counts and marks
// tell the order (see reconvergence.cu for the marks).
//
// Usage: recursion counts FORM   every kernel with every pattern, to be counted by ncu
//        recursion marks FORM    the same, with the marks printed in the order of the clock
// FORM 0 has no marks in the code, 1 all, 2 only those at the start of a function and in the kernel.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

constexpr int MARKS = 1024;
constexpr int PATTERNS = 160;
__constant__ int patterns[PATTERNS * 32];

struct Mark {
    unsigned clock, place, count, unused;
};
__device__ Mark marks[32 * MARKS];
__shared__ int used[32];

__device__ __forceinline__ unsigned lane_id() {
    unsigned lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}

template <int TRACED>
__device__ __forceinline__ void mark(unsigned place) {
    if (TRACED == 1 || (TRACED == 2 && (place == 1 || place == 4))) {
        unsigned clock, lane = lane_id();
        asm volatile("mov.u32 %0, %%clock;" : "=r"(clock));
        int count = used[lane];
        used[lane] = count + 1;
        Mark* slot = &marks[lane * MARKS + (count & (MARKS - 1))];
        asm volatile("st.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(slot), "r"(clock), "r"(place), "r"(count + 1), "r"(0)
                     : "memory");
    }
}

template <int TRACED>
__device__ __forceinline__ void begin() {
    if (TRACED) {
        used[lane_id()] = 0;
        __syncwarp();
    }
}

__device__ __forceinline__ int of(int pattern) { return patterns[pattern * 32 + threadIdx.x % 32]; }

// ---- calls that return at different depths

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


// ---- launches

unsigned* out;
static bool printed;
static int launches = 0;

static void print(const char* name, std::vector<int> arguments) {
    cudaError_t status = cudaDeviceSynchronize();
    printf("launch %d %s", launches++, name);
    for (int argument : arguments) printf(" %d", argument);
    if (status != cudaSuccess) {
        printf(": %s\n", cudaGetErrorString(status));
        exit(2);
    }
    if (!printed) {
        printf("\n");
        return;
    }
    static Mark host[32 * MARKS];
    cudaMemcpyFromSymbol(host, marks, sizeof host);
    std::vector<std::pair<Mark, unsigned>> all;
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < MARKS && host[lane * MARKS + i].count; i++) all.push_back({host[lane * MARKS + i], 1u << lane});
    std::stable_sort(all.begin(), all.end(), [](auto& a, auto& b) { return (int)(a.first.clock - b.first.clock) < 0; });
    for (size_t i = 0; i < all.size();) {
        Mark first = all[i].first;
        unsigned lanes = 0;
        for (; i < all.size() && all[i].first.clock == first.clock; i++) lanes |= all[i].second;
        printf(" %u:%x", first.place, lanes);
    }
    printf("\n");
    memset(host, 0, sizeof host);
    cudaMemcpyToSymbol(marks, host, sizeof host);
}

template <int T>
static void all() {
    for (int p = 0; p < PATTERNS; p++) recursion<T><<<1, 32>>>(p, out), print("recursion", {p});
    for (int p = 0; p < PATTERNS; p++) two_calls<T><<<1, 32>>>(p, out), print("two_calls", {p});
    for (int p = 0; p < PATTERNS; p++) loop_of_calls<T><<<1, 32>>>(p, out), print("loop_of_calls", {p});
    for (int size = 5; size <= 8; size++)
        for (int first = 0; first < size * size; first += size < 7 ? 5 : 2)
            queens<T><<<1, 32>>>(out, size, first), print("queens", {size, first});
}

int main(int argc, char** argv) {
    if (argc != 3) return 1;
    printed = !strcmp(argv[1], "marks");
    static int host[PATTERNS * 32];
    unsigned random = 7;
    for (int p = 0; p < PATTERNS; p++)
        for (int l = 0; l < 32; l++) {
            random = random * 1664525u + 1013904223u;
            int range = 2 + p % 12;
            // Every other pattern has few different lanes.
            int v = (random >> 16) % range;
            if (p & 1 && (random >> 8) % 4) v = p % range;
            host[p * 32 + l] = v;
        }
    cudaDeviceSetLimit(cudaLimitStackSize, 8192);
    cudaMemcpyToSymbol(patterns, host, sizeof host);
    cudaMalloc(&out, 4096);
    cudaMemset(out, 0, 4096);
    switch (atoi(argv[2])) {
        case 0: all<0>(); break;
        case 1: all<1>(); break;
        case 2: all<2>(); break;
    }
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
