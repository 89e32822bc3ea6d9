// Seven-point stencil on a cube: a thread a point, and a thread a column that marches through planes with the
// plane in shared memory and its neighbours above and below in registers.
//
// Usage: stencil_3d [size] [iterations]
#include "../common/workload.cuh"

using namespace workload;

constexpr int TILE_X = 32;
constexpr int TILE_Y = 4;

__device__ __host__ inline float relax(float centre, float sum_of_six) { return 0.4f * centre + 0.1f * sum_of_six; }

__global__ void stencil_point(const float* from, float* to, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1;
    int y = blockIdx.y * blockDim.y + threadIdx.y + 1;
    int z = blockIdx.z + 1;
    if (x >= n - 1 || y >= n - 1) return;
    int i = (z * n + y) * n + x;
    to[i] = relax(from[i], from[i - 1] + from[i + 1] + from[i - n] + from[i + n] + from[i - n * n] + from[i + n * n]);
}

__global__ void stencil_column(const float* from, float* to, int n) {
    __shared__ float plane[TILE_Y + 2][TILE_X + 2];
    int x = blockIdx.x * TILE_X + threadIdx.x + 1;
    int y = blockIdx.y * TILE_Y + threadIdx.y + 1;
    int tx = threadIdx.x + 1;
    int ty = threadIdx.y + 1;
    bool loads = x < n && y < n;
    bool computes = x < n - 1 && y < n - 1;
    int i = y * n + x;
    float below = loads ? from[i] : 0.0f;
    float centre = loads ? from[i + n * n] : 0.0f;
    for (int z = 1; z < n - 1; z++) {
        i += n * n;
        float above = loads ? from[i + n * n] : 0.0f;
        plane[ty][tx] = centre;
        // The halo: rows by the first and last rows of threads, columns likewise.
        if (threadIdx.y == 0 && x < n) plane[0][tx] = from[i - n];
        if (threadIdx.x == 0 && y < n) plane[ty][0] = from[i - 1];
        if (threadIdx.y == TILE_Y - 1 && x < n && y + 1 < n) plane[TILE_Y + 1][tx] = from[i + n];
        if (threadIdx.x == TILE_X - 1 && y < n && x + 1 < n) plane[ty][TILE_X + 1] = from[i + 1];
        __syncthreads();
        if (computes)
            to[i] = relax(centre, plane[ty][tx - 1] + plane[ty][tx + 1] + plane[ty - 1][tx] + plane[ty + 1][tx] + below +
                                      above);
        __syncthreads();
        below = centre;
        centre = above;
    }
}

int main(int argc, char** argv) {
    int n = argument(argc, argv, 1, 34, 1024);
    int iterations = argument(argc, argv, 2, 2);
    if (n < 3) n = 3;
    size_t count = size_t(n) * n * n;
    std::vector<float> grid = uniform_values(count, 0.0f, 10.0f, 1);
    std::vector<float> results[2];
    for (int marching = 0; marching < 2; marching++) {
        Buffer<float> first(grid), second(grid);
        float* from = first;
        float* to = second;
        for (int i = 0; i < iterations; i++) {
            dim3 block(TILE_X, TILE_Y);
            dim3 grid_size(blocks_for(n - 2, TILE_X), blocks_for(n - 2, TILE_Y), marching ? 1 : n - 2);
            if (marching)
                stencil_column<<<grid_size, block>>>(from, to, n);
            else
                stencil_point<<<grid_size, block>>>(from, to, n);
            CHECK_LAUNCH();
            std::swap(from, to);
        }
        results[marching] = iterations % 2 == 0 ? first.read() : second.read();
    }
    std::vector<float> wanted = grid;
    std::vector<float> next = grid;
    for (int i = 0; i < iterations; i++) {
        for (int z = 1; z < n - 1; z++)
            for (int y = 1; y < n - 1; y++)
                for (int x = 1; x < n - 1; x++) {
                    size_t c = (size_t(z) * n + y) * n + x;
                    size_t plane = size_t(n) * n;
                    next[c] = relax(wanted[c], wanted[c - 1] + wanted[c + 1] + wanted[c - n] + wanted[c + n] +
                                                   wanted[c - plane] + wanted[c + plane]);
                }
        std::swap(wanted, next);
    }
    double point = worst_error(results[0], wanted);
    double column = worst_error(results[1], wanted);
    return verdict("stencil_3d", point < 1e-5 && column < 1e-5,
                   "%d cubed, %d iterations, worst error %.2e by point, %.2e by column", n, iterations, point, column);
}
