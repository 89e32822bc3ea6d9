// Blocked LU decomposition without pivoting: for each step along the diagonal, three kernels with very
// different parallelism factor the diagonal block, the blocks right of and below it, and all that remain.
//
// Usage: lu_decomposition [size, a multiple of 16]
#include "../common/factors.cuh"

using namespace workload;

constexpr int TILE = 16;

// One block of TILE threads factors the diagonal tile in shared memory; thread t owns row (and column) t.
__global__ void factor_diagonal(float* matrix, int n, int start) {
    __shared__ float tile[TILE][TILE + 1];
    int t = threadIdx.x;
    for (int row = 0; row < TILE; row++) tile[row][t] = matrix[(start + row) * n + start + t];
    __syncthreads();
    for (int k = 0; k < TILE - 1; k++) {
        if (t > k) {
            float factor = tile[t][k] / tile[k][k];
            tile[t][k] = factor;
            for (int column = k + 1; column < TILE; column++) tile[t][column] -= factor * tile[k][column];
        }
        __syncthreads();
    }
    for (int row = 0; row < TILE; row++) matrix[(start + row) * n + start + t] = tile[row][t];
}

// Block b handles one tile of the row and one tile of the column of the diagonal tile: half its threads each.
__global__ void factor_perimeter(float* matrix, int n, int start) {
    __shared__ float diagonal[TILE][TILE + 1];
    __shared__ float right[TILE][TILE + 1];
    __shared__ float below[TILE][TILE + 1];
    int t = threadIdx.x % TILE;
    bool for_row = threadIdx.x < TILE;
    int other = start + (blockIdx.x + 1) * TILE;
    for (int row = 0; row < TILE; row++) {
        if (for_row) {
            diagonal[row][t] = matrix[(start + row) * n + start + t];
            right[row][t] = matrix[(start + row) * n + other + t];
        } else {
            below[row][t] = matrix[(other + row) * n + start + t];
        }
    }
    __syncthreads();
    if (for_row) {
        // Column t of U: forward substitution with the unit lower triangle.
        for (int row = 1; row < TILE; row++) {
            float sum = right[row][t];
            for (int k = 0; k < row; k++) sum -= diagonal[row][k] * right[k][t];
            right[row][t] = sum;
        }
    } else {
        // Row t of L: substitution with the upper triangle.
        for (int column = 0; column < TILE; column++) {
            float sum = below[t][column];
            for (int k = 0; k < column; k++) sum -= below[t][k] * diagonal[k][column];
            below[t][column] = sum / diagonal[column][column];
        }
    }
    __syncthreads();
    for (int row = 0; row < TILE; row++) {
        if (for_row)
            matrix[(start + row) * n + other + t] = right[row][t];
        else
            matrix[(other + row) * n + start + t] = below[row][t];
    }
}

// A dense tile product is subtracted from every tile that remains.
__global__ void update_internal(float* matrix, int n, int start) {
    __shared__ float left[TILE][TILE];
    __shared__ float top[TILE][TILE];
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int row = start + (blockIdx.y + 1) * TILE + ty;
    int column = start + (blockIdx.x + 1) * TILE + tx;
    left[ty][tx] = matrix[row * n + start + tx];
    top[ty][tx] = matrix[(start + ty) * n + column];
    __syncthreads();
    float sum = 0.0f;
    for (int k = 0; k < TILE; k++) sum += left[ty][k] * top[k][tx];
    matrix[row * n + column] -= sum;
}

int main(int argc, char** argv) {
    int n = argument(argc, argv, 1, 96, 8192);
    if (n % TILE != 0) {
        std::fprintf(stderr, "lu_decomposition: size %d is not a multiple of %d\n", n, TILE);
        return 2;
    }
    std::vector<float> matrix = dominant_matrix(n);

    Buffer<float> device(matrix);
    for (int start = 0; start < n; start += TILE) {
        factor_diagonal<<<1, TILE>>>(device, n, start);
        CHECK_LAUNCH();
        int rest = (n - start) / TILE - 1;
        if (rest == 0) break;
        factor_perimeter<<<rest, 2 * TILE>>>(device, n, start);
        CHECK_LAUNCH();
        update_internal<<<dim3(rest, rest), dim3(TILE, TILE)>>>(device, n, start);
        CHECK_LAUNCH();
    }
    std::vector<float> got = device.read();
    double error = worst_error(got, triangular_factors(matrix, n));
    return verdict("lu_decomposition", error < 1e-4, "%d x %d, worst error %.2e", n, n, error);
}
