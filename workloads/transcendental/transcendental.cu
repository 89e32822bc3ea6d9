// Elementary functions: CUDA's accurate single-precision versions, the fast ones of the special-function units, and
// long polynomials that keep the multipliers busy.
//
// Usage: transcendental [elements]
#include "../common/workload.cuh"

using namespace workload;

constexpr int FUNCTIONS = 14;
constexpr int FAST = 6;

// Arguments reach far enough that range reduction happens.
__global__ void accurate_functions(const float* x, float* y, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float v = x[i];
    float positive = fabsf(v) + 0.01f;
    float* out = y + i;
    out[0 * count] = sinf(v * 50.0f);
    out[1 * count] = cosf(v * 50.0f);
    out[2 * count] = tanf(v);
    out[3 * count] = expf(v);
    out[4 * count] = logf(positive);
    out[5 * count] = powf(positive, v);
    out[6 * count] = sqrtf(positive);
    out[7 * count] = rsqrtf(positive);
    out[8 * count] = tanhf(v);
    out[9 * count] = atanf(v);
    out[10 * count] = erff(v);
    out[11 * count] = log2f(positive);
    out[12 * count] = cbrtf(v);
    out[13 * count] = 1.0f / positive;
}

__global__ void fast_functions(const float* x, float* y, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float v = x[i];
    float positive = fabsf(v) + 0.01f;
    float* out = y + i;
    out[0 * count] = __sinf(v);
    out[1 * count] = __cosf(v);
    out[2 * count] = __expf(v);
    out[3 * count] = __logf(positive);
    out[4 * count] = __fdividef(v, positive);
    out[5 * count] = __powf(positive, v);
}

// Two chains of 64 fused multiply-adds.
__device__ __host__ inline float polynomial(float x) {
    float even = 0.5f, odd = -0.25f;
    for (int k = 0; k < 64; k++) {
        even = fmaf(even, x * 0.5f, 0.125f);
        odd = fmaf(odd, -x * 0.5f, 0.0625f);
    }
    return even - odd;
}

__global__ void polynomials(const float* x, float* y, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) y[i] = polynomial(x[i] * 0.3f);
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 8192);
    std::vector<float> x = uniform_values(count, -3.0f, 3.0f, 1);
    std::vector<double> wanted(size_t(FUNCTIONS) * count), wanted_fast(size_t(FAST) * count);
    std::vector<float> wanted_polynomial(count);
    for (int i = 0; i < count; i++) {
        float scaled = x[i] * 50.0f;
        double v = x[i];
        double positive = std::fabs(x[i]) + 0.01f;
        const double values[FUNCTIONS] = {std::sin(double(scaled)), std::cos(double(scaled)), std::tan(v),   std::exp(v),
                                          std::log(positive),       std::pow(positive, v),    std::sqrt(positive),
                                          1.0 / std::sqrt(positive), std::tanh(v),            std::atan(v),  std::erf(v),
                                          std::log2(positive),      std::cbrt(v),             1.0 / positive};
        const double fast[FAST] = {std::sin(v), std::cos(v), std::exp(v), std::log(positive), v / positive,
                                   std::pow(positive, v)};
        for (int f = 0; f < FUNCTIONS; f++) wanted[size_t(f) * count + i] = values[f];
        for (int f = 0; f < FAST; f++) wanted_fast[size_t(f) * count + i] = fast[f];
        wanted_polynomial[i] = polynomial(x[i] * 0.3f);
    }
    Buffer<float> device_x(x), y(size_t(FUNCTIONS) * count), y_fast(size_t(FAST) * count), y_polynomial(count);
    int blocks = blocks_for(count, 256);
    accurate_functions<<<blocks, 256>>>(device_x, y, count);
    fast_functions<<<blocks, 256>>>(device_x, y_fast, count);
    polynomials<<<blocks, 256>>>(device_x, y_polynomial, count);
    CHECK_LAUNCH();
    // tan and 1/x are large near their poles; the error is relative there.
    double accurate = worst_error(y.read(), wanted);
    double fast = worst_error(y_fast.read(), wanted_fast);
    size_t polynomial_wrong = mismatches(y_polynomial.read(), wanted_polynomial);
    return verdict("transcendental", accurate < 5e-6 && fast < 1e-4 && polynomial_wrong == 0,
                   "%d elements, worst error %.2e accurate, %.2e fast, %zu polynomials wrong", count, accurate, fast,
                   polynomial_wrong);
}
