// Layer norm of rows by a cubin that Triton compiled (../triton/kernels.py: layer_norm_rows).
//
// Build with `-lcuda`. Usage: triton_layer_norm [rows] [columns]
#include "../common/driver_module.cuh"
#include "cubin.cuh"

using namespace workload;

int main(int argc, char** argv) {
    int rows = argument(argc, argv, 1, 128, 1 << 20);
    int columns = argument(argc, argv, 2, 1100, 1 << 16);
    const float epsilon = 1e-5f;
    size_t count = size_t(rows) * columns;
    std::vector<float> in = uniform_values(count, -2.0f, 3.0f, 1);
    std::vector<float> weight = uniform_values(size_t(columns), 0.5f, 1.5f, 2);
    std::vector<float> bias = uniform_values(size_t(columns), -1.0f, 1.0f, 3);
    Buffer<float> device_in(in), device_weight(weight), device_bias(bias), device_out(count);
    EmbeddedKernel kernel(CUBIN, "layer_norm_rows", CUBIN_THREADS, CUBIN_SHARED);
    kernel.launch(rows, 1, device_in.get(), device_weight.get(), device_bias.get(), device_out.get(), columns, epsilon);
    CHECK(cudaDeviceSynchronize());
    std::vector<double> wanted(count);
    for (int row = 0; row < rows; row++) {
        const float* values = in.data() + size_t(row) * columns;
        double sum = 0.0, squares = 0.0;
        for (int i = 0; i < columns; i++) sum += values[i];
        double mean = sum / columns;
        for (int i = 0; i < columns; i++) squares += (values[i] - mean) * (values[i] - mean);
        double scale = 1.0 / std::sqrt(squares / columns + epsilon);
        for (int i = 0; i < columns; i++)
            wanted[size_t(row) * columns + i] = (values[i] - mean) * scale * weight[i] + bias[i];
    }
    double worst = worst_error(device_out.read(), wanted);
    return verdict("triton_layer_norm", worst < 1e-5, "%d x %d, worst error %.2e", rows, columns, worst);
}
