// Image convolution with the filter in constant memory: a 5 x 5 window straight from global memory, and a separable
// Gaussian as rows and columns through shared memory.
//
// Usage: convolution [width] [height]
#include "../common/workload.cuh"

using namespace workload;

constexpr int RADIUS = 2;
constexpr int WINDOW = 2 * RADIUS + 1;
constexpr int LONG_RADIUS = 6;
constexpr int TILE_X = 32;
constexpr int TILE_Y = 8;

__constant__ float window_filter[WINDOW * WINDOW];
__constant__ float line_filter[2 * LONG_RADIUS + 1];

__host__ __device__ inline int clamp_to(int v, int size) { return v < 0 ? 0 : v >= size ? size - 1 : v; }

__global__ void convolve_window(const float* in, float* out, int width, int height) {
    int x = blockIdx.x * TILE_X + threadIdx.x;
    int y = blockIdx.y * TILE_Y + threadIdx.y;
    if (x >= width || y >= height) return;
    float sum = 0.0f;
    for (int dy = -RADIUS; dy <= RADIUS; dy++)
        for (int dx = -RADIUS; dx <= RADIUS; dx++)
            sum += window_filter[(dy + RADIUS) * WINDOW + dx + RADIUS] *
                   in[clamp_to(y + dy, height) * width + clamp_to(x + dx, width)];
    out[y * width + x] = sum;
}

__global__ void convolve_rows(const float* in, float* out, int width, int height) {
    __shared__ float tile[TILE_Y][TILE_X + 2 * LONG_RADIUS];
    int y = min(int(blockIdx.y * TILE_Y + threadIdx.y), height - 1);
    int left = int(blockIdx.x) * TILE_X - LONG_RADIUS;
    for (int k = threadIdx.x; k < TILE_X + 2 * LONG_RADIUS; k += TILE_X)
        tile[threadIdx.y][k] = in[y * width + clamp_to(left + k, width)];
    __syncthreads();
    int x = blockIdx.x * TILE_X + threadIdx.x;
    float sum = 0.0f;
    for (int k = 0; k <= 2 * LONG_RADIUS; k++) sum += line_filter[k] * tile[threadIdx.y][threadIdx.x + k];
    if (x < width && blockIdx.y * TILE_Y + threadIdx.y < height) out[y * width + x] = sum;
}

__global__ void convolve_columns(const float* in, float* out, int width, int height) {
    __shared__ float tile[TILE_Y + 2 * LONG_RADIUS][TILE_X];
    int x = min(int(blockIdx.x * TILE_X + threadIdx.x), width - 1);
    int top = int(blockIdx.y) * TILE_Y - LONG_RADIUS;
    for (int k = threadIdx.y; k < TILE_Y + 2 * LONG_RADIUS; k += TILE_Y)
        tile[k][threadIdx.x] = in[clamp_to(top + k, height) * width + x];
    __syncthreads();
    int y = blockIdx.y * TILE_Y + threadIdx.y;
    float sum = 0.0f;
    for (int k = 0; k <= 2 * LONG_RADIUS; k++) sum += line_filter[k] * tile[threadIdx.y + k][threadIdx.x];
    if (y < height && blockIdx.x * TILE_X + threadIdx.x < width) out[y * width + x] = sum;
}

int main(int argc, char** argv) {
    int width = argument(argc, argv, 1, 200, 16384);
    int height = argument(argc, argv, 2, 120, 16384);
    size_t count = size_t(width) * height;
    std::vector<float> image = uniform_values(count, 0.0f, 1.0f, 1);
    std::vector<float> window = uniform_values(WINDOW * WINDOW, -0.2f, 0.3f, 2);
    std::vector<float> line(2 * LONG_RADIUS + 1);
    float total = 0.0f;
    for (int k = 0; k <= 2 * LONG_RADIUS; k++) {
        float d = float(k - LONG_RADIUS) / 3.0f;
        total += line[k] = std::exp(-0.5f * d * d);
    }
    for (float& value : line) value /= total;
    CHECK(cudaMemcpyToSymbol(window_filter, window.data(), window.size() * sizeof(float)));
    CHECK(cudaMemcpyToSymbol(line_filter, line.data(), line.size() * sizeof(float)));

    Buffer<float> device_image(image), windowed(count), half_way(count), blurred(count);
    dim3 grid(blocks_for(width, TILE_X), blocks_for(height, TILE_Y)), block(TILE_X, TILE_Y);
    convolve_window<<<grid, block>>>(device_image, windowed, width, height);
    convolve_rows<<<grid, block>>>(device_image, half_way, width, height);
    convolve_columns<<<grid, block>>>(half_way, blurred, width, height);
    CHECK_LAUNCH();

    std::vector<double> wanted_window(count, 0.0), rows(count, 0.0), wanted_blur(count, 0.0);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            size_t i = size_t(y) * width + x;
            for (int dy = -RADIUS; dy <= RADIUS; dy++)
                for (int dx = -RADIUS; dx <= RADIUS; dx++)
                    wanted_window[i] += double(window[(dy + RADIUS) * WINDOW + dx + RADIUS]) *
                                        image[size_t(clamp_to(y + dy, height)) * width + clamp_to(x + dx, width)];
            for (int k = 0; k <= 2 * LONG_RADIUS; k++)
                rows[i] += double(line[k]) * image[size_t(y) * width + clamp_to(x + k - LONG_RADIUS, width)];
        }
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int k = 0; k <= 2 * LONG_RADIUS; k++)
                wanted_blur[size_t(y) * width + x] +=
                    line[k] * rows[size_t(clamp_to(y + k - LONG_RADIUS, height)) * width + x];
    double window_error = worst_error(windowed.read(), wanted_window);
    double blur_error = worst_error(blurred.read(), wanted_blur);
    return verdict("convolution", window_error < 1e-5 && blur_error < 1e-5,
                   "%d x %d, worst error %.2e window, %.2e separable", width, height, window_error, blur_error);
}
