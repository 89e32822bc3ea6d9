// Blocked LU decomposition as the report's program does it: entries of L and U are inner products that stay in shared
// memory, where `workloads/lu_decomposition` updates whole rows. 16 + 15 + 15 launches for 256 x 256.
//
// Usage: lu_products [size, a multiple of 16]
#include "../../workloads/common/factors.cuh"

using namespace workload;

constexpr int TILE = 16;

// One block of TILE threads. In step k thread t > k makes its entry of column k of L, then its entry of row k + 1 of U.
__global__ void lu_diagonal(float* matrix, int n, int start) {
    __shared__ float tile[TILE][TILE];
    int t = threadIdx.x;
    for (int row = 0; row < TILE; row++) tile[row][t] = matrix[(start + row) * n + start + t];
    __syncthreads();
    for (int k = 0; k < TILE - 1; k++) {
        if (t > k) {
            for (int j = 0; j < k; j++) tile[t][k] -= tile[t][j] * tile[j][k];
            tile[t][k] /= tile[k][k];
        }
        __syncthreads();
        if (t > k)
            for (int j = 0; j < k + 1; j++) tile[k + 1][t] -= tile[k + 1][j] * tile[j][t];
        __syncthreads();
    }
    for (int row = 1; row < TILE; row++) matrix[(start + row) * n + start + t] = tile[row][t];
}

// Half of the threads make a tile of U right of the diagonal, the others one of L below it.
__global__ void lu_perimeter(float* matrix, int n, int start) {
    __shared__ float diagonal[TILE][TILE];
    __shared__ float right[TILE][TILE];
    __shared__ float below[TILE][TILE];
    int t = threadIdx.x % TILE;
    int other = start + (blockIdx.x + 1) * TILE;
    if (threadIdx.x < TILE) {
        for (int row = 0; row < TILE / 2; row++) diagonal[row][t] = matrix[(start + row) * n + start + t];
        for (int row = 0; row < TILE; row++) right[row][t] = matrix[(start + row) * n + other + t];
    } else {
        for (int row = TILE / 2; row < TILE; row++) diagonal[row][t] = matrix[(start + row) * n + start + t];
        for (int row = 0; row < TILE; row++) below[row][t] = matrix[(other + row) * n + start + t];
    }
    __syncthreads();
    if (threadIdx.x < TILE) {
#pragma unroll
        for (int row = 1; row < TILE; row++)
#pragma unroll
            for (int j = 0; j < row; j++) right[row][t] -= diagonal[row][j] * right[j][t];
    } else {
#pragma unroll
        for (int column = 0; column < TILE; column++) {
#pragma unroll
            for (int j = 0; j < column; j++) below[t][column] -= below[t][j] * diagonal[j][column];
            below[t][column] /= diagonal[column][column];
        }
    }
    __syncthreads();
    if (threadIdx.x < TILE)
        for (int row = 1; row < TILE; row++) matrix[(start + row) * n + other + t] = right[row][t];
    else
        for (int row = 0; row < TILE; row++) matrix[(other + row) * n + start + t] = below[row][t];
}

__global__ void lu_internal(float* matrix, int n, int start) {
    __shared__ float top[TILE][TILE];
    __shared__ float left[TILE][TILE];
    int row = start + (blockIdx.y + 1) * TILE;
    int column = start + (blockIdx.x + 1) * TILE;
    top[threadIdx.y][threadIdx.x] = matrix[(start + threadIdx.y) * n + column + threadIdx.x];
    left[threadIdx.y][threadIdx.x] = matrix[(row + threadIdx.y) * n + start + threadIdx.x];
    __syncthreads();
    float sum = 0.0f;
    for (int j = 0; j < TILE; j++) sum += left[threadIdx.y][j] * top[j][threadIdx.x];
    matrix[(row + threadIdx.y) * n + column + threadIdx.x] -= sum;
}

int main(int argc, char** argv) {
    int n = argument(argc, argv, 1, 96, 8192);
    if (n % TILE != 0) {
        std::fprintf(stderr, "lu_products: size %d is not a multiple of %d\n", n, TILE);
        return 2;
    }
    std::vector<float> matrix = dominant_matrix(n);

    Buffer<float> device(matrix);
    for (int start = 0; start < n; start += TILE) {
        lu_diagonal<<<1, TILE>>>(device, n, start);
        int rest = (n - start) / TILE - 1;
        if (rest == 0) break;
        lu_perimeter<<<rest, 2 * TILE>>>(device, n, start);
        lu_internal<<<dim3(rest, rest), dim3(TILE, TILE)>>>(device, n, start);
    }
    CHECK_LAUNCH();
    std::vector<float> got = device.read();
    double error = worst_error(got, triangular_factors(matrix, n));
    return verdict("lu_products", error < 1e-4, "%d x %d, worst error %.2e", n, n, error);
}
