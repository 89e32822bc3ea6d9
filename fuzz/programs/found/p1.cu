#define NEEDS_TOGETHER
#include "program.cuh"

// Lanes meet in a recursion that each leaves at its own depth: masks are nested, places are the same.
#define RECURSION(NAME, LATE, TOGETHER_HERE)                          \
    __device__ __noinline__ u32 NAME(u32 mask, u32 steps, u32 ok)     \
    {                                                                 \
        u32 deeper = __ballot_sync(mask, steps != 0u);                \
        if (steps != 0u)                                              \
        {                                                             \
            LATE;                                                     \
            ok = NAME(deeper, steps - 1u, ok);                        \
        }                                                             \
        TOGETHER_HERE;                                                \
        return ok;                                                    \
    }
RECURSION(ballots, , ok &= __ballot_sync(mask, 1) == mask)
RECURSION(matches, , ok &= __match_any_sync(mask, 7u) == mask)
RECURSION(shuffles, , ok &= __shfl_sync(mask, lane_index(), __ffs(mask) - 1) == __ffs(mask) - 1u)
RECURSION(late_ballots, sleep_for(lane_index() % 2u), ok &= __ballot_sync(mask, 1) == mask)
RECURSION(late_matches, sleep_for(lane_index() % 2u), ok &= __match_any_sync(mask, 7u) == mask)

extern "C" __global__ void k0(const unsigned char *input, unsigned long long *output, unsigned char *memory)
{
    output[threadIdx.x] = ballots(0xffffffffu, threadIdx.x % 4u, 1u);
}

extern "C" __global__ void k1(const unsigned char *input, unsigned long long *output, unsigned char *memory)
{
    output[threadIdx.x] = matches(0xffffffffu, threadIdx.x % 4u, 1u);
}

extern "C" __global__ void k2(const unsigned char *input, unsigned long long *output, unsigned char *memory)
{
    output[threadIdx.x] = shuffles(0xffffffffu, threadIdx.x % 4u, 1u);
}

extern "C" __global__ void k3(const unsigned char *input, unsigned long long *output, unsigned char *memory)
{
    output[threadIdx.x] = late_ballots(0xffffffffu, threadIdx.x % 4u, 1u);
}

extern "C" __global__ void k4(const unsigned char *input, unsigned long long *output, unsigned char *memory)
{
    output[threadIdx.x] = late_matches(0xffffffffu, threadIdx.x % 4u, 1u);
}

// Disjoint sets match apart, though some of their lanes come late.
extern "C" __global__ void k5(const unsigned char *input, unsigned long long *output, unsigned char *memory)
{
    u32 lane = threadIdx.x;
    u32 mask = 0xffu << (lane_index() & 24u);
    if ((0x41d1d01bu >> lane) & 1u)
    {
        sleep_for(lane);
    }
    output[lane] = __match_any_sync(mask, 7u) == mask;
}

// The same after no delay.
extern "C" __global__ void k6(const unsigned char *input, unsigned long long *output, unsigned char *memory)
{
    u32 mask = 0xffu << (lane_index() & 24u);
    output[threadIdx.x] = __match_any_sync(mask, 7u) == mask;
}

// An array on the stack of a kernel that has no other.
extern "C" __global__ void k7(const unsigned char *input, unsigned long long *output, unsigned char *memory)
{
    u32 many = threadIdx.x + 1u;
    u32 *cells = (u32 *)alloca(many * sizeof(u32));
    for (u32 i = 0; i < many; ++i)
    {
        cells[i] = i * 5u;
    }
    output[threadIdx.x] = cells[many / 2u] == many / 2u * 5u;
}
