// Conjugate gradients on the Laplacian of a square grid, in double precision: short kernels that depend on each
// other through scalars in device memory.
//
// Usage: conjugate_gradient [grid side] [iterations]
#include "../common/sparse.cuh"

using namespace workload;

constexpr int THREADS = 128;

__global__ void multiply_sparse(const int* offsets, const int* columns, const double* values, const double* x, double* y,
                                int rows) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    double sum = 0.0;
    for (int i = offsets[row]; i < offsets[row + 1]; i++) sum += values[i] * x[columns[i]];
    y[row] = sum;
}

// One block, so that the sum has one order.
__global__ void dot_product(const double* a, const double* b, double* result, int count) {
    __shared__ double partial[THREADS];
    double sum = 0.0;
    for (int i = threadIdx.x; i < count; i += THREADS) sum += a[i] * b[i];
    partial[threadIdx.x] = sum;
    __syncthreads();
    for (int stride = THREADS / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) partial[threadIdx.x] += partial[threadIdx.x + stride];
        __syncthreads();
    }
    if (threadIdx.x == 0) *result = partial[0];
}

// x += step p and r -= step q, with step = residual / curvature.
__global__ void advance(double* x, double* r, const double* p, const double* q, const double* residual,
                        const double* curvature, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    double step = *residual / *curvature;
    x[i] += step * p[i];
    r[i] -= step * q[i];
}

__global__ void new_direction(double* p, const double* r, const double* residual, const double* previous, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) p[i] = r[i] + (*residual / *previous) * p[i];
}

int main(int argc, char** argv) {
    int side = argument(argc, argv, 1, 24, 2048);
    int iterations = argument(argc, argv, 2, 60);
    SparseMatrix<double> matrix = laplacian_matrix<double>(side);
    int n = matrix.rows();
    std::vector<double> solution = uniform_values(n, -1.0, 1.0, 1);
    std::vector<double> right_side = matrix.multiply(solution);

    Buffer<int> offsets(matrix.offsets), columns(matrix.columns);
    Buffer<double> values(matrix.values), x(n), r(right_side), p(right_side), q(n), scalars(3);
    x.clear();
    double* residual = scalars.get();
    double* previous = scalars.get() + 1;
    double* curvature = scalars.get() + 2;
    int blocks = blocks_for(n, THREADS);
    dot_product<<<1, THREADS>>>(r, r, residual, n);
    CHECK_LAUNCH();
    double first = scalars.read_one(0);
    int done = 0;
    double last = first;
    // Every eighth iteration the host asks how far it is, so that it never divides by a residual of zero.
    while (done < iterations && last > 1e-24 * first) {
        multiply_sparse<<<blocks, THREADS>>>(offsets, columns, values, p, q, n);
        dot_product<<<1, THREADS>>>(p, q, curvature, n);
        advance<<<blocks, THREADS>>>(x, r, p, q, residual, curvature, n);
        std::swap(residual, previous);
        dot_product<<<1, THREADS>>>(r, r, residual, n);
        new_direction<<<blocks, THREADS>>>(p, r, residual, previous, n);
        CHECK_LAUNCH();
        if (++done % 8 == 0) CHECK(cudaMemcpy(&last, residual, sizeof(double), cudaMemcpyDeviceToHost));
    }
    CHECK(cudaMemcpy(&last, residual, sizeof(double), cudaMemcpyDeviceToHost));
    // The residual that the method claims must be the residual of what it returns.
    std::vector<double> got = x.read();
    std::vector<double> product = matrix.multiply(got);
    double true_residual = 0.0;
    for (int i = 0; i < n; i++) true_residual += (right_side[i] - product[i]) * (right_side[i] - product[i]);
    double reduction = std::sqrt(true_residual / first);
    bool passed = reduction < 1e-3 && std::fabs(std::sqrt(true_residual) - std::sqrt(last)) < 1e-9 * std::sqrt(first);
    return verdict("conjugate_gradient", passed, "%d unknowns, %d iterations, residual reduced to %.2e, solution error %.2e",
                   n, done, reduction, worst_error(got, solution));
}
