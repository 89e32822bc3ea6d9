// Sparse matrix times vector: a thread a row, a warp a row, and padded rows stored by column (ELLPACK).
//
// Usage: spmv [rows] [mean entries a row]
#include "../common/sparse.cuh"

using namespace workload;

constexpr int THREADS = 128;

__global__ void spmv_thread_per_row(const int* offsets, const int* columns, const float* values, const float* x, float* y,
                                    int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = offsets[row]; i < offsets[row + 1]; i++) sum += values[i] * x[columns[i]];
    y[row] = sum;
}

__global__ void spmv_warp_per_row(const int* offsets, const int* columns, const float* values, const float* x, float* y,
                                  int rows) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = offsets[row] + lane; i < offsets[row + 1]; i += 32) sum += values[i] * x[columns[i]];
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffffu, sum, distance);
    if (lane == 0) y[row] = sum;
}

// Entry k of row r is at k * rows + r; a column of -1 is padding.
__global__ void spmv_padded(const int* columns, const float* values, const float* x, float* y, int rows, int width) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int k = 0; k < width; k++) {
        int column = columns[k * rows + row];
        if (column >= 0) sum += values[k * rows + row] * x[column];
    }
    y[row] = sum;
}

int main(int argc, char** argv) {
    int rows = argument(argc, argv, 1, 2048);
    int mean = argument(argc, argv, 2, 8, 1024);
    SparseMatrix<float> matrix = irregular_matrix<float>(rows, mean, 1);
    std::vector<float> x = uniform_values(rows, -1.0f, 1.0f, 2);
    std::vector<float> wanted = matrix.multiply(x);

    Buffer<int> offsets(matrix.offsets), columns(matrix.columns);
    Buffer<float> values(matrix.values), device_x(x), y(rows);
    double errors[3];
    y.clear();
    spmv_thread_per_row<<<blocks_for(rows, THREADS), THREADS>>>(offsets, columns, values, device_x, y, rows);
    CHECK_LAUNCH();
    errors[0] = worst_error(y.read(), wanted);
    y.clear();
    spmv_warp_per_row<<<blocks_for(size_t(rows) * 32, THREADS), THREADS>>>(offsets, columns, values, device_x, y, rows);
    CHECK_LAUNCH();
    errors[1] = worst_error(y.read(), wanted);

    int width = 0;
    for (int row = 0; row < rows; row++) width = std::max(width, matrix.offsets[row + 1] - matrix.offsets[row]);
    std::vector<int> padded_columns(size_t(rows) * width, -1);
    std::vector<float> padded_values(size_t(rows) * width, 0.0f);
    for (int row = 0; row < rows; row++)
        for (int i = matrix.offsets[row]; i < matrix.offsets[row + 1]; i++) {
            size_t at = size_t(i - matrix.offsets[row]) * rows + row;
            padded_columns[at] = matrix.columns[i];
            padded_values[at] = matrix.values[i];
        }
    Buffer<int> device_padded_columns(padded_columns);
    Buffer<float> device_padded_values(padded_values);
    y.clear();
    spmv_padded<<<blocks_for(rows, THREADS), THREADS>>>(device_padded_columns, device_padded_values, device_x, y, rows,
                                                        width);
    CHECK_LAUNCH();
    errors[2] = worst_error(y.read(), wanted);
    return verdict("spmv", errors[0] < 1e-4 && errors[1] < 1e-4 && errors[2] < 1e-4,
                   "%d rows, %d entries, worst errors %.2e thread, %.2e warp, %.2e padded", rows, matrix.entries(), errors[0],
                   errors[1], errors[2]);
}
