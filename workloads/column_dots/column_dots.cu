// Makes the columns of a matrix orthogonal, one after the other: each step is a chain of launches that walk columns of a
// matrix stored by rows. Norms and products once with a block a column, once with a warp for 32 columns side by side.
//
// Usage: column_dots [rows [columns]]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 128;
constexpr int STEPS = 6;

__device__ inline float sum_of_block(float value) {
    __shared__ float parts[THREADS / 32];
    for (int distance = 16; distance; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = value;
    __syncthreads();
    float sum = 0;
    for (float part : parts) sum += part;
    return sum;
}

// The square of the length of column k, by one block.
__global__ void column_norm(const float* matrix, int rows, int columns, int k, float* norm) {
    float sum = 0;
    for (int row = threadIdx.x; row < rows; row += THREADS) {
        float value = matrix[size_t(row) * columns + k];
        sum += value * value;
    }
    sum = sum_of_block(sum);
    if (threadIdx.x == 0) *norm = sum;
}

// Products of column k with each column behind it, a block for each: lanes are a row apart.
__global__ void dots_by_blocks(const float* matrix, int rows, int columns, int k, float* dots) {
    int j = k + 1 + blockIdx.x;
    float sum = 0;
    for (int row = threadIdx.x; row < rows; row += THREADS)
        sum += matrix[size_t(row) * columns + k] * matrix[size_t(row) * columns + j];
    sum = sum_of_block(sum);
    if (threadIdx.x == 0) dots[j] = sum;
}

// The same with a lane a column and a warp a part of the rows.
__global__ void dots_by_lanes(const float* matrix, int rows, int columns, int k, float* dots) {
    __shared__ float parts[THREADS / 32][32];
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32, j = k + 1 + blockIdx.x * 32 + lane;
    float sum = 0;
    if (j < columns)
        for (int row = warp; row < rows; row += THREADS / 32)
            sum += matrix[size_t(row) * columns + k] * matrix[size_t(row) * columns + j];
    parts[warp][lane] = sum;
    __syncthreads();
    if (warp == 0 && j < columns) {
        for (int other = 1; other < THREADS / 32; other++) sum += parts[other][lane];
        dots[j] = sum;
    }
}

__global__ void subtract(float* matrix, int rows, int columns, int k, const float* norm, const float* dots) {
    int behind = columns - k - 1, i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= rows * behind) return;
    int row = i / behind, j = k + 1 + i % behind;
    matrix[size_t(row) * columns + j] -= matrix[size_t(row) * columns + k] * (dots[j] / *norm);
}

int main(int argc, char** argv) {
    int rows = argument(argc, argv, 1, 256, 1 << 16), columns = argument(argc, argv, 2, 40, 4096);
    std::vector<float> host = uniform_values<float>(size_t(rows) * columns, -1.0f, 1.0f, 4);
    Buffer<float> matrix(host), norm(1), dots(columns);
    std::vector<double> wanted(host.begin(), host.end());
    for (int k = 0; k < STEPS; k++) {
        int behind = columns - k - 1;
        column_norm<<<1, THREADS>>>(matrix, rows, columns, k, norm);
        if (k % 2 == 0) dots_by_blocks<<<behind, THREADS>>>(matrix, rows, columns, k, dots);
        else dots_by_lanes<<<blocks_for(behind, 32), THREADS>>>(matrix, rows, columns, k, dots);
        subtract<<<blocks_for(size_t(rows) * behind, THREADS), THREADS>>>(matrix, rows, columns, k, norm, dots);
        CHECK_LAUNCH();
        std::vector<double> products(columns, 0.0);
        for (int row = 0; row < rows; row++)
            for (int j = k; j < columns; j++)
                products[j] += wanted[size_t(row) * columns + k] * wanted[size_t(row) * columns + j];
        for (int row = 0; row < rows; row++)
            for (int j = k + 1; j < columns; j++)
                wanted[size_t(row) * columns + j] -= wanted[size_t(row) * columns + k] * products[j] / products[k];
    }
    double error = worst_error(matrix.read(), wanted);
    return verdict("column_dots", error < 1e-4, "%d x %d, %d steps, worst error %.1e", rows, columns, STEPS, error);
}
