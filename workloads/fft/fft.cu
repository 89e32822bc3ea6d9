// Complex FFTs: a block a transform with all stages in shared memory, and a 2D transform made of rows, a transpose
// and rows again.
//
// Usage: fft [size, a power of two from 64 to 1024]
#include "../common/workload.cuh"

using namespace workload;

constexpr int LARGEST = 1024;
constexpr double TURN = 6.283185307179586476925;

__device__ inline float2 multiply(float2 a, float2 b) { return make_float2(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }

// One block transforms one row in place; n / 2 threads. Twiddle factors come from a table.
__global__ void fft_rows(float2* data, const float2* twiddles, int n, int bits) {
    __shared__ float2 row[LARGEST];
    float2* mine = data + size_t(blockIdx.x) * n;
    int t = threadIdx.x;
    row[__brev(t) >> (32 - bits)] = mine[t];
    row[__brev(t + n / 2) >> (32 - bits)] = mine[t + n / 2];
    for (int half = 1; half < n; half *= 2) {
        __syncthreads();
        int within = t & (half - 1);
        int low = 2 * t - within;
        float2 even = row[low];
        float2 odd = multiply(row[low + half], twiddles[within * (n / 2 / half)]);
        row[low] = make_float2(even.x + odd.x, even.y + odd.y);
        row[low + half] = make_float2(even.x - odd.x, even.y - odd.y);
    }
    __syncthreads();
    mine[t] = row[t];
    mine[t + n / 2] = row[t + n / 2];
}

__global__ void transpose_complex(const float2* in, float2* out, int n) {
    __shared__ float2 tile[16][17];
    int x = blockIdx.x * 16 + threadIdx.x;
    int y = blockIdx.y * 16 + threadIdx.y;
    tile[threadIdx.y][threadIdx.x] = in[y * n + x];
    __syncthreads();
    x = blockIdx.y * 16 + threadIdx.x;
    y = blockIdx.x * 16 + threadIdx.y;
    out[y * n + x] = tile[threadIdx.x][threadIdx.y];
}

// The same recursion in double precision.
static void transform(std::vector<double>& re, std::vector<double>& im) {
    size_t n = re.size();
    if (n == 1) return;
    std::vector<double> er(n / 2), ei(n / 2), orr(n / 2), oi(n / 2);
    for (size_t i = 0; i < n / 2; i++) {
        er[i] = re[2 * i];
        ei[i] = im[2 * i];
        orr[i] = re[2 * i + 1];
        oi[i] = im[2 * i + 1];
    }
    transform(er, ei);
    transform(orr, oi);
    for (size_t k = 0; k < n / 2; k++) {
        double c = std::cos(TURN * k / n), s = -std::sin(TURN * k / n);
        double tr = orr[k] * c - oi[k] * s, ti = orr[k] * s + oi[k] * c;
        re[k] = er[k] + tr;
        im[k] = ei[k] + ti;
        re[k + n / 2] = er[k] - tr;
        im[k + n / 2] = ei[k] - ti;
    }
}

int main(int argc, char** argv) {
    int n = argument(argc, argv, 1, 64, LARGEST);
    int bits = 0;
    while ((1 << bits) < n) bits++;
    if (n < 64 || n != 1 << bits) {
        std::fprintf(stderr, "fft: size %d is not a power of two from 64 to %d\n", n, LARGEST);
        return 2;
    }
    size_t count = size_t(n) * n;
    std::vector<float2> data(count), twiddles(n / 2);
    Random random(1);
    for (float2& value : data) value = make_float2(random.uniform(-1.0f, 1.0f), random.uniform(-1.0f, 1.0f));
    for (int k = 0; k < n / 2; k++)
        twiddles[k] = make_float2(float(std::cos(TURN * k / n)), float(-std::sin(TURN * k / n)));

    Buffer<float2> first(data), second(count), device_twiddles(twiddles);
    dim3 grid(n / 16, n / 16), block(16, 16);
    fft_rows<<<n, n / 2>>>(first, device_twiddles, n, bits);
    transpose_complex<<<grid, block>>>(first, second, n);
    fft_rows<<<n, n / 2>>>(second, device_twiddles, n, bits);
    transpose_complex<<<grid, block>>>(second, first, n);
    CHECK_LAUNCH();

    std::vector<double> re(count), im(count);
    std::vector<double> line_re(n), line_im(n);
    for (size_t i = 0; i < count; i++) {
        re[i] = data[i].x;
        im[i] = data[i].y;
    }
    for (int pass = 0; pass < 2; pass++)
        for (int line = 0; line < n; line++) {
            auto at = [&](int k) { return pass == 0 ? size_t(line) * n + k : size_t(k) * n + line; };
            for (int k = 0; k < n; k++) {
                line_re[k] = re[at(k)];
                line_im[k] = im[at(k)];
            }
            transform(line_re, line_im);
            for (int k = 0; k < n; k++) {
                re[at(k)] = line_re[k];
                im[at(k)] = line_im[k];
            }
        }
    std::vector<float> got_re, got_im;
    for (float2 value : first.read()) {
        got_re.push_back(value.x);
        got_im.push_back(value.y);
    }
    // Values grow with n; the error is relative to that size.
    double error = std::fmax(worst_error(got_re, re), worst_error(got_im, im)) / n;
    return verdict("fft", error < 1e-5, "%d x %d complex, worst error %.2e of the size", n, n, error);
}
