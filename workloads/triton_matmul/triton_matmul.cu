// A product of half-precision matrices with bias and rectifier, by a cubin that Triton compiled
// (../triton/kernels.py: matmul_bias_relu).
//
// Build with `-lcuda`. Usage: triton_matmul [rows / 64] [columns / 64] [depth / 32]
#include <cuda_fp16.h>

#include "../common/driver_module.cuh"
#include "cubin.cuh"

using namespace workload;

static std::vector<__half> halves(size_t count, float range, uint64_t seed) {
    std::vector<__half> values;
    for (float value : uniform_values(count, -range, range, seed)) values.push_back(__float2half(value));
    return values;
}

int main(int argc, char** argv) {
    int rows = argument(argc, argv, 1, 4, 256) * 64;
    int columns = argument(argc, argv, 2, 4, 256) * 64;
    int depth = argument(argc, argv, 3, 6, 512) * 32;
    std::vector<__half> a = halves(size_t(rows) * depth, 1.0f, 1), b = halves(size_t(depth) * columns, 1.0f, 2);
    std::vector<__half> bias = halves(columns, 2.0f, 3);
    Buffer<__half> device_a(a), device_b(b), device_bias(bias), device_c(size_t(rows) * columns);
    EmbeddedKernel kernel(CUBIN, "matmul_bias_relu", CUBIN_THREADS, CUBIN_SHARED);
    kernel.launch(rows / 64, columns / 64, device_a.get(), device_b.get(), device_bias.get(), device_c.get(), rows,
                  columns, depth);
    CHECK(cudaDeviceSynchronize());
    std::vector<float> wide_b(b.size());
    for (size_t i = 0; i < b.size(); i++) wide_b[i] = __half2float(b[i]);
    std::vector<double> wanted(size_t(rows) * columns), row_sums(columns);
    for (int row = 0; row < rows; row++) {
        for (int column = 0; column < columns; column++) row_sums[column] = __half2float(bias[column]);
        for (int i = 0; i < depth; i++) {
            double factor = __half2float(a[size_t(row) * depth + i]);
            for (int column = 0; column < columns; column++)
                row_sums[column] += factor * wide_b[size_t(i) * columns + column];
        }
        for (int column = 0; column < columns; column++)
            wanted[size_t(row) * columns + column] = std::fmax(0.0, row_sums[column]);
    }
    std::vector<float> got;
    for (__half value : device_c.read()) got.push_back(__half2float(value));
    // The result is rounded to 11 bits.
    double worst = worst_error(got, wanted);
    return verdict("triton_matmul", worst < 2e-3, "%d x %d x %d, worst error %.2e", rows, columns, depth, worst);
}
