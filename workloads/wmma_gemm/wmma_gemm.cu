// Half-precision matrix multiply through the warp matrix functions of CUDA C++, which hide the fragment layout.
// They run on every architecture since Volta, so this is the tensor-core program for the oldest one.
//
// Usage: wmma_gemm [size, a multiple of 32]
#include <cuda_fp16.h>
#include <mma.h>

#include "../common/workload.cuh"

using namespace workload;
namespace wmma = nvcuda::wmma;

// Four warps a block, each with a 16 x 16 tile of a 32 x 32 patch.
__global__ void wmma_tiles(const __half* a, const __half* b, float* c, int n) {
    int warp = threadIdx.x / 32;
    int row = blockIdx.y * 32 + warp / 2 * 16;
    int column = blockIdx.x * 32 + warp % 2 * 16;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sums;
    wmma::fill_fragment(sums, 0.0f);
    for (int k = 0; k < n; k += 16) {
        wmma::fragment<wmma::matrix_a, 16, 16, 16, __half, wmma::row_major> left;
        wmma::fragment<wmma::matrix_b, 16, 16, 16, __half, wmma::row_major> right;
        wmma::load_matrix_sync(left, a + row * n + k, n);
        wmma::load_matrix_sync(right, b + k * n + column, n);
        wmma::mma_sync(sums, left, right, sums);
    }
    wmma::store_matrix_sync(c + row * n + column, sums, n, wmma::mem_row_major);
}

int main(int argc, char** argv) {
    int n = argument(argc, argv, 1, 96, 8192);
    if (n % 32 != 0) {
        std::fprintf(stderr, "wmma_gemm: size %d is not a multiple of 32\n", n);
        return 2;
    }
    size_t count = size_t(n) * n;
    std::vector<__half> a(count), b(count);
    std::vector<float> real_a(count), real_b(count);
    Random random(1);
    for (size_t i = 0; i < count; i++) {
        a[i] = __float2half(random.uniform(-1.0f, 1.0f));
        b[i] = __float2half(random.uniform(-1.0f, 1.0f));
        real_a[i] = __half2float(a[i]);
        real_b[i] = __half2float(b[i]);
    }
    Buffer<__half> device_a(a), device_b(b);
    Buffer<float> device_c(count);
    wmma_tiles<<<dim3(n / 32, n / 32), 128>>>(device_a, device_b, device_c, n);
    CHECK_LAUNCH();
    std::vector<double> wanted(count, 0.0);
    for (int row = 0; row < n; row++)
        for (int k = 0; k < n; k++)
            for (int column = 0; column < n; column++)
                wanted[size_t(row) * n + column] += double(real_a[size_t(row) * n + k]) * real_b[size_t(k) * n + column];
    double error = worst_error(device_c.read(), wanted);
    return verdict("wmma_gemm", error < 1e-5 * n, "%d x %d, worst error %.2e", n, n, error);
}
