// A stencil of five points whose threads compute several results each: down a column with values kept in registers,
// side by side in a row, and from a tile in shared memory; and seven points in a volume, plane by plane.
//
// Usage: coarsened_stencil [side]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 128;
constexpr int TILE_ROWS = 8;
constexpr int PLANES = 16;

// Whole numbers: every order of summing gives the same.
__host__ __device__ inline int five(int middle, int left, int right, int up, int down) {
    return 4 * middle + left + right + 2 * up + 2 * down;
}

// A thread computes COUNT results below each other; two of three rows are already in registers.
template <int COUNT>
__global__ void down_columns(const int* in, int* out, int side) {
    int x = blockIdx.x * THREADS + threadIdx.x + 1, y = blockIdx.y * COUNT + 1;
    if (x >= side - 1) return;
    int up = in[(y - 1) * side + x], middle = in[y * side + x];
#pragma unroll
    for (int k = 0; k < COUNT; k++) {
        if (y + k >= side - 1) return;
        int at = (y + k) * side + x, down = in[at + side];
        out[at] = five(middle, in[at - 1], in[at + 1], up, down);
        up = middle;
        middle = down;
    }
}

// COUNT results beside each other: lanes are COUNT words apart.
template <int COUNT>
__global__ void along_rows(const int* in, int* out, int side) {
    int x = (blockIdx.x * THREADS + threadIdx.x) * COUNT + 1, y = blockIdx.y + 1;
#pragma unroll
    for (int k = 0; k < COUNT; k++)
        if (x + k < side - 1) {
            int at = y * side + x + k;
            out[at] = five(in[at], in[at - 1], in[at + 1], in[at - side], in[at + side]);
        }
}

__global__ void from_tile(const int* in, int* out, int side) {
    __shared__ int tile[TILE_ROWS + 2][THREADS + 2];
    int left = blockIdx.x * THREADS, top = blockIdx.y * TILE_ROWS;
    for (int row = 0; row < TILE_ROWS + 2; row++)
        for (int k = threadIdx.x; k < THREADS + 2; k += THREADS)
            if (left + k < side && top + row < side) tile[row][k] = in[(top + row) * side + left + k];
    __syncthreads();
    int x = left + threadIdx.x + 1, k = threadIdx.x + 1;
    if (x >= side - 1) return;
    for (int row = 1; row <= TILE_ROWS && top + row < side - 1; row++)
        out[(top + row) * side + x] = five(tile[row][k], tile[row][k - 1], tile[row][k + 1], tile[row - 1][k], tile[row + 1][k]);
}

__global__ void through_planes(const int* in, int* out, int side) {
    int x = blockIdx.x * 32 + threadIdx.x + 1, y = blockIdx.y * 4 + threadIdx.y + 1, plane = side * side;
    if (x >= side - 1 || y >= side - 1) return;
    int at = y * side + x, before = in[at], middle = in[at + plane];
    for (int z = 1; z < PLANES - 1; z++) {
        at += plane;
        int behind = in[at + plane];
        out[at] = five(middle, in[at - 1], in[at + 1], in[at - side], in[at + side]) + 3 * before + 3 * behind;
        before = middle;
        middle = behind;
    }
}

static std::vector<int> flat_on_host(const std::vector<int>& in, int side) {
    std::vector<int> out(in.size(), 0);
    for (int y = 1; y < side - 1; y++)
        for (int x = 1; x < side - 1; x++) {
            int at = y * side + x;
            out[at] = five(in[at], in[at - 1], in[at + 1], in[at - side], in[at + side]);
        }
    return out;
}

int main(int argc, char** argv) {
    int side = argument(argc, argv, 1, 260, 8192);
    int volume_side = std::max(8, side / 4);
    Random random(3);
    std::vector<int> flat(size_t(side) * side), volume(size_t(volume_side) * volume_side * PLANES);
    for (int& value : flat) value = random.below(1000);
    for (int& value : volume) value = random.below(1000);
    Buffer<int> in(flat), four(flat.size()), eight(flat.size()), beside(flat.size()), tiled(flat.size());
    Buffer<int> solid(volume), planes(volume.size());
    for (Buffer<int>* out : {&four, &eight, &beside, &tiled, &planes}) out->clear();
    int columns = blocks_for(side - 2, THREADS), rows = side - 2;
    down_columns<4><<<dim3(columns, blocks_for(rows, 4)), THREADS>>>(in, four, side);
    down_columns<8><<<dim3(columns, blocks_for(rows, 8)), THREADS>>>(in, eight, side);
    along_rows<4><<<dim3(blocks_for(side - 2, THREADS * 4), rows), THREADS>>>(in, beside, side);
    from_tile<<<dim3(columns, blocks_for(rows, TILE_ROWS)), THREADS>>>(in, tiled, side);
    through_planes<<<dim3(blocks_for(volume_side - 2, 32), blocks_for(volume_side - 2, 4)), dim3(32, 4)>>>(solid, planes, volume_side);
    CHECK_LAUNCH();
    std::vector<int> wanted = flat_on_host(flat, side), wanted_planes(volume.size(), 0);
    int plane = volume_side * volume_side;
    for (int z = 1; z < PLANES - 1; z++)
        for (int y = 1; y < volume_side - 1; y++)
            for (int x = 1; x < volume_side - 1; x++) {
                const int* v = &volume[size_t(z) * plane + y * volume_side + x];
                wanted_planes[v - volume.data()] =
                    five(v[0], v[-1], v[1], v[-volume_side], v[volume_side]) + 3 * v[-plane] + 3 * v[plane];
            }
    size_t wrong = mismatches(four.read(), wanted) + mismatches(eight.read(), wanted) + mismatches(beside.read(), wanted) +
                   mismatches(tiled.read(), wanted) + mismatches(planes.read(), wanted_planes);
    return verdict("coarsened_stencil", wrong == 0, "%d x %d, %zu cells wrong", side, side, wrong);
}
