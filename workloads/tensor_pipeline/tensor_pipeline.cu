// A matrix scaled and reversed row by row, tile by tile through TMA: a producer warp keeps four tiles of a ring in
// flight, consumers wait for them at mbarriers, read them swizzled, and send their own tile back by TMA. Column
// sums of what was read are added to a vector by reducing bulk copies.
#include <cuda.h>

#include "../common/workload.cuh"

using namespace workload;

constexpr int tile_columns = 32, tile_rows = 32;  // 128 bytes a row: as wide as the swizzle
constexpr int stages = 4, consumers = 4;
constexpr uint32_t tile_bytes = tile_columns * tile_rows * sizeof(int);

__device__ inline uint32_t shared_address(const void* pointer) { return uint32_t(__cvta_generic_to_shared(pointer)); }

__device__ inline void initialise(uint32_t barrier, int count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

__device__ inline void arrive(uint32_t barrier) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(barrier) : "memory");
}

__device__ inline void expect(uint32_t barrier, uint32_t bytes) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

__device__ inline void wait(uint32_t barrier, uint32_t parity) {
    uint32_t done = 0;
    while (!done)
        asm volatile(
            "{ .reg .pred ready; mbarrier.try_wait.parity.shared.b64 ready, [%1], %2; selp.u32 %0, 1, 0, ready; }"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
}

// Where an element of a tile lies: pieces of 16 bytes change places within the 128 bytes of a row.
__device__ inline int swizzled(int row, int column) {
    return row * tile_columns + ((column / 4) ^ (row % 8)) * 4 + column % 4;
}

struct Shared {
    int in[stages][tile_rows * tile_columns];
    int out[tile_rows * tile_columns];
    int sums[tile_columns];
    uint64_t full[stages], empty[stages];
};

__global__ void __launch_bounds__((consumers + 1) * 32)
    reverse_rows(const __grid_constant__ CUtensorMap from, const __grid_constant__ CUtensorMap to, int* sums,
                 int tiles_across, int tiles) {
    extern __shared__ __align__(1024) unsigned char memory[];
    Shared& shared = *reinterpret_cast<Shared*>(memory);
    int warp = threadIdx.x / 32;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < stages; stage++) {
            initialise(shared_address(&shared.full[stage]), 1);
            initialise(shared_address(&shared.empty[stage]), consumers);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    if (warp == consumers) {
        if (threadIdx.x % 32 != 0) return;
        int turn = 0;
        for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, turn++) {
            int stage = turn % stages;
            uint32_t full = shared_address(&shared.full[stage]);
            if (turn >= stages) wait(shared_address(&shared.empty[stage]), (turn / stages - 1) % 2);
            expect(full, tile_bytes);
            asm volatile(
                "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];"
                ::"r"(shared_address(shared.in[stage])), "l"(&from), "r"(full), "r"(tile % tiles_across * tile_columns),
                "r"(tile / tiles_across * tile_rows)
                : "memory");
        }
        return;
    }
    int turn = 0;
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, turn++) {
        int stage = turn % stages;
        // What was sent from the tile before has been read.
        if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
        if (threadIdx.x < tile_columns) shared.sums[threadIdx.x] = 0;
        asm volatile("bar.sync 1, %0;" ::"n"(consumers * 32) : "memory");
        wait(shared_address(&shared.full[stage]), turn / stages % 2);
        int column = threadIdx.x % 32, sum = 0;
        for (int row = warp; row < tile_rows; row += consumers) {
            int value = shared.in[stage][swizzled(row, column)];
            shared.out[swizzled(row, tile_columns - 1 - column)] = 3 * value + row;
            sum += value;
        }
        atomicAdd(&shared.sums[column], sum);
        __syncwarp();
        if (column == 0) arrive(shared_address(&shared.empty[stage]));
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        asm volatile("bar.sync 1, %0;" ::"n"(consumers * 32) : "memory");
        if (threadIdx.x == 0) {
            // Tiles of a row change places too.
            int x = tiles_across - 1 - tile % tiles_across, y = tile / tiles_across;
            asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&to),
                         "r"(shared_address(shared.out)), "r"(x * tile_columns), "r"(y * tile_rows)
                         : "memory");
            asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.s32 [%0], [%1], %2;" ::"l"(
                             sums + tile % tiles_across * tile_columns),
                         "r"(shared_address(shared.sums)), "r"(uint32_t(sizeof shared.sums))
                         : "memory");
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        }
    }
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
}

// Rows may end within a tile: what lies outside of the matrix reads as zero and is not written.
static CUtensorMap describe(int* matrix, int columns, int rows) {
    typedef CUresult (*Encode)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                               const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                               CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
    Encode encode = nullptr;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void**)&encode, 12000, cudaEnableDefault, &found));
    CUtensorMap map;
    cuuint64_t size[] = {cuuint64_t(columns), cuuint64_t(rows)}, stride[] = {columns * sizeof(int)};
    cuuint32_t box[] = {tile_columns, tile_rows}, step[] = {1, 1};
    CUresult made = encode(&map, CU_TENSOR_MAP_DATA_TYPE_INT32, 2, matrix, size, stride, box, step,
                           CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                           CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (made != CUDA_SUCCESS) {
        std::fprintf(stderr, "cuTensorMapEncodeTiled: %d\n", int(made));
        std::exit(2);
    }
    return map;
}

int main(int argc, char** argv) {
    int tiles_across = argument(argc, argv, 1, 8, 1 << 12);
    int rows = argument(argc, argv, 2, 200, 1 << 20);
    int columns = tiles_across * tile_columns, tiles_down = blocks_for(rows, tile_rows);
    Random random(5);
    std::vector<int> matrix(size_t(columns) * rows);
    for (int& value : matrix) value = random.below(1 << 20);
    Buffer<int> from(matrix), to(matrix.size()), sums(columns);
    to.clear();
    sums.clear();
    int tiles = tiles_across * tiles_down, blocks = tiles < 48 ? (tiles + 2) / 3 : 48;
    CHECK(cudaFuncSetAttribute(reverse_rows, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared)));
    reverse_rows<<<blocks, (consumers + 1) * 32, sizeof(Shared)>>>(describe(from, columns, rows), describe(to, columns, rows),
                                                                  sums, tiles_across, tiles);
    CHECK_LAUNCH();
    CHECK(cudaDeviceSynchronize());
    std::vector<int> got = to.read(), totals = sums.read(), expected(columns);
    size_t wrong = 0;
    for (int row = 0; row < rows; row++)
        for (int column = 0; column < columns; column++) {
            int value = matrix[size_t(row) * columns + column];
            expected[column] += value;
            wrong += got[size_t(row) * columns + columns - 1 - column] != 3 * value + row % tile_rows;
        }
    for (int column = 0; column < columns; column++) wrong += totals[column] != expected[column];
    return verdict("tensor_pipeline", wrong == 0, "%d x %d, %zu values wrong", rows, columns, wrong);
}
