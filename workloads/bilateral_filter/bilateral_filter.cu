// A bilateral filter: weights fall with distance and with the difference of colour, so that edges stay sharp.
//
// Usage: bilateral_filter [width] [height]
#include "../common/workload.cuh"

using namespace workload;

constexpr int RADIUS = 3;
constexpr float SPATIAL = 1.0f / (2.0f * 2.0f * 2.0f);
constexpr float COLOUR = 1.0f / (2.0f * 0.2f * 0.2f);

__host__ __device__ inline int clamp_to(int v, int size) { return v < 0 ? 0 : v >= size ? size - 1 : v; }

// Three colours and an unused fourth in one 16-byte pixel.
__global__ void filter_bilateral(const float4* in, float4* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    float4 centre = in[y * width + x];
    float4 sum = make_float4(0, 0, 0, 0);
    for (int dy = -RADIUS; dy <= RADIUS; dy++)
        for (int dx = -RADIUS; dx <= RADIUS; dx++) {
            float4 other = in[clamp_to(y + dy, height) * width + clamp_to(x + dx, width)];
            float r = other.x - centre.x, g = other.y - centre.y, b = other.z - centre.z;
            float weight = __expf(-SPATIAL * (dx * dx + dy * dy) - COLOUR * (r * r + g * g + b * b));
            sum.x += weight * other.x;
            sum.y += weight * other.y;
            sum.z += weight * other.z;
            sum.w += weight;
        }
    out[y * width + x] = make_float4(sum.x / sum.w, sum.y / sum.w, sum.z / sum.w, centre.w);
}

int main(int argc, char** argv) {
    int width = argument(argc, argv, 1, 96, 8192);
    int height = argument(argc, argv, 2, 64, 8192);
    size_t count = size_t(width) * height;
    std::vector<float4> image(count);
    Random random(1);
    for (size_t i = 0; i < count; i++) {
        float base = (i % width / 16 + i / width / 16) % 2 == 0 ? 0.2f : 0.8f;
        image[i] = make_float4(base + random.uniform(-0.1f, 0.1f), base + random.uniform(-0.1f, 0.1f),
                               base + random.uniform(-0.1f, 0.1f), 1.0f);
    }
    Buffer<float4> device_image(image), filtered(count);
    filter_bilateral<<<dim3(blocks_for(width, 16), blocks_for(height, 8)), dim3(16, 8)>>>(device_image, filtered, width, height);
    CHECK_LAUNCH();
    double worst = 0.0;
    std::vector<float4> got = filtered.read();
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            float4 centre = image[size_t(y) * width + x];
            double sum[3] = {}, total = 0.0;
            for (int dy = -RADIUS; dy <= RADIUS; dy++)
                for (int dx = -RADIUS; dx <= RADIUS; dx++) {
                    float4 other = image[size_t(clamp_to(y + dy, height)) * width + clamp_to(x + dx, width)];
                    double r = other.x - centre.x, g = other.y - centre.y, b = other.z - centre.z;
                    double weight = std::exp(-double(SPATIAL) * (dx * dx + dy * dy) - double(COLOUR) * (r * r + g * g + b * b));
                    sum[0] += weight * other.x;
                    sum[1] += weight * other.y;
                    sum[2] += weight * other.z;
                    total += weight;
                }
            float4 pixel = got[size_t(y) * width + x];
            const float channels[3] = {pixel.x, pixel.y, pixel.z};
            for (int c = 0; c < 3; c++) {
                double error = std::fabs(channels[c] - sum[c] / total);
                if (!(error <= worst)) worst = std::isfinite(error) ? error : INFINITY;
            }
        }
    return verdict("bilateral_filter", worst < 1e-4, "%d x %d, worst error %.2e", width, height, worst);
}
