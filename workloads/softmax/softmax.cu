// Softmax of rows: a block a row in three passes, and a warp a row in one pass with a running maximum.
//
// Usage: softmax [rows] [columns]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 128;
constexpr unsigned FULL = 0xffffffffu;

template <typename Combine>
__device__ float over_block(float value, Combine combine) {
    __shared__ float shared[THREADS / 32];
    for (int distance = 16; distance > 0; distance /= 2) value = combine(value, __shfl_xor_sync(FULL, value, distance));
    __syncthreads();
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = value;
    __syncthreads();
    value = shared[0];
    for (int warp = 1; warp < THREADS / 32; warp++) value = combine(value, shared[warp]);
    return value;
}

__global__ void softmax_block(const float* in, float* out, int columns) {
    const float* row = in + size_t(blockIdx.x) * columns;
    float* result = out + size_t(blockIdx.x) * columns;
    float maximum = -INFINITY;
    for (int i = threadIdx.x; i < columns; i += THREADS) maximum = fmaxf(maximum, row[i]);
    maximum = over_block(maximum, [](float a, float b) { return fmaxf(a, b); });
    float sum = 0.0f;
    for (int i = threadIdx.x; i < columns; i += THREADS) sum += expf(row[i] - maximum);
    sum = over_block(sum, [](float a, float b) { return a + b; });
    for (int i = threadIdx.x; i < columns; i += THREADS) result[i] = expf(row[i] - maximum) / sum;
}

__global__ void softmax_online(const float* in, float* out, int rows, int columns) {
    int row_index = (blockIdx.x * THREADS + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (row_index >= rows) return;
    const float* row = in + size_t(row_index) * columns;
    float maximum = -INFINITY, sum = 0.0f;
    for (int i = lane; i < columns; i += 32) {
        float value = row[i];
        float larger = fmaxf(maximum, value);
        sum = sum * __expf(maximum - larger) + __expf(value - larger);
        maximum = larger;
    }
    for (int distance = 16; distance > 0; distance /= 2) {
        float other_maximum = __shfl_xor_sync(FULL, maximum, distance);
        float other_sum = __shfl_xor_sync(FULL, sum, distance);
        float larger = fmaxf(maximum, other_maximum);
        // A lane that has seen nothing adds nothing.
        sum = (maximum == -INFINITY ? 0.0f : sum * __expf(maximum - larger)) +
              (other_maximum == -INFINITY ? 0.0f : other_sum * __expf(other_maximum - larger));
        maximum = larger;
    }
    for (int i = lane; i < columns; i += 32) out[size_t(row_index) * columns + i] = __expf(row[i] - maximum) / sum;
}

int main(int argc, char** argv) {
    int rows = argument(argc, argv, 1, 64, 1 << 20);
    int columns = argument(argc, argv, 2, 1000, 1 << 20);
    size_t count = size_t(rows) * columns;
    std::vector<float> in = uniform_values(count, -10.0f, 10.0f, 1);
    Buffer<float> device_in(in), first(count), second(count);
    softmax_block<<<rows, THREADS>>>(device_in, first, columns);
    softmax_online<<<blocks_for(size_t(rows) * 32, THREADS), THREADS>>>(device_in, second, rows, columns);
    CHECK_LAUNCH();
    std::vector<double> wanted(count);
    for (int row = 0; row < rows; row++) {
        double maximum = -INFINITY, sum = 0.0;
        for (int i = 0; i < columns; i++) maximum = std::fmax(maximum, in[size_t(row) * columns + i]);
        for (int i = 0; i < columns; i++) sum += std::exp(in[size_t(row) * columns + i] - maximum);
        for (int i = 0; i < columns; i++)
            wanted[size_t(row) * columns + i] = std::exp(in[size_t(row) * columns + i] - maximum) / sum;
    }
    // Probabilities are small; errors are scaled to the mean of a row.
    double block = worst_error(first.read(), wanted) * columns;
    double online = worst_error(second.read(), wanted) * columns;
    return verdict("softmax", block < 1e-3 && online < 1e-3, "%d x %d, worst error %.2e block, %.2e online, of the mean", rows,
                   columns, block, online);
}
