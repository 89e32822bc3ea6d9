// Few warps, each with one long chain of dependent instructions: whole numbers with divisions, single and double
// precision, shuffles, and a walk through shared memory.
//
// Usage: dependency_chains [blocks [steps]]
#include "../common/workload.cuh"

using namespace workload;

constexpr int CELLS = 1024;

__host__ __device__ inline unsigned whole(unsigned value, int steps) {
    for (int i = 0; i < steps; i++) value = value / (3u + (value & 7u)) * 5u + (value ^ 0x9e3779b9u) % 1021u;
    return value;
}
__host__ __device__ inline float single(float value, int steps) {
    for (int i = 0; i < steps; i++) value = fmaf(value, 0.75f, 0.5f) - 0.001f * value;
    return value;
}
__host__ __device__ inline double twice(double value, int steps) {
    for (int i = 0; i < steps; i++) value = fma(value, 0.75, 0.5) - 0.001 * value;
    return value;
}

__global__ void chain_of_divisions(unsigned* values, int steps) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    values[i] = whole(values[i], steps);
}
__global__ void chain_in_single(float* values, int steps) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    values[i] = single(values[i], steps);
}
__global__ void chain_in_double(double* values, int steps) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    values[i] = twice(values[i], steps);
}
__global__ void chain_of_shuffles(unsigned* values, int steps) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, value = values[i];
    for (int step = 0; step < steps; step++) value = __shfl_sync(0xffffffffu, value, (threadIdx.x * 5 + step) % 32) * 3u + step;
    values[i] = value;
}
__global__ void chain_in_shared(const unsigned* next, unsigned* values, int steps) {
    __shared__ unsigned cells[CELLS];
    for (int k = threadIdx.x; k < CELLS; k += blockDim.x) cells[k] = next[k];
    __syncthreads();
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, at = values[i] % CELLS;
    for (int step = 0; step < steps; step++) at = cells[at];
    values[i] = at;
}

int main(int argc, char** argv) {
    int blocks = argument(argc, argv, 1, 4, 1 << 14), steps = argument(argc, argv, 2, 200, 1 << 16), count = blocks * 32;
    std::vector<unsigned> start(count), next(CELLS);
    for (int i = 0; i < count; i++) start[i] = unsigned(i) * 2654435761u;
    for (int i = 0; i < CELLS; i++) next[i] = unsigned(i * 421 + 77) % CELLS;
    std::vector<float> floats(start.begin(), start.end());
    for (float& value : floats) value *= 1e-9f;
    std::vector<double> doubles(floats.begin(), floats.end());
    Buffer<unsigned> divided(start), shuffled(start), walked(start), cells(next);
    Buffer<float> singles(floats);
    Buffer<double> twos(doubles);
    chain_of_divisions<<<blocks, 32>>>(divided, steps);
    chain_in_single<<<blocks, 32>>>(singles, steps * 4);
    chain_in_double<<<blocks, 32>>>(twos, steps * 4);
    chain_of_shuffles<<<blocks, 32>>>(shuffled, steps * 2);
    chain_in_shared<<<blocks, 32>>>(cells, walked, steps * 2);
    CHECK_LAUNCH();
    std::vector<unsigned> wanted[3] = {start, start, start};
    for (int i = 0; i < count; i++) {
        wanted[0][i] = whole(start[i], steps);
        floats[i] = single(floats[i], steps * 4);
        doubles[i] = twice(doubles[i], steps * 4);
        unsigned at = start[i] % CELLS;
        for (int step = 0; step < steps * 2; step++) at = next[at];
        wanted[2][i] = at;
    }
    for (int step = 0; step < steps * 2; step++) {
        std::vector<unsigned> now = wanted[1];
        for (int i = 0; i < count; i++) wanted[1][i] = now[i / 32 * 32 + (i % 32 * 5 + step) % 32] * 3u + step;
    }
    size_t wrong = mismatches(divided.read(), wanted[0]) + mismatches(shuffled.read(), wanted[1]) + mismatches(walked.read(), wanted[2]);
    double error = std::fmax(worst_error(singles.read(), floats), worst_error(twos.read(), doubles));
    return verdict("dependency_chains", wrong == 0 && error < 1e-5, "%d warps, %zu words wrong, worst error %.1e", blocks, wrong, error);
}
