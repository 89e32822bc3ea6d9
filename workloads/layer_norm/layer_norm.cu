// Normalisation of rows: layer norm with a block a row and merged means and variances, and RMS norm in half precision
// with a warp a row and a residual that is added first.
//
// Usage: layer_norm [rows] [columns, a multiple of 2]
#include <cuda_fp16.h>

#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 128;
constexpr unsigned FULL = 0xffffffffu;
constexpr float EPSILON = 1e-5f;

// Count, mean and sum of squared differences of a part, as Welford and Chan merge them.
struct Moments {
    float count, mean, spread;
};

__device__ inline Moments merge(Moments a, Moments b) {
    float count = a.count + b.count;
    if (count == 0.0f) return a;
    float delta = b.mean - a.mean;
    float share = b.count / count;
    return {count, a.mean + delta * share, a.spread + b.spread + delta * delta * a.count * share};
}

__global__ void layer_norm(const float* in, const float* gain, const float* bias, float* out, int columns) {
    __shared__ Moments parts[THREADS / 32];
    const float* row = in + size_t(blockIdx.x) * columns;
    Moments own = {0.0f, 0.0f, 0.0f};
    for (int i = threadIdx.x; i < columns; i += THREADS) {
        own.count += 1.0f;
        float delta = row[i] - own.mean;
        own.mean += delta / own.count;
        own.spread += delta * (row[i] - own.mean);
    }
    for (int distance = 16; distance > 0; distance /= 2) {
        Moments other = {__shfl_xor_sync(FULL, own.count, distance), __shfl_xor_sync(FULL, own.mean, distance),
                         __shfl_xor_sync(FULL, own.spread, distance)};
        own = merge(own, other);
    }
    if (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = own;
    __syncthreads();
    Moments all = parts[0];
    for (int warp = 1; warp < THREADS / 32; warp++) all = merge(all, parts[warp]);
    float scale = rsqrtf(all.spread / columns + EPSILON);
    for (int i = threadIdx.x; i < columns; i += THREADS)
        out[size_t(blockIdx.x) * columns + i] = (row[i] - all.mean) * scale * gain[i] + bias[i];
}

__global__ void rms_norm(const __half2* in, const __half2* residual, const float2* gain, __half2* out, int rows, int pairs) {
    int row = (blockIdx.x * THREADS + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int i = lane; i < pairs; i += 32) {
        float2 value = __half22float2(__hadd2(in[size_t(row) * pairs + i], residual[size_t(row) * pairs + i]));
        sum += value.x * value.x + value.y * value.y;
    }
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_xor_sync(FULL, sum, distance);
    float scale = rsqrtf(sum / (2 * pairs) + EPSILON);
    for (int i = lane; i < pairs; i += 32) {
        float2 value = __half22float2(__hadd2(in[size_t(row) * pairs + i], residual[size_t(row) * pairs + i]));
        out[size_t(row) * pairs + i] = __floats2half2_rn(value.x * scale * gain[i].x, value.y * scale * gain[i].y);
    }
}

int main(int argc, char** argv) {
    int rows = argument(argc, argv, 1, 64, 1 << 20);
    int columns = argument(argc, argv, 2, 768, 1 << 20) / 2 * 2;
    if (columns == 0) columns = 2;
    size_t count = size_t(rows) * columns;
    std::vector<float> in = uniform_values(count, 2.0f, 4.0f, 1), gain = uniform_values(columns, 0.5f, 1.5f, 2);
    std::vector<float> bias = uniform_values(columns, -1.0f, 1.0f, 3);
    std::vector<__half> half_in(count), half_residual(count);
    std::vector<float> summed(count);
    Random random(4);
    for (size_t i = 0; i < count; i++) {
        half_in[i] = __float2half(in[i]);
        half_residual[i] = __float2half(random.uniform(-1.0f, 1.0f));
        // One rounding to half precision, as the device's addition does.
        summed[i] = __half2float(__float2half(__half2float(half_in[i]) + __half2float(half_residual[i])));
    }
    Buffer<float> device_in(in), device_gain(gain), device_bias(bias), out(count);
    layer_norm<<<rows, THREADS>>>(device_in, device_gain, device_bias, out, columns);
    CHECK_LAUNCH();
    Buffer<__half> device_half(half_in), device_residual(half_residual), half_out(count);
    rms_norm<<<blocks_for(size_t(rows) * 32, THREADS), THREADS>>>(
        reinterpret_cast<__half2*>(device_half.get()), reinterpret_cast<__half2*>(device_residual.get()),
        reinterpret_cast<float2*>(device_gain.get()), reinterpret_cast<__half2*>(half_out.get()), rows, columns / 2);
    CHECK_LAUNCH();

    std::vector<double> wanted(count), wanted_rms(count);
    for (int row = 0; row < rows; row++) {
        double mean = 0.0, variance = 0.0, squares = 0.0;
        for (int i = 0; i < columns; i++) mean += in[size_t(row) * columns + i];
        mean /= columns;
        for (int i = 0; i < columns; i++) {
            double d = in[size_t(row) * columns + i] - mean;
            variance += d * d;
            squares += double(summed[size_t(row) * columns + i]) * summed[size_t(row) * columns + i];
        }
        for (int i = 0; i < columns; i++) {
            size_t at = size_t(row) * columns + i;
            wanted[at] = (in[at] - mean) / std::sqrt(variance / columns + EPSILON) * gain[i] + bias[i];
            wanted_rms[at] = summed[at] / std::sqrt(squares / columns + EPSILON) * gain[i];
        }
    }
    std::vector<float> got_rms;
    for (__half value : half_out.read()) got_rms.push_back(__half2float(value));
    double layer = worst_error(out.read(), wanted);
    double rms = worst_error(got_rms, wanted_rms);
    return verdict("layer_norm", layer < 1e-4 && rms < 2e-3, "%d x %d, worst error %.2e layer norm, %.2e RMS norm", rows, columns,
                   layer, rms);
}
