// Matrix transpose: with scattered writes, through shared memory with bank conflicts, and without them.
//
// Usage: transpose [rows] [columns]
#include "../common/workload.cuh"

using namespace workload;

constexpr int TILE = 32;
constexpr int ROWS = 8;

__global__ void transpose_scattered(const float* in, float* out, int rows, int columns) {
    int x = blockIdx.x * TILE + threadIdx.x;
    for (int y = blockIdx.y * TILE + threadIdx.y; y < min(rows, int(blockIdx.y + 1) * TILE); y += ROWS)
        if (x < columns) out[x * rows + y] = in[y * columns + x];
}

// A row of TILE words puts a column into one bank; PADDING of one word spreads it.
template <int PADDING>
__global__ void transpose_tiled(const float* in, float* out, int rows, int columns) {
    __shared__ float tile[TILE][TILE + PADDING];
    int x = blockIdx.x * TILE + threadIdx.x;
    int y = blockIdx.y * TILE + threadIdx.y;
    for (int i = 0; i < TILE; i += ROWS)
        if (x < columns && y + i < rows) tile[threadIdx.y + i][threadIdx.x] = in[(y + i) * columns + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x;
    y = blockIdx.x * TILE + threadIdx.y;
    for (int i = 0; i < TILE; i += ROWS)
        if (x < rows && y + i < columns) out[(y + i) * rows + x] = tile[threadIdx.x][threadIdx.y + i];
}

int main(int argc, char** argv) {
    int rows = argument(argc, argv, 1, 200, 16384);
    int columns = argument(argc, argv, 2, 328, 16384);
    size_t count = size_t(rows) * columns;
    std::vector<float> in = uniform_values(count, -1.0f, 1.0f, 1);
    std::vector<float> wanted(count);
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++) wanted[size_t(x) * rows + y] = in[size_t(y) * columns + x];

    Buffer<float> device_in(in), out(count);
    dim3 grid(blocks_for(columns, TILE), blocks_for(rows, TILE));
    dim3 block(TILE, ROWS);
    size_t wrong[3];
    out.clear();
    transpose_scattered<<<grid, block>>>(device_in, out, rows, columns);
    CHECK_LAUNCH();
    wrong[0] = mismatches(out.read(), wanted);
    out.clear();
    transpose_tiled<0><<<grid, block>>>(device_in, out, rows, columns);
    CHECK_LAUNCH();
    wrong[1] = mismatches(out.read(), wanted);
    out.clear();
    transpose_tiled<1><<<grid, block>>>(device_in, out, rows, columns);
    CHECK_LAUNCH();
    wrong[2] = mismatches(out.read(), wanted);
    return verdict("transpose", wrong[0] + wrong[1] + wrong[2] == 0, "%d x %d, wrong: %zu scattered, %zu tiled, %zu padded",
                   rows, columns, wrong[0], wrong[1], wrong[2]);
}
