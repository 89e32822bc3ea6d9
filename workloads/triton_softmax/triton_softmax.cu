// Softmax of rows by a cubin that Triton compiled (../triton/kernels.py: softmax_rows).
//
// Build with `-lcuda`. Usage: triton_softmax [rows] [columns, at most 1024]
#include "../common/driver_module.cuh"
#include "cubin.cuh"

using namespace workload;

int main(int argc, char** argv) {
    int rows = argument(argc, argv, 1, 256, 1 << 20);
    int columns = argument(argc, argv, 2, 1000, 1024);
    size_t count = size_t(rows) * columns;
    std::vector<float> in = uniform_values(count, -10.0f, 10.0f, 1);
    Buffer<float> device_in(in), device_out(count);
    EmbeddedKernel kernel(CUBIN, "softmax_rows", CUBIN_THREADS, CUBIN_SHARED);
    kernel.launch(rows, 1, device_in.get(), device_out.get(), columns);
    CHECK(cudaDeviceSynchronize());
    std::vector<double> wanted(count);
    for (int row = 0; row < rows; row++) {
        const float* values = in.data() + size_t(row) * columns;
        double maximum = -INFINITY, sum = 0.0;
        for (int i = 0; i < columns; i++) maximum = std::fmax(maximum, values[i]);
        for (int i = 0; i < columns; i++) sum += std::exp(values[i] - maximum);
        for (int i = 0; i < columns; i++) wanted[size_t(row) * columns + i] = std::exp(values[i] - maximum) / sum;
    }
    // Probabilities are small; errors are scaled to the mean of a row.
    double worst = worst_error(device_out.read(), wanted) * columns;
    return verdict("triton_softmax", worst < 1e-3, "%d x %d, worst error %.2e of the mean", rows, columns, worst);
}
