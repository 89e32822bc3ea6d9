// Jumps of a warp: taken or not, how far, with lanes that part and meet again.
#include "common.cuh"

constexpr int STEPS = 64;

// A body that is never left out and never predicated: `n` dependent instructions.
template <int N>
__device__ __forceinline__ void body(unsigned& x, unsigned a) {
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("mad.lo.u32 %0,%0,%1,%1;" : "+r"(x) : "r"(a));
}

enum Kind { BODY, TAKEN, NOT_TAKEN, IF, IF_ELSE, NESTED, CASES, TRIPS, LEAVE, KINDS };
static const char* const NAMES[] = {"body alone", "taken", "not taken", "lanes part, one way empty", "lanes part two ways", "lanes part four ways, nested", "lanes part eight ways in turn", "loop of lanes' own length", "lanes leave early"};

template <int KIND, int N>
__global__ void jumps(long long* out, unsigned bits, int steps) {
    unsigned x = bits + threadIdx.x, a = bits | 1, lane = threadIdx.x % 32;
    for (int round = 0; round < 2; round++) {
        __syncthreads();
        long long begin = clock64();
#pragma unroll 1
        for (int i = 0; i < steps; i++) {
#pragma unroll
            for (int j = 0; j < 4; j++) {
                if (KIND == BODY) body<N>(x, a);
                if (KIND == TAKEN && (bits >> (j + 8) & 1)) body<N>(x, a);
                if (KIND == NOT_TAKEN && (bits >> j & 1)) body<N>(x, a);
                if (KIND == IF && (lane >> j & 1)) body<N>(x, a);
                if (KIND == IF_ELSE) {
                    if (lane >> j & 1) body<N>(x, a);
                    else body<N + 1>(x, a);
                }
                if (KIND == NESTED) {
                    if (lane >> j & 1) {
                        if (lane >> (j + 1) & 1) body<N>(x, a);
                        else body<N + 1>(x, a);
                    } else {
                        if (lane >> (j + 1) & 1) body<N + 2>(x, a);
                        else body<N + 3>(x, a);
                    }
                }
                if (KIND == CASES) {
                    if ((lane & 7) == 0) body<N>(x, a);
                    else if ((lane & 7) == 1) body<N + 1>(x, a);
                    else if ((lane & 7) == 2) body<N + 2>(x, a);
                    else if ((lane & 7) == 3) body<N + 3>(x, a);
                    else if ((lane & 7) == 4) body<N + 4>(x, a);
                    else if ((lane & 7) == 5) body<N + 5>(x, a);
                    else if ((lane & 7) == 6) body<N + 6>(x, a);
                    else body<N + 7>(x, a);
                }
                if (KIND == TRIPS) {
#pragma unroll 1
                    for (unsigned k = 0; k < (lane & 7); k++) body<N>(x, a);
                }
                if (KIND == LEAVE) {
                    // Each test lets some lanes out of all of it.
                    do {
                        body<N>(x, a);
                        if ((lane & 7) == 1) break;
                        body<N>(x, a);
                        if ((lane & 7) == 2) break;
                        body<N>(x, a);
                        if ((lane & 7) == 3) break;
                        body<N>(x, a);
                    } while (0);
                    __syncwarp();
                }
            }
        }
        long long end = clock64();
        __syncthreads();
        if (threadIdx.x == 0) out[0] = end - begin;
    }
    if (x == 0x12345678) out[1] = x;
}

template <int KIND, int N>
void measure(const Clock& clock) {
    for (int threads : {32, 128, 512}) {
        double cycles = clock.median_of([&](long long* out) { jumps<KIND, N><<<1, threads>>>(out, 15, STEPS); });
        row("jumps", text("%s n=%d threads=%d", NAMES[KIND], N, threads), cycles / (STEPS * 4), "cycles");
    }
}

template <int KIND>
void sizes(const Clock& clock) {
    measure<KIND, 8>(clock), measure<KIND, 24>(clock), measure<KIND, 64>(clock);
}

int main() {
    warm_up();
    Clock clock;
    sizes<BODY>(clock), sizes<TAKEN>(clock), sizes<NOT_TAKEN>(clock), sizes<IF>(clock), sizes<IF_ELSE>(clock);
    sizes<NESTED>(clock), sizes<CASES>(clock), sizes<TRIPS>(clock), sizes<LEAVE>(clock);
    return 0;
}
