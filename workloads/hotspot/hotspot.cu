// Heat on a chip: each launch advances a tile by several time steps, with a halo that shrinks a step at a time
// (work done twice at the borders instead of more launches).
//
// Usage: hotspot [size] [time steps, a multiple of 2]
#include "../common/workload.cuh"

using namespace workload;

constexpr int TILE = 16;
constexpr int STEPS = 2;             // time steps a launch
constexpr int INNER = TILE - 2 * STEPS;  // results a block keeps, squared
constexpr float AMBIENT = 80.0f;

__device__ __host__ inline float advance(float centre, float west, float east, float north, float south, float power) {
    return centre + 0.05f * (power + 0.9f * (west + east - 2.0f * centre) + 0.9f * (north + south - 2.0f * centre) +
                             0.1f * (AMBIENT - centre));
}

__global__ void heat_steps(const float* power, const float* from, float* to, int n) {
    __shared__ float old_heat[TILE][TILE];
    __shared__ float new_heat[TILE][TILE];
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int x = int(blockIdx.x) * INNER - STEPS + tx;
    int y = int(blockIdx.y) * INNER - STEPS + ty;
    // Beyond the chip, heat is that of its edge.
    int cx = min(max(x, 0), n - 1);
    int cy = min(max(y, 0), n - 1);
    float source = power[cy * n + cx];
    old_heat[ty][tx] = from[cy * n + cx];
    __syncthreads();
    // Tile coordinates of the neighbours, clamped to the chip.
    int west = x > 0 ? tx - 1 : tx;
    int east = x < n - 1 ? tx + 1 : tx;
    int north = y > 0 ? ty - 1 : ty;
    int south = y < n - 1 ? ty + 1 : ty;
    bool on_chip = x == cx && y == cy;
    for (int step = 1; step <= STEPS; step++) {
        bool valid = on_chip && tx >= step && tx < TILE - step && ty >= step && ty < TILE - step;
        if (valid)
            new_heat[ty][tx] = advance(old_heat[ty][tx], old_heat[ty][west], old_heat[ty][east], old_heat[north][tx],
                                       old_heat[south][tx], source);
        __syncthreads();
        if (valid) old_heat[ty][tx] = new_heat[ty][tx];
        __syncthreads();
    }
    if (on_chip && tx >= STEPS && tx < TILE - STEPS && ty >= STEPS && ty < TILE - STEPS) to[y * n + x] = old_heat[ty][tx];
}

int main(int argc, char** argv) {
    int n = argument(argc, argv, 1, 96, 8192);
    int steps = argument(argc, argv, 2, 4);
    steps = (steps + STEPS - 1) / STEPS * STEPS;
    size_t count = size_t(n) * n;
    std::vector<float> power = uniform_values(count, 0.0f, 5.0f, 1);
    std::vector<float> heat = uniform_values(count, 60.0f, 90.0f, 2);

    Buffer<float> device_power(power), first(heat), second(count);
    float* from = first;
    float* to = second;
    for (int step = 0; step < steps; step += STEPS) {
        dim3 grid(blocks_for(n, INNER), blocks_for(n, INNER));
        heat_steps<<<grid, dim3(TILE, TILE)>>>(device_power, from, to, n);
        CHECK_LAUNCH();
        std::swap(from, to);
    }
    std::vector<float> got(count);
    CHECK(cudaMemcpy(got.data(), from, count * sizeof(float), cudaMemcpyDeviceToHost));

    std::vector<float> wanted = heat;
    std::vector<float> next(count);
    for (int step = 0; step < steps; step++) {
        for (int y = 0; y < n; y++)
            for (int x = 0; x < n; x++) {
                auto at = [&](int cx, int cy) {
                    return wanted[size_t(std::min(std::max(cy, 0), n - 1)) * n + std::min(std::max(cx, 0), n - 1)];
                };
                next[size_t(y) * n + x] =
                    advance(at(x, y), at(x - 1, y), at(x + 1, y), at(x, y - 1), at(x, y + 1), power[size_t(y) * n + x]);
            }
        std::swap(wanted, next);
    }
    double error = worst_error(got, wanted);
    return verdict("hotspot", error < 1e-5, "%d x %d, %d steps, worst error %.2e", n, n, steps, error);
}
