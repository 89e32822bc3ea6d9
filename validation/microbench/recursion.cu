// How lanes that parted in recursive calls are picked up again: many launches of one warp whose instruction counts and marks
// tell the order (marks.cuh).
//
// Usage: recursion counts FORM [queens]   every kernel with every pattern, to be counted by ncu
//        recursion marks FORM [queens]    the same, with the marks printed in the order of the clock
// FORM 0 has no marks in the code, 1 all, 2 only those at the start of a function and in the kernel. With `queens`, only searches
// of queens, on larger boards and from all starts.
#include "recursive_calls.cuh"

constexpr int PATTERNS = 160;
static_assert(PATTERNS <= MOST_PATTERNS);
static unsigned* out;

template <int T>
static void all() {
    for (int p = 0; p < PATTERNS; p++) recursion<T><<<1, 32>>>(p, out), print("recursion", {p});
    for (int p = 0; p < PATTERNS; p++) two_calls<T><<<1, 32>>>(p, out), print("two_calls", {p});
    for (int p = 0; p < PATTERNS; p++) loop_of_calls<T><<<1, 32>>>(p, out), print("loop_of_calls", {p});
    for (int size = 5; size <= 8; size++)
        for (int first = 0; first < size * size; first += size < 7 ? 5 : 2)
            queens<T><<<1, 32>>>(out, size, first), print("queens", {size, first});
}

template <int T>
static void large_boards() {
    for (int size = 8; size <= 10; size++)
        for (int first = 0; first < size * size; first += size == 10 ? 2 : 1)
            queens<T><<<1, 32>>>(out, size, first), print("queens", {size, first});
}

int main(int argc, char** argv) {
    if (argc != 3 && argc != 4) return 1;
    bool large = argc == 4;
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
        case 0: large ? large_boards<0>() : all<0>(); break;
        case 1: large ? large_boards<1>() : all<1>(); break;
        case 2: large ? large_boards<2>() : all<2>(); break;
    }
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
