// Five-point Jacobi iteration on a square grid, straight from global memory and through a shared-memory tile with halo.
//
// Usage: stencil_2d [size] [iterations]
#include "../common/workload.cuh"

using namespace workload;

constexpr int TILE_X = 32;
constexpr int TILE_Y = 8;

__device__ __host__ inline float relax(float centre, float west, float east, float north, float south) {
    return 0.5f * centre + 0.125f * (west + east + north + south);
}

__global__ void stencil_global(const float* from, float* to, int n) {
    int x = blockIdx.x * TILE_X + threadIdx.x;
    int y = blockIdx.y * TILE_Y + threadIdx.y;
    if (x >= n || y >= n) return;
    int i = y * n + x;
    bool inside = x > 0 && y > 0 && x < n - 1 && y < n - 1;
    to[i] = inside ? relax(from[i], from[i - 1], from[i + 1], from[i - n], from[i + n]) : from[i];
}

__global__ void stencil_tiled(const float* from, float* to, int n) {
    __shared__ float tile[TILE_Y + 2][TILE_X + 2];
    int left = blockIdx.x * TILE_X - 1;
    int top = blockIdx.y * TILE_Y - 1;
    for (int k = threadIdx.y * TILE_X + threadIdx.x; k < (TILE_Y + 2) * (TILE_X + 2); k += TILE_X * TILE_Y) {
        int x = left + k % (TILE_X + 2);
        int y = top + k / (TILE_X + 2);
        tile[k / (TILE_X + 2)][k % (TILE_X + 2)] = x >= 0 && y >= 0 && x < n && y < n ? from[y * n + x] : 0.0f;
    }
    __syncthreads();
    int x = blockIdx.x * TILE_X + threadIdx.x;
    int y = blockIdx.y * TILE_Y + threadIdx.y;
    if (x >= n || y >= n) return;
    int tx = threadIdx.x + 1;
    int ty = threadIdx.y + 1;
    bool inside = x > 0 && y > 0 && x < n - 1 && y < n - 1;
    to[y * n + x] = inside ? relax(tile[ty][tx], tile[ty][tx - 1], tile[ty][tx + 1], tile[ty - 1][tx], tile[ty + 1][tx])
                           : tile[ty][tx];
}

int main(int argc, char** argv) {
    int n = argument(argc, argv, 1, 128, 16384);
    int iterations = argument(argc, argv, 2, 4);
    std::vector<float> grid = uniform_values(size_t(n) * n, 0.0f, 100.0f, 1);

    dim3 blocks(blocks_for(n, TILE_X), blocks_for(n, TILE_Y));
    dim3 threads(TILE_X, TILE_Y);
    std::vector<float> results[2];
    for (int tiled = 0; tiled < 2; tiled++) {
        Buffer<float> first(grid), second(grid.size());
        float* from = first;
        float* to = second;
        for (int i = 0; i < iterations; i++) {
            if (tiled)
                stencil_tiled<<<blocks, threads>>>(from, to, n);
            else
                stencil_global<<<blocks, threads>>>(from, to, n);
            CHECK_LAUNCH();
            std::swap(from, to);
        }
        results[tiled] = iterations % 2 == 0 ? first.read() : second.read();
    }

    std::vector<float> wanted = grid;
    std::vector<float> next = grid;
    for (int i = 0; i < iterations; i++) {
        for (int y = 1; y < n - 1; y++)
            for (int x = 1; x < n - 1; x++) {
                size_t c = size_t(y) * n + x;
                next[c] = relax(wanted[c], wanted[c - 1], wanted[c + 1], wanted[c - n], wanted[c + n]);
            }
        std::swap(wanted, next);
    }
    double global_error = worst_error(results[0], wanted);
    double tiled_error = worst_error(results[1], wanted);
    return verdict("stencil_2d", global_error < 1e-5 && tiled_error < 1e-5,
                   "%d x %d, %d iterations, worst error %.2e global, %.2e tiled", n, n, iterations, global_error,
                   tiled_error);
}
