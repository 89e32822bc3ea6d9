// Double-precision matrix multiply with shared-memory tiles and two results a thread.
//
// Usage: dgemm [size, a multiple of 32]
#include "../common/workload.cuh"

using namespace workload;

constexpr int TILE = 32;
constexpr int ROWS = 16;  // threads in y; each computes two rows

__global__ void dgemm_tiled(const double* a, const double* b, double* c, int n, double alpha, double beta) {
    __shared__ double tile_a[TILE][TILE + 1];
    __shared__ double tile_b[TILE][TILE];
    int tx = threadIdx.x;
    int ty = threadIdx.y;
    int column = blockIdx.x * TILE + tx;
    int row = blockIdx.y * TILE + ty;
    double upper = 0.0;
    double lower = 0.0;
    for (int start = 0; start < n; start += TILE) {
        for (int half = 0; half < TILE; half += ROWS) {
            tile_a[ty + half][tx] = a[(row + half) * n + start + tx];
            tile_b[ty + half][tx] = b[(start + ty + half) * n + column];
        }
        __syncthreads();
        for (int k = 0; k < TILE; k++) {
            double right = tile_b[k][tx];
            upper = fma(tile_a[ty][k], right, upper);
            lower = fma(tile_a[ty + ROWS][k], right, lower);
        }
        __syncthreads();
    }
    c[row * n + column] = alpha * upper + beta * c[row * n + column];
    c[(row + ROWS) * n + column] = alpha * lower + beta * c[(row + ROWS) * n + column];
}

int main(int argc, char** argv) {
    int n = argument(argc, argv, 1, 96, 8192);
    if (n % TILE != 0) {
        std::fprintf(stderr, "dgemm: size %d is not a multiple of %d\n", n, TILE);
        return 2;
    }
    size_t count = size_t(n) * n;
    std::vector<double> a = uniform_values(count, -1.0, 1.0, 1);
    std::vector<double> b = uniform_values(count, -1.0, 1.0, 2);
    std::vector<double> c = uniform_values(count, -1.0, 1.0, 3);
    double alpha = 1.25, beta = -0.5;

    Buffer<double> device_a(a), device_b(b), device_c(c);
    dgemm_tiled<<<dim3(n / TILE, n / TILE), dim3(TILE, ROWS)>>>(device_a, device_b, device_c, n, alpha, beta);
    CHECK_LAUNCH();

    std::vector<double> wanted(count, 0.0);
    for (int row = 0; row < n; row++) {
        for (int k = 0; k < n; k++)
            for (int column = 0; column < n; column++)
                wanted[size_t(row) * n + column] += a[size_t(row) * n + k] * b[size_t(k) * n + column];
        for (int column = 0; column < n; column++) {
            size_t i = size_t(row) * n + column;
            wanted[i] = alpha * wanted[i] + beta * c[i];
        }
    }
    double error = worst_error(device_c.read(), wanted);
    return verdict("dgemm", error < 1e-12, "%d x %d, worst error %.2e", n, n, error);
}
