// Marks that tell in which order the lanes of one warp ran, and how they are printed.
#pragma once
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

constexpr int MARKS = 4096;
constexpr int MOST_PATTERNS = 160;
// What each lane does, by pattern.
__constant__ int patterns[MOST_PATTERNS * 32];

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

// Without branches, so that the order is what it is without it. Lanes that were there together read one
// clock; neither a question for the active lanes nor a volatile access would do,
// since compilers put a YIELD before them.
// Traced 1 marks every place, 2 only the start of a function and the end of a kernel.
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
