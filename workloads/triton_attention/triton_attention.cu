// Causal attention with a running maximum, by a cubin that Triton compiled (../triton/kernels.py: attention_forward).
//
// Build with `-lcuda`. Usage: triton_attention [length / 32] [heads]
#include <cuda_fp16.h>

#include "../common/driver_module.cuh"
#include "cubin.cuh"

using namespace workload;

constexpr int TILE = 32;
constexpr int WIDTH = 64;

static std::vector<__half> halves(size_t count, uint64_t seed) {
    std::vector<__half> values;
    for (float value : uniform_values(count, -1.0f, 1.0f, seed)) values.push_back(__float2half(value));
    return values;
}

int main(int argc, char** argv) {
    int length = argument(argc, argv, 1, 4, 512) * TILE;
    int heads = argument(argc, argv, 2, 4, 256);
    size_t count = size_t(heads) * length * WIDTH;
    std::vector<__half> q = halves(count, 1), k = halves(count, 2), v = halves(count, 3);
    Buffer<__half> device_q(q), device_k(k), device_v(v), device_out(count);
    const double scale = 1.0 / std::sqrt(double(WIDTH));
    // The kernel takes powers of two.
    float scale_of_two = float(scale / std::log(2.0));
    EmbeddedKernel kernel(CUBIN, "attention_forward", CUBIN_THREADS, CUBIN_SHARED);
    kernel.launch(length / TILE, heads, device_q.get(), device_k.get(), device_v.get(), device_out.get(), length,
                  scale_of_two);
    CHECK(cudaDeviceSynchronize());
    std::vector<double> wanted(count), weights(length);
    for (int head = 0; head < heads; head++) {
        size_t base = size_t(head) * length * WIDTH;
        for (int row = 0; row < length; row++) {
            double sum = 0.0;
            for (int other = 0; other <= row; other++) {
                double score = 0.0;
                for (int i = 0; i < WIDTH; i++)
                    score += double(__half2float(q[base + size_t(row) * WIDTH + i])) *
                             __half2float(k[base + size_t(other) * WIDTH + i]);
                sum += weights[other] = std::exp(score * scale);
            }
            for (int i = 0; i < WIDTH; i++) {
                double value = 0.0;
                for (int other = 0; other <= row; other++)
                    value += weights[other] * __half2float(v[base + size_t(other) * WIDTH + i]);
                wanted[base + size_t(row) * WIDTH + i] = value / sum;
            }
        }
    }
    std::vector<float> got;
    for (__half value : device_out.read()) got.push_back(__half2float(value));
    // Weights and result are rounded to 11 bits.
    double worst = worst_error(got, wanted);
    return verdict("triton_attention", worst < 2e-3, "%d heads of %d x %d, worst error %.2e", heads, length, WIDTH, worst);
}
