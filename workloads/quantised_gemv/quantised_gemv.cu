// A quantised layer of a language model for one token: activations are quantised to bytes by rows of 32, then
// byte products are summed four at a time and scaled; 4-bit weights are unpacked on the way in a second kernel.
//
// Usage: quantised_gemv [rows] [columns, a multiple of 128]
#include "../common/workload.cuh"

using namespace workload;

constexpr int GROUP = 32;  // values that share a scale
constexpr unsigned FULL = 0xffffffffu;

// A warp a group: the largest magnitude becomes 127.
__global__ void quantise(const float* x, signed char* bytes, float* scales) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = x[i];
    float largest = fabsf(value);
    for (int distance = 16; distance > 0; distance /= 2)
        largest = fmaxf(largest, __shfl_xor_sync(FULL, largest, distance));
    float scale = largest / 127.0f;
    bytes[i] = scale > 0.0f ? static_cast<signed char>(__float2int_rn(value / scale)) : 0;
    if (i % GROUP == 0) scales[i / GROUP] = scale;
}

__device__ float sum_over_warp(float value) {
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_xor_sync(FULL, value, distance);
    return value;
}

// A warp a row; a lane takes four bytes at a time.
__global__ void gemv_int8(const int* weights, const float* weight_scales, const int* x, const float* x_scales, float* y,
                          int rows, int columns) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (row >= rows) return;
    int words = columns / 4;
    float sum = 0.0f;
    for (int w = lane; w < words; w += 32) {
        int product = __dp4a(weights[row * words + w], x[w], 0);
        int group = w * 4 / GROUP;
        sum += product * (weight_scales[row * (columns / GROUP) + group] * x_scales[group]);
    }
    sum = sum_over_warp(sum);
    if (lane == 0) y[row] = sum;
}

// Eight 4-bit weights a word, offset by 8, low nibble first.
__global__ void gemv_int4(const unsigned* weights, const float* weight_scales, const float* x, float* y, int rows, int columns) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (row >= rows) return;
    int words = columns / 8;
    float sum = 0.0f;
    for (int w = lane; w < words; w += 32) {
        unsigned packed = weights[row * words + w];
        float part = 0.0f;
        for (int k = 0; k < 8; k++) part += float(int(packed >> (4 * k) & 15u) - 8) * x[w * 8 + k];
        sum += part * weight_scales[row * (columns / GROUP) + w * 8 / GROUP];
    }
    sum = sum_over_warp(sum);
    if (lane == 0) y[row] = sum;
}

int main(int argc, char** argv) {
    int rows = argument(argc, argv, 1, 512, 65536);
    int columns = argument(argc, argv, 2, 512, 65536);
    if (columns % 128 != 0) {
        std::fprintf(stderr, "quantised_gemv: %d columns are not a multiple of 128\n", columns);
        return 2;
    }
    Random random(1);
    std::vector<float> x = uniform_values(columns, -1.0f, 1.0f, 2);
    std::vector<signed char> bytes(size_t(rows) * columns);
    std::vector<unsigned> nibbles(size_t(rows) * columns / 8);
    std::vector<float> scales(size_t(rows) * columns / GROUP);
    for (signed char& b : bytes) b = static_cast<signed char>(random.below(255) - 127);
    for (unsigned& n : nibbles) n = random.next();
    for (float& s : scales) s = random.uniform(0.001f, 0.002f);

    Buffer<float> device_x(x), device_scales(scales), x_scales(columns / GROUP), y8(rows), y4(rows);
    Buffer<signed char> device_bytes(bytes), x_bytes(columns);
    Buffer<unsigned> device_nibbles(nibbles);
    quantise<<<columns / 128, 128>>>(device_x, x_bytes, x_scales);
    gemv_int8<<<blocks_for(size_t(rows) * 32, 128), 128>>>(reinterpret_cast<int*>(device_bytes.get()), device_scales,
                                                           reinterpret_cast<int*>(x_bytes.get()), x_scales, y8, rows, columns);
    gemv_int4<<<blocks_for(size_t(rows) * 32, 128), 128>>>(device_nibbles, device_scales, device_x, y4, rows, columns);
    CHECK_LAUNCH();

    // The host multiplies the quantised activations that the device made, after checking them.
    std::vector<signed char> got_bytes = x_bytes.read();
    std::vector<float> got_scales = x_scales.read();
    double quantise_error = 0.0;
    for (int i = 0; i < columns; i++)
        quantise_error = std::fmax(quantise_error, std::fabs(got_bytes[i] * got_scales[i / GROUP] - x[i]));
    std::vector<double> wanted8(rows, 0.0), wanted4(rows, 0.0);
    for (int row = 0; row < rows; row++)
        for (int i = 0; i < columns; i++) {
            double scale = scales[(size_t(row) * columns + i) / GROUP];
            wanted8[row] += scale * got_scales[i / GROUP] * bytes[size_t(row) * columns + i] * got_bytes[i];
            int nibble = int(nibbles[(size_t(row) * columns + i) / 8] >> (4 * (i % 8)) & 15u) - 8;
            wanted4[row] += scale * nibble * x[i];
        }
    double error8 = worst_error(y8.read(), wanted8);
    double error4 = worst_error(y4.read(), wanted4);
    return verdict("quantised_gemv", quantise_error < 0.5 / 126 && error8 < 1e-4 && error4 < 1e-4,
                   "%d x %d, worst error %.2e quantised, %.2e int8, %.2e int4", rows, columns, quantise_error, error8, error4);
}
