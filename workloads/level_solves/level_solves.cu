// A sparse triangular system, solved level by level: many small launches, each of which needs the one before; with a
// thread a row, a warp a row, all levels in one block, and updates pushed to the rows that wait.
//
// Usage: level_solves [rows of a level [levels]]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 128;
constexpr int ENTRIES = 12;

// Row r of a level depends on ENTRIES rows of the level before. Whole numbers modulo 2^32: exact in any order.
__host__ __device__ inline int column(int row, int k, int width) {
    return int((unsigned(row) * 2654435761u + unsigned(k) * 40503u * 7919u) % unsigned(width));
}
__host__ __device__ inline unsigned coefficient(int row, int k) { return unsigned(row * 31 + k * 17) | 1u; }

__global__ void level_by_threads(const int* columns, const unsigned* matrix, unsigned* x, int width, int level) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= width) return;
    unsigned sum = x[level * width + row];
    for (int k = 0; k < ENTRIES; k++) sum -= matrix[row * ENTRIES + k] * x[(level - 1) * width + columns[row * ENTRIES + k]];
    x[level * width + row] = sum;
}
__global__ void level_by_warps(const int* columns, const unsigned* matrix, unsigned* x, int width, int level) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (row >= width) return;
    unsigned sum = lane < ENTRIES ? matrix[row * ENTRIES + lane] * x[(level - 1) * width + columns[row * ENTRIES + lane]] : 0;
    sum = __reduce_add_sync(0xffffffffu, sum);
    if (lane == 0) x[level * width + row] -= sum;
}
__global__ void levels_in_a_block(const int* columns, const unsigned* matrix, unsigned* x, int width, int levels) {
    for (int level = 1; level < levels; level++) {
        for (int row = threadIdx.x; row < width; row += blockDim.x) {
            unsigned sum = x[level * width + row];
            for (int k = 0; k < ENTRIES; k++) sum -= matrix[row * ENTRIES + k] * x[(level - 1) * width + columns[row * ENTRIES + k]];
            x[level * width + row] = sum;
        }
        __syncthreads();
    }
}
__global__ void push_level(const int* columns, const unsigned* matrix, unsigned* x, int width, int level) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= width * ENTRIES) return;
    int row = i / ENTRIES;
    atomicAdd(&x[level * width + row], 0u - matrix[i] * x[(level - 1) * width + columns[i]]);
}

int main(int argc, char** argv) {
    int width = argument(argc, argv, 1, 256, 1 << 18), levels = argument(argc, argv, 2, 7, 256);
    std::vector<int> columns(size_t(width) * ENTRIES);
    std::vector<unsigned> matrix(columns.size()), start(size_t(width) * levels);
    for (int row = 0; row < width; row++)
        for (int k = 0; k < ENTRIES; k++)
            columns[row * ENTRIES + k] = column(row, k, width), matrix[row * ENTRIES + k] = coefficient(row, k);
    for (size_t i = 0; i < start.size(); i++) start[i] = unsigned(i * 2246822519u);
    Buffer<int> device_columns(columns);
    Buffer<unsigned> device_matrix(matrix), threads(start), warps(start), block(start), pushed(start);
    for (int level = 1; level < levels; level++) {
        level_by_threads<<<blocks_for(width, THREADS), THREADS>>>(device_columns, device_matrix, threads, width, level);
        level_by_warps<<<blocks_for(size_t(width) * 32, THREADS), THREADS>>>(device_columns, device_matrix, warps, width, level);
        push_level<<<blocks_for(size_t(width) * ENTRIES, THREADS), THREADS>>>(device_columns, device_matrix, pushed, width, level);
    }
    levels_in_a_block<<<1, 512>>>(device_columns, device_matrix, block, width, levels);
    CHECK_LAUNCH();
    std::vector<unsigned> wanted = start;
    for (int level = 1; level < levels; level++)
        for (int row = 0; row < width; row++)
            for (int k = 0; k < ENTRIES; k++)
                wanted[level * width + row] -= matrix[row * ENTRIES + k] * wanted[(level - 1) * width + columns[row * ENTRIES + k]];
    size_t wrong = mismatches(threads.read(), wanted) + mismatches(warps.read(), wanted) + mismatches(block.read(), wanted) +
                   mismatches(pushed.read(), wanted);
    return verdict("level_solves", wrong == 0, "%d levels of %d rows, %zu wrong", levels, width, wrong);
}
