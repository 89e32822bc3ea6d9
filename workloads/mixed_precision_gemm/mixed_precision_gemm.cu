// Mixed-precision matrix multiply as language models use it: half-precision inputs copied asynchronously into two
// shared-memory buffers, tensor cores with single-precision sums, bias and half-precision output.
//
// Needs sm_80. Usage: mixed_precision_gemm [rows] [columns] [depth], multiples of 64, 64 and 32
#include "../common/tensor.cuh"

using namespace workload;
using namespace tensor;

constexpr int TILE = 64;     // rows and columns a block computes, with 2 x 2 warps of 32 x 32
constexpr int DEPTH = 32;    // of the inner dimension at a time
constexpr int THREADS = 128;
// Rows are padded by 16 bytes, so that the eight rows of a matrix lie in different banks.
constexpr int A_PITCH = DEPTH + 8;
constexpr int B_PITCH = TILE + 8;

__global__ void gemm_bias(const __half* a, const __half* b, const float* bias, __half* c, int columns, int depth) {
    __shared__ __align__(16) __half tile_a[2][TILE][A_PITCH];
    __shared__ __align__(16) __half tile_b[2][DEPTH][B_PITCH];
    int row = blockIdx.y * TILE;
    int column = blockIdx.x * TILE;
    int lane = threadIdx.x % 32;
    int warp_row = threadIdx.x / 64 * 32;
    int warp_column = threadIdx.x / 32 % 2 * 32;
    auto fetch = [&](int buffer, int start) {
        for (int i = threadIdx.x; i < TILE * DEPTH / 8; i += THREADS) {
            int y = i / (DEPTH / 8), x = i % (DEPTH / 8) * 8;
            copy_async(&tile_a[buffer][y][x], &a[(row + y) * depth + start + x]);
        }
        for (int i = threadIdx.x; i < TILE * DEPTH / 8; i += THREADS) {
            int y = i / (TILE / 8), x = i % (TILE / 8) * 8;
            copy_async(&tile_b[buffer][y][x], &b[(start + y) * columns + column + x]);
        }
        commit_copies();
    };
    float sums[2][4][4] = {};
    fetch(0, 0);
    int buffer = 0;
    for (int start = 0; start < depth; start += DEPTH) {
        if (start + DEPTH < depth) {
            fetch(1 - buffer, start + DEPTH);
            wait_copies<1>();
        } else {
            wait_copies<0>();
        }
        __syncthreads();
        for (int k = 0; k < DEPTH; k += 16) {
            unsigned left[2][4], right[2][4];
            for (int i = 0; i < 2; i++)
                load_matrices(left[i], &tile_a[buffer][warp_row + i * 16 + lane % 16][k + lane / 16 * 8]);
            for (int j = 0; j < 2; j++)
                load_matrices_transposed(right[j], &tile_b[buffer][k + lane % 16][warp_column + j * 16 + lane / 16 * 8]);
            for (int i = 0; i < 2; i++)
                for (int j = 0; j < 4; j++)
                    multiply_add(sums[i][j], left[i], right[j / 2][j % 2 * 2], right[j / 2][j % 2 * 2 + 1]);
        }
        __syncthreads();
        buffer = 1 - buffer;
    }
    for (int i = 0; i < 2; i++)
        for (int j = 0; j < 4; j++) {
            int x = column + warp_column + j * 8 + lane % 4 * 2;
            int y = row + warp_row + i * 16 + lane / 4;
            float2 add = *reinterpret_cast<const float2*>(&bias[x]);
            *reinterpret_cast<unsigned*>(&c[y * columns + x]) = pack(sums[i][j][0] + add.x, sums[i][j][1] + add.y);
            *reinterpret_cast<unsigned*>(&c[(y + 8) * columns + x]) = pack(sums[i][j][2] + add.x, sums[i][j][3] + add.y);
        }
}

int main(int argc, char** argv) {
    int rows = argument(argc, argv, 1, 128, 16384);
    int columns = argument(argc, argv, 2, 128, 16384);
    int depth = argument(argc, argv, 3, 128, 16384);
    if (rows % TILE || columns % TILE || depth % DEPTH) {
        std::fprintf(stderr, "mixed_precision_gemm: sizes must be multiples of %d, %d and %d\n", TILE, TILE, DEPTH);
        return 2;
    }
    Random random(1);
    std::vector<__half> a(size_t(rows) * depth), b(size_t(depth) * columns);
    std::vector<float> real_a(a.size()), real_b(b.size());
    for (size_t i = 0; i < a.size(); i++) real_a[i] = __half2float(a[i] = __float2half(random.uniform(-1.0f, 1.0f)));
    for (size_t i = 0; i < b.size(); i++) real_b[i] = __half2float(b[i] = __float2half(random.uniform(-1.0f, 1.0f)));
    std::vector<float> bias = uniform_values(columns, -1.0f, 1.0f, 3);

    Buffer<__half> device_a(a), device_b(b), device_c(size_t(rows) * columns);
    Buffer<float> device_bias(bias);
    gemm_bias<<<dim3(columns / TILE, rows / TILE), THREADS>>>(device_a, device_b, device_bias, device_c, columns, depth);
    CHECK_LAUNCH();

    std::vector<double> wanted(size_t(rows) * columns);
    for (int row = 0; row < rows; row++) {
        for (int column = 0; column < columns; column++) wanted[size_t(row) * columns + column] = bias[column];
        for (int k = 0; k < depth; k++)
            for (int column = 0; column < columns; column++)
                wanted[size_t(row) * columns + column] +=
                    double(real_a[size_t(row) * depth + k]) * real_b[size_t(k) * columns + column];
    }
    std::vector<float> got;
    for (__half value : device_c.read()) got.push_back(__half2float(value));
    double error = worst_error(got, wanted);
    return verdict("mixed_precision_gemm", error < 2e-3, "%d x %d x %d, worst error %.2e", rows, columns, depth, error);
}
