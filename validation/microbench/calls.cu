// Calls, jumps and a thread's own memory: what one costs in a chain of them.
#include "common.cuh"

constexpr int STEPS = 256;

__noinline__ __device__ unsigned plain(unsigned x) { return x * 3 + 1; }
__noinline__ __device__ unsigned other(unsigned x) { return x * 5 + 7; }
__noinline__ __device__ unsigned third(unsigned x) { return x * 9 + 3; }
__noinline__ __device__ unsigned fourth(unsigned x) { return x ^ (x >> 3); }

typedef unsigned (*Function)(unsigned);
__device__ Function functions[4] = {plain, other, third, fourth};

__noinline__ __device__ unsigned deep(unsigned x, int depth) {
    volatile unsigned kept = x;
    if (depth == 0) return x + 1;
    return deep(x * 3 + 1, depth - 1) + kept;
}

enum Kind { NOTHING, DIRECT, INDIRECT, INDIRECT_MANY, RECURSION, SWITCH, LOOP, DIVERGENT, OWN_MEMORY, OWN_INDEXED, KINDS };
static const char* const NAMES[] = {"arithmetic alone", "direct call", "indirect call", "indirect call of four", "recursion a level", "switch of eight", "loop iteration", "divergent if", "own memory store and load", "own memory by index"};

template <int KIND>
__global__ void chain(long long* out, unsigned seed, int steps) {
    unsigned x = seed + threadIdx.x;
    unsigned own[16];
    if (KIND == OWN_MEMORY || KIND == OWN_INDEXED)
        for (int i = 0; i < 16; i++) own[i] = x + i;
    Function function = functions[seed & 3];
    for (int round = 0; round < 2; round++) {
        __syncthreads();
        long long begin = clock64();
#pragma unroll 1
        for (int i = 0; i < steps; i++) {
            if (KIND == NOTHING) x = x * 3 + 1;
            if (KIND == DIRECT) x = plain(x);
            if (KIND == INDIRECT) x = function(x);
            if (KIND == INDIRECT_MANY) x = functions[(x ^ i) & 3 & ~(threadIdx.x >> 10)](i) + (x & 0);
            if (KIND == RECURSION && i % 8 == 0) x = deep(x, 7);
            if (KIND == SWITCH) switch ((seed + i) & 7) {
                    case 0: x = x * 3 + 1; break;
                    case 1: x = x ^ 0x55; break;
                    case 2: x = x * 7 + i; break;
                    case 3: x = __popc(x) + i; break;
                    case 4: x = x >> 3 | x << 5; break;
                    case 5: x = x - 77; break;
                    case 6: x = x * x; break;
                    default: x = ~x + i;
                }
            if (KIND == LOOP) {
                asm volatile("" ::: "memory");
                x += i;
            }
            if (KIND == DIVERGENT) {
                if ((threadIdx.x ^ i) & 1) x = __popc(x) * 3 + i;
                else x = __brev(x) + i;
            }
            if (KIND == OWN_MEMORY || KIND == OWN_INDEXED) {
                int at = KIND == OWN_INDEXED ? x & 15 : (i & 15);
                own[at] = x;
                x = own[KIND == OWN_INDEXED ? (at + (seed >> 20)) & 15 : (i + (seed >> 20)) & 15] + 1;
            }
        }
        long long end = clock64();
        if (threadIdx.x == 0) out[0] = end - begin;
    }
    if (x == 0x12345678) out[1] = x;
}

template <int WIDTH>
__global__ void store_own(long long* out, int steps, int index) {
    unsigned own[64];
    for (int i = 0; i < 64; i++) own[i] = i;
    __syncthreads();
    long long begin = clock64();
    for (int i = 0; i < steps; i++) {
#pragma unroll
        for (int j = 0; j < 16; j++) own[(index + j * WIDTH) & 63] = i + j;
    }
    __syncthreads();
    long long end = clock64();
    if (threadIdx.x == 0) out[0] = end - begin;
    if (own[index & 63] == 0x12345678) out[1] = 1;
}

template <int KIND>
__global__ void doubles(long long* out, double seed, int steps) {
    double x = seed, y = seed * 0.5 + 1;
    for (int round = 0; round < 2; round++) {
        __syncthreads();
        long long begin = clock64();
#pragma unroll 1
        for (int i = 0; i < steps; i++) {
            if (KIND == 0) x = x / y + 1.5;
            if (KIND == 1) x = sqrt(x) + 1.5;
            if (KIND == 2) x = x > y ? x * 0.5 : x + 1.5;
            if (KIND == 3) x = exp(x * 0.01);
            if (KIND == 4) x = fabs(x - y) < 1e-9 ? y : x + 0.25;
            if (KIND == 5) x = double(float(x)) + 0.5;
            if (KIND == 6) x = double(int(x)) + 0.5;
        }
        long long end = clock64();
        if (threadIdx.x == 0) out[0] = end - begin;
    }
    if (x == 0.12345) out[1] = 1;
}

template <int KIND>
void measure(const Clock& clock) {
    for (int threads : {32, 256}) {
        double cycles = clock.median_of([&](long long* out) { chain<KIND><<<1, threads>>>(out, 1, STEPS); });
        row("flow", text("%s threads=%d", NAMES[KIND], threads), cycles / STEPS, "cycles");
    }
}

template <int KIND>
void measure_doubles(const Clock& clock, const char* name) {
    for (int threads : {32, 256}) {
        double cycles = clock.median_of([&](long long* out) { doubles<KIND><<<1, threads>>>(out, 1.25, STEPS); });
        row("double", text("%s threads=%d", name, threads), cycles / STEPS, "cycles");
    }
}

int main() {
    warm_up();
    Clock clock;
    measure<NOTHING>(clock), measure<DIRECT>(clock), measure<INDIRECT>(clock), measure<INDIRECT_MANY>(clock), measure<RECURSION>(clock);
    measure<SWITCH>(clock), measure<LOOP>(clock), measure<DIVERGENT>(clock), measure<OWN_MEMORY>(clock), measure<OWN_INDEXED>(clock);
    for (int threads : {32, 128, 512}) {
        double cycles = clock.median_of([&](long long* out) { store_own<1><<<1, threads>>>(out, 16, 1); });
        row("own_store", text("threads=%d", threads), cycles / (16 * 16 * (threads / 32)), "cycles/warp-inst/SM");
    }
    measure_doubles<0>(clock, "divide and add"), measure_doubles<1>(clock, "square root and add"), measure_doubles<2>(clock, "compare and select");
    measure_doubles<3>(clock, "exponential"), measure_doubles<4>(clock, "compare and add"), measure_doubles<5>(clock, "to float and back, add"), measure_doubles<6>(clock, "to integer and back, add");
    return 0;
}
