// Code that is longer than instruction caches and runs once or a few times: straight on, by warps at different places,
// through calls of functions that lie far apart, and in a loop whose body does not fit.
//
// Usage: cold_code [blocks]
#include "../common/workload.cuh"

using namespace workload;

constexpr int STRAIGHT = 2048;
constexpr int PLACES = 8, STEPS_OF_A_PLACE = 192;
constexpr int FUNCTIONS = 24, STEPS_OF_A_FUNCTION = 64;
constexpr int LOOP_STEPS = 1536, ROUNDS = 3;
constexpr int LOOP_WARPS = 4;

// Constants differ from step to step, so that no two steps are the same code.
__host__ __device__ inline unsigned step(unsigned value, unsigned number) {
    return (value ^ (value >> (number % 13 + 3))) * (number * 2654435762u + 12345u | 1u) + number * 40503u;
}

template <int FIRST, int COUNT>
__device__ __forceinline__ unsigned steps(unsigned value) {
#pragma unroll
    for (int i = 0; i < COUNT; i++) value = step(value, FIRST + i);
    return value;
}

static unsigned steps_on_host(unsigned value, int first, int count) {
    for (int i = 0; i < count; i++) value = step(value, first + i);
    return value;
}

__global__ void straight_line(unsigned* values) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    values[i] = steps<0, STRAIGHT>(values[i]);
}

// Warp `w` of a block runs the part with that number: eight pieces of code at once.
__global__ void different_places(unsigned* values) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, value = values[i];
    switch (threadIdx.x / 32) {
        case 0: value = steps<10000, STEPS_OF_A_PLACE>(value); break;
        case 1: value = steps<11000, STEPS_OF_A_PLACE>(value); break;
        case 2: value = steps<12000, STEPS_OF_A_PLACE>(value); break;
        case 3: value = steps<13000, STEPS_OF_A_PLACE>(value); break;
        case 4: value = steps<14000, STEPS_OF_A_PLACE>(value); break;
        case 5: value = steps<15000, STEPS_OF_A_PLACE>(value); break;
        case 6: value = steps<16000, STEPS_OF_A_PLACE>(value); break;
        default: value = steps<17000, STEPS_OF_A_PLACE>(value); break;
    }
    values[i] = value;
}

template <int NUMBER>
__device__ __noinline__ unsigned function(unsigned value) {
    return steps<20000 + NUMBER * 100, STEPS_OF_A_FUNCTION>(value);
}

template <int NUMBER>
__device__ __forceinline__ unsigned call_all(unsigned value, unsigned skip) {
    if constexpr (NUMBER < FUNCTIONS) {
        // The argument decides which function is left out, so that the calls are not one straight line.
        if (NUMBER != skip) value = function<NUMBER>(value);
        return call_all<NUMBER + 1>(value, skip);
    }
    return value;
}

__global__ void distant_calls(unsigned* values, unsigned skip) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    values[i] = call_all<0>(values[i], skip);
}

__global__ void long_loop(unsigned* values, int rounds) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, value = values[i];
#pragma unroll 1
    for (int round = 0; round < rounds; round++) value = steps<30000, LOOP_STEPS>(value) + round;
    values[i] = value;
}

int main(int argc, char** argv) {
    int blocks = argument(argc, argv, 1, 2, 1 << 16);
    size_t count = size_t(blocks) * PLACES * 32;
    std::vector<unsigned> start(count);
    for (size_t i = 0; i < count; i++) start[i] = unsigned(i * 2246822519u);
    Buffer<unsigned> straight(start), places(start), calls(start), loops(start);
    straight_line<<<blocks, 32>>>(straight);
    different_places<<<blocks, PLACES * 32>>>(places);
    distant_calls<<<blocks, 32>>>(calls, FUNCTIONS / 2);
    long_loop<<<blocks, LOOP_WARPS * 32>>>(loops, ROUNDS);
    CHECK_LAUNCH();
    std::vector<unsigned> wanted[4] = {start, start, start, start};
    for (int i = 0; i < blocks * 32; i++) {
        wanted[0][i] = steps_on_host(start[i], 0, STRAIGHT);
        for (int f = 0; f < FUNCTIONS; f++)
            if (f != FUNCTIONS / 2) wanted[2][i] = steps_on_host(wanted[2][i], 20000 + f * 100, STEPS_OF_A_FUNCTION);
    }
    for (size_t i = 0; i < count; i++)
        wanted[1][i] = steps_on_host(start[i], 10000 + int(i / 32 % PLACES) * 1000, STEPS_OF_A_PLACE);
    for (int i = 0; i < blocks * LOOP_WARPS * 32; i++)
        for (int round = 0; round < ROUNDS; round++) wanted[3][i] = steps_on_host(wanted[3][i], 30000, LOOP_STEPS) + round;
    size_t wrong = mismatches(straight.read(), wanted[0]) + mismatches(places.read(), wanted[1]) +
                   mismatches(calls.read(), wanted[2]) + mismatches(loops.read(), wanted[3]);
    return verdict("cold_code", wrong == 0, "%d blocks, %zu words wrong", blocks, wrong);
}
