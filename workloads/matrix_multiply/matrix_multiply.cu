// Single-precision matrix multiply with square tiles in shared memory.
//
// Usage: matrix_multiply [size]
#include "../common/workload.cuh"

using namespace workload;

constexpr int TILE = 16;

__global__ void multiply_tiled(const float* a, const float* b, float* c, int n) {
    __shared__ float tile_a[TILE][TILE];
    __shared__ float tile_b[TILE][TILE];
    int column = blockIdx.x * TILE + threadIdx.x;
    int row = blockIdx.y * TILE + threadIdx.y;
    float sum = 0.0f;
    for (int start = 0; start < n; start += TILE) {
        int a_column = start + threadIdx.x;
        int b_row = start + threadIdx.y;
        tile_a[threadIdx.y][threadIdx.x] = row < n && a_column < n ? a[row * n + a_column] : 0.0f;
        tile_b[threadIdx.y][threadIdx.x] = b_row < n && column < n ? b[b_row * n + column] : 0.0f;
        __syncthreads();
        for (int k = 0; k < TILE; k++) sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
        __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}

int main(int argc, char** argv) {
    int n = argument(argc, argv, 1, 128, 16384);
    std::vector<float> a = uniform_values(size_t(n) * n, -1.0f, 1.0f, 1);
    std::vector<float> b = uniform_values(size_t(n) * n, -1.0f, 1.0f, 2);

    Buffer<float> device_a(a), device_b(b), device_c(size_t(n) * n);
    dim3 grid(blocks_for(n, TILE), blocks_for(n, TILE));
    multiply_tiled<<<grid, dim3(TILE, TILE)>>>(device_a, device_b, device_c, n);
    CHECK_LAUNCH();
    std::vector<float> c = device_c.read();

    std::vector<double> wanted(size_t(n) * n, 0.0);
    for (int row = 0; row < n; row++)
        for (int k = 0; k < n; k++)
            for (int column = 0; column < n; column++)
                wanted[size_t(row) * n + column] += double(a[size_t(row) * n + k]) * b[size_t(k) * n + column];
    double error = worst_error(c, wanted);
    return verdict("matrix_multiply", error < 1e-6 * n, "%d x %d, worst error %.2e", n, n, error);
}
