// Median of 3 x 3 windows of bytes by a network of exchanges in registers, and of 5 x 5 windows by a histogram a thread.
//
// Usage: median_filter [width] [height]
#include <algorithm>

#include "../common/workload.cuh"

using namespace workload;

__host__ __device__ inline int clamp_to(int v, int size) { return v < 0 ? 0 : v >= size ? size - 1 : v; }

__device__ inline void exchange(int& a, int& b) {
    int low = min(a, b);
    b = max(a, b);
    a = low;
}

__global__ void median_network(const unsigned char* in, unsigned char* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    int v[9];
    for (int k = 0; k < 9; k++) v[k] = in[clamp_to(y + k / 3 - 1, height) * width + clamp_to(x + k % 3 - 1, width)];
    // Sort the three columns, then find the middle of the largest minimum, the middle and the smallest maximum.
    for (int c = 0; c < 3; c++) {
        exchange(v[3 * c], v[3 * c + 1]);
        exchange(v[3 * c + 1], v[3 * c + 2]);
        exchange(v[3 * c], v[3 * c + 1]);
    }
    int low = max(v[0], max(v[3], v[6]));
    int middle = max(min(v[1], v[4]), min(max(v[1], v[4]), v[7]));
    int high = min(v[2], min(v[5], v[8]));
    out[y * width + x] = static_cast<unsigned char>(max(min(low, middle), min(max(low, middle), high)));
}

// Counts of the 16 high halves of bytes, then of the low halves within the half that holds the median.
__global__ void median_counting(const unsigned char* in, unsigned char* out, int width, int height) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x >= width || y >= height) return;
    unsigned char counts[16];
    int wanted = 12;  // elements below the median of 25
    int high = -1;
    for (int pass = 0; pass < 2; pass++) {
        for (int k = 0; k < 16; k++) counts[k] = 0;
        for (int k = 0; k < 25; k++) {
            int value = in[clamp_to(y + k / 5 - 2, height) * width + clamp_to(x + k % 5 - 2, width)];
            if (pass == 0)
                counts[value >> 4]++;
            else if (value >> 4 == high)
                counts[value & 15]++;
        }
        int bin = 0;
        while (wanted >= counts[bin]) wanted -= counts[bin++];
        if (pass == 0)
            high = bin;
        else
            out[y * width + x] = static_cast<unsigned char>(high << 4 | bin);
    }
}

static std::vector<unsigned char> reference(const std::vector<unsigned char>& in, int width, int height, int radius) {
    std::vector<unsigned char> out(in.size());
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++) {
            std::vector<unsigned char> window;
            for (int dy = -radius; dy <= radius; dy++)
                for (int dx = -radius; dx <= radius; dx++)
                    window.push_back(in[size_t(clamp_to(y + dy, height)) * width + clamp_to(x + dx, width)]);
            std::nth_element(window.begin(), window.begin() + window.size() / 2, window.end());
            out[size_t(y) * width + x] = window[window.size() / 2];
        }
    return out;
}

int main(int argc, char** argv) {
    int width = argument(argc, argv, 1, 96, 8192);
    int height = argument(argc, argv, 2, 64, 8192);
    size_t count = size_t(width) * height;
    std::vector<unsigned char> image(count);
    Random random(1);
    // A gradient with specks of salt and pepper.
    for (size_t i = 0; i < count; i++)
        image[i] = static_cast<unsigned char>(random.below(8) == 0 ? random.below(2) * 255
                                                                   : (i % width) * 255 / width / 2 + random.below(64));
    Buffer<unsigned char> device_image(image), small(count), large(count);
    dim3 grid(blocks_for(width, 32), blocks_for(height, 4)), block(32, 4);
    median_network<<<grid, block>>>(device_image, small, width, height);
    median_counting<<<grid, block>>>(device_image, large, width, height);
    CHECK_LAUNCH();
    size_t small_wrong = mismatches(small.read(), reference(image, width, height, 1));
    size_t large_wrong = mismatches(large.read(), reference(image, width, height, 2));
    return verdict("median_filter", small_wrong + large_wrong == 0, "%d x %d, wrong pixels: %zu of 3 x 3, %zu of 5 x 5", width,
                   height, small_wrong, large_wrong);
}
