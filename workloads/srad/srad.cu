// Speckle-reducing anisotropic diffusion of an image: statistics of the whole image, then two dependent stencils.
//
// Usage: srad [size] [iterations]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 256;

// Sums and sums of squares, a pair a block.
__global__ void image_statistics(const float* image, float* sums, float* squares, int count) {
    __shared__ float sum[THREADS];
    __shared__ float square[THREADS];
    float s = 0.0f;
    float q = 0.0f;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) {
        s += image[i];
        q += image[i] * image[i];
    }
    sum[threadIdx.x] = s;
    square[threadIdx.x] = q;
    __syncthreads();
    for (int stride = THREADS / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) {
            sum[threadIdx.x] += sum[threadIdx.x + stride];
            square[threadIdx.x] += square[threadIdx.x + stride];
        }
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        sums[blockIdx.x] = sum[0];
        squares[blockIdx.x] = square[0];
    }
}

struct Gradient {
    float north, south, west, east;
};

__device__ __host__ inline float coefficient(float centre, Gradient g, float variation) {
    float total = g.north + g.south + g.west + g.east;
    float squared = (g.north * g.north + g.south * g.south + g.west * g.west + g.east * g.east) / (centre * centre);
    float laplace = total / centre;
    float numerator = 0.5f * squared - 0.0625f * laplace * laplace;
    float denominator = 1.0f + 0.25f * laplace;
    float local = numerator / (denominator * denominator);
    float value = 1.0f / (1.0f + (local - variation) / (variation * (1.0f + variation)));
    return fminf(fmaxf(value, 0.0f), 1.0f);
}

__device__ __host__ inline Gradient gradient(const float* image, int x, int y, int n) {
    float centre = image[y * n + x];
    return {image[(y > 0 ? y - 1 : y) * n + x] - centre, image[(y < n - 1 ? y + 1 : y) * n + x] - centre,
            image[y * n + (x > 0 ? x - 1 : x)] - centre, image[y * n + (x < n - 1 ? x + 1 : x)] - centre};
}

__global__ void diffusion_coefficients(const float* image, float* coefficients, int n, float variation) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= n || y >= n) return;
    coefficients[y * n + x] = coefficient(image[y * n + x], gradient(image, x, y, n), variation);
}

__device__ __host__ inline float diffused(const float* image, const float* coefficients, int x, int y, int n) {
    Gradient g = gradient(image, x, y, n);
    float here = coefficients[y * n + x];
    float south = coefficients[(y < n - 1 ? y + 1 : y) * n + x];
    float east = coefficients[y * n + (x < n - 1 ? x + 1 : x)];
    return image[y * n + x] + 0.125f * (here * g.north + south * g.south + here * g.west + east * g.east);
}

__global__ void diffuse(const float* image, const float* coefficients, float* result, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < n && y < n) result[y * n + x] = diffused(image, coefficients, x, y, n);
}

// The square of the coefficient of variation.
static float variation_of(double sum, double squares, int count) {
    double mean = sum / count;
    return static_cast<float>((squares / count - mean * mean) / (mean * mean));
}

int main(int argc, char** argv) {
    int n = argument(argc, argv, 1, 96, 8192);
    int iterations = argument(argc, argv, 2, 2);
    int count = n * n;
    std::vector<float> image = uniform_values(count, 0.5f, 1.5f, 1);

    int blocks = std::min(32, blocks_for(count, THREADS));
    Buffer<float> first(image), second(count), coefficients(count), sums(blocks), squares(blocks);
    float* from = first;
    float* to = second;
    dim3 grid(blocks_for(n, 16), blocks_for(n, 16));
    dim3 block(16, 16);
    for (int i = 0; i < iterations; i++) {
        image_statistics<<<blocks, THREADS>>>(from, sums, squares, count);
        CHECK_LAUNCH();
        double sum = 0.0, square = 0.0;
        for (float value : sums.read()) sum += value;
        for (float value : squares.read()) square += value;
        diffusion_coefficients<<<grid, block>>>(from, coefficients, n, variation_of(sum, square, count));
        CHECK_LAUNCH();
        diffuse<<<grid, block>>>(from, coefficients, to, n);
        CHECK_LAUNCH();
        std::swap(from, to);
    }
    std::vector<float> got(count);
    CHECK(cudaMemcpy(got.data(), from, count * sizeof(float), cudaMemcpyDeviceToHost));

    std::vector<float> wanted = image, next(count), wanted_coefficients(count);
    for (int i = 0; i < iterations; i++) {
        double sum = 0.0, square = 0.0;
        for (float value : wanted) {
            sum += value;
            square += double(value) * value;
        }
        float variation = variation_of(sum, square, count);
        for (int y = 0; y < n; y++)
            for (int x = 0; x < n; x++)
                wanted_coefficients[y * n + x] =
                    coefficient(wanted[y * n + x], gradient(wanted.data(), x, y, n), variation);
        for (int y = 0; y < n; y++)
            for (int x = 0; x < n; x++)
                next[y * n + x] = diffused(wanted.data(), wanted_coefficients.data(), x, y, n);
        std::swap(wanted, next);
    }
    double error = worst_error(got, wanted);
    return verdict("srad", error < 1e-4, "%d x %d, %d iterations, worst error %.2e", n, n, iterations, error);
}
