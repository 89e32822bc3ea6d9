// Single-precision matrix multiply, three ways: straight from global memory, a block of results in the registers
// of each thread, and the same with 16-byte accesses and two shared-memory buffers.
//
// Usage: sgemm_variants [size, a multiple of 64]
#include "../common/workload.cuh"

using namespace workload;

__global__ void sgemm_naive(const float* a, const float* b, float* c, int n) {
    int column = blockIdx.x * blockDim.x + threadIdx.x;
    int row = blockIdx.y * blockDim.y + threadIdx.y;
    if (row >= n || column >= n) return;
    float sum = 0.0f;
    for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + column];
    c[row * n + column] = sum;
}

constexpr int TILE = 64;   // results a block computes, squared
constexpr int DEPTH = 8;   // of the inner dimension at a time
constexpr int PATCH = 4;   // results a thread computes, squared
constexpr int THREADS = (TILE / PATCH) * (TILE / PATCH);

__global__ void sgemm_register_tiled(const float* a, const float* b, float* c, int n) {
    __shared__ float tile_a[DEPTH][TILE];
    __shared__ float tile_b[DEPTH][TILE];
    int row = blockIdx.y * TILE;
    int column = blockIdx.x * TILE;
    int patch_x = threadIdx.x % (TILE / PATCH) * PATCH;
    int patch_y = threadIdx.x / (TILE / PATCH) * PATCH;
    float sums[PATCH][PATCH] = {};
    for (int start = 0; start < n; start += DEPTH) {
        for (int i = threadIdx.x; i < TILE * DEPTH; i += THREADS) {
            tile_a[i % DEPTH][i / DEPTH] = a[(row + i / DEPTH) * n + start + i % DEPTH];
            tile_b[i / TILE][i % TILE] = b[(start + i / TILE) * n + column + i % TILE];
        }
        __syncthreads();
        for (int k = 0; k < DEPTH; k++) {
            float from_a[PATCH], from_b[PATCH];
            for (int i = 0; i < PATCH; i++) {
                from_a[i] = tile_a[k][patch_y + i];
                from_b[i] = tile_b[k][patch_x + i];
            }
            for (int y = 0; y < PATCH; y++)
                for (int x = 0; x < PATCH; x++) sums[y][x] += from_a[y] * from_b[x];
        }
        __syncthreads();
    }
    for (int y = 0; y < PATCH; y++)
        for (int x = 0; x < PATCH; x++) c[(row + patch_y + y) * n + column + patch_x + x] = sums[y][x];
}

// Half the threads fetch one float4 of A, half one of B, while the block multiplies the tile fetched before.
__global__ void sgemm_double_buffered(const float* a, const float* b, float* c, int n) {
    __shared__ __align__(16) float tile_a[2][DEPTH][TILE];
    __shared__ __align__(16) float tile_b[2][DEPTH][TILE];
    int row = blockIdx.y * TILE;
    int column = blockIdx.x * TILE;
    int patch_x = threadIdx.x % (TILE / PATCH) * PATCH;
    int patch_y = threadIdx.x / (TILE / PATCH) * PATCH;
    bool for_a = threadIdx.x < THREADS / 2;
    int t = threadIdx.x % (THREADS / 2);
    int a_row = t / (DEPTH / 4), a_column = t % (DEPTH / 4) * 4;
    int b_row = t / (TILE / 4), b_column = t % (TILE / 4) * 4;
    auto fetch = [&](int start) {
        const float* from = for_a ? &a[(row + a_row) * n + start + a_column] : &b[(start + b_row) * n + column + b_column];
        return *reinterpret_cast<const float4*>(from);
    };
    auto keep = [&](int buffer, float4 value) {
        if (for_a) {
            tile_a[buffer][a_column][a_row] = value.x;
            tile_a[buffer][a_column + 1][a_row] = value.y;
            tile_a[buffer][a_column + 2][a_row] = value.z;
            tile_a[buffer][a_column + 3][a_row] = value.w;
        } else {
            *reinterpret_cast<float4*>(&tile_b[buffer][b_row][b_column]) = value;
        }
    };
    float sums[PATCH][PATCH] = {};
    keep(0, fetch(0));
    __syncthreads();
    int buffer = 0;
    for (int start = 0; start < n; start += DEPTH) {
        bool more = start + DEPTH < n;
        float4 ahead = more ? fetch(start + DEPTH) : make_float4(0, 0, 0, 0);
        for (int k = 0; k < DEPTH; k++) {
            float4 from_a = *reinterpret_cast<const float4*>(&tile_a[buffer][k][patch_y]);
            float4 from_b = *reinterpret_cast<const float4*>(&tile_b[buffer][k][patch_x]);
            float left[PATCH] = {from_a.x, from_a.y, from_a.z, from_a.w};
            float right[PATCH] = {from_b.x, from_b.y, from_b.z, from_b.w};
            for (int y = 0; y < PATCH; y++)
                for (int x = 0; x < PATCH; x++) sums[y][x] += left[y] * right[x];
        }
        if (more) keep(1 - buffer, ahead);
        __syncthreads();
        buffer = 1 - buffer;
    }
    for (int y = 0; y < PATCH; y++)
        *reinterpret_cast<float4*>(&c[(row + patch_y + y) * n + column + patch_x]) =
            make_float4(sums[y][0], sums[y][1], sums[y][2], sums[y][3]);
}

int main(int argc, char** argv) {
    int n = argument(argc, argv, 1, 128, 8192);
    if (n % TILE != 0) {
        std::fprintf(stderr, "sgemm_variants: size %d is not a multiple of %d\n", n, TILE);
        return 2;
    }
    size_t count = size_t(n) * n;
    std::vector<float> a = uniform_values(count, -1.0f, 1.0f, 1);
    std::vector<float> b = uniform_values(count, -1.0f, 1.0f, 2);
    std::vector<double> wanted(count, 0.0);
    for (int row = 0; row < n; row++)
        for (int k = 0; k < n; k++)
            for (int column = 0; column < n; column++)
                wanted[size_t(row) * n + column] += double(a[size_t(row) * n + k]) * b[size_t(k) * n + column];

    Buffer<float> device_a(a), device_b(b), device_c(count);
    dim3 tiles(n / TILE, n / TILE);
    double errors[3];
    device_c.clear();
    sgemm_naive<<<dim3(n / 16, n / 16), dim3(16, 16)>>>(device_a, device_b, device_c, n);
    CHECK_LAUNCH();
    errors[0] = worst_error(device_c.read(), wanted);
    device_c.clear();
    sgemm_register_tiled<<<tiles, THREADS>>>(device_a, device_b, device_c, n);
    CHECK_LAUNCH();
    errors[1] = worst_error(device_c.read(), wanted);
    device_c.clear();
    sgemm_double_buffered<<<tiles, THREADS>>>(device_a, device_b, device_c, n);
    CHECK_LAUNCH();
    errors[2] = worst_error(device_c.read(), wanted);
    double limit = 1e-6 * n;
    return verdict("sgemm_variants", errors[0] < limit && errors[1] < limit && errors[2] < limit,
                   "%d x %d, worst errors %.2e naive, %.2e register tiled, %.2e double buffered", n, n, errors[0], errors[1],
                   errors[2]);
}
