// A matrix product as Hopper's libraries do it: a producer warp keeps a ring of tiles in flight through the TMA, two
// consumer warp groups multiply them (wgmma), pairs of blocks form a cluster and share the tiles of B by multicast,
// registers move from producer to consumers, and blocks stay to take tile after tile. In half precision and in eight
// bits, both with sums in single precision.
//
// Needs sm_90a. Usage: warp_specialised_gemm [m] [n, a multiple of 8] [k, a multiple of 16]
#include <cuda_fp8.h>

#include "../common/hopper.cuh"

using namespace workload;
using namespace hopper;

constexpr int ROWS = 128, COLUMNS = 128;  // of the tile of C that a block computes
constexpr int STAGES = 4, GROUPS = 2;     // GROUPS of consumers, each with 64 rows
constexpr int CLUSTER = 2;                // blocks below each other: the same columns of B
constexpr uint32_t A_BYTES = ROWS * 128, B_BYTES = COLUMNS * 128;  // 128 bytes of K at a time

struct Shared {
    unsigned char a[STAGES][A_BYTES], b[STAGES][B_BYTES];
    unsigned char c[GROUPS][2][64 * 128];  // 64 rows of 64 halves
    uint64_t full[STAGES], empty[STAGES];
};

struct Tiles {
    int down, across, steps;  // pairs of tiles, tiles, and 128-byte pieces of K
};

__device__ void produce(Shared& shared, const CUtensorMap& a, const CUtensorMap& b, Tiles tiles, int piece) {
    uint32_t rank = cluster_rank();
    Turn<STAGES> turn;
    for (int tile = blockIdx.x / CLUSTER; tile < tiles.down * tiles.across; tile += gridDim.x / CLUSTER) {
        int row = (tile / tiles.across * CLUSTER + rank) * ROWS, column = tile % tiles.across * COLUMNS;
        for (int step = 0; step < tiles.steps; step++, turn.advance()) {
            uint32_t full = shared_address(&shared.full[turn.stage]);
            wait_for_cluster(shared_address(&shared.empty[turn.stage]), turn.parity ^ 1);
            expect(full, A_BYTES + B_BYTES);
            load_tile(shared_address(shared.a[turn.stage]), a, step * piece, row, full);
            // Each block brings its part of B's rows to both.
            int part = rank * (COLUMNS / CLUSTER);
            load_tile_to_all(shared_address(shared.b[turn.stage]) + part * 128, b, step * piece, column + part, full, 3);
        }
    }
}

template <bool EIGHT_BITS>
__device__ void consume(Shared& shared, const CUtensorMap& c, Tiles tiles, float scale) {
    uint32_t rank = cluster_rank();
    int group = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 % 4;
    bool leader = threadIdx.x % 128 == 0;
    Turn<STAGES> turn;
    for (int tile = blockIdx.x / CLUSTER; tile < tiles.down * tiles.across; tile += gridDim.x / CLUSTER) {
        float sums[64];
        int before = 0;  // the stage whose product may still run
        for (int step = 0; step < tiles.steps; step++) {
            wait(shared_address(&shared.full[turn.stage]), turn.parity);
            uint64_t a = operand(shared_address(shared.a[turn.stage]) + group * 64 * 128);
            uint64_t b = operand(shared_address(shared.b[turn.stage]));
            begin_products();
#pragma unroll
            for (int k = 0; k < 4; k++) {
                if (EIGHT_BITS)
                    multiply_eights(sums, a + k * 2, b + k * 2, step + k > 0);
                else
                    multiply_halves(sums, a + k * 2, b + k * 2, step + k > 0);
            }
            commit_products();
            // The product before this one has ended: both blocks may fill its tiles again.
            wait_products<1>(sums);
            if (step > 0 && threadIdx.x % 128 < CLUSTER)
                arrive_at(shared_address(&shared.empty[before]), threadIdx.x % 128);
            before = turn.stage;
            turn.advance();
        }
        wait_products<0>(sums);
        if (threadIdx.x % 128 < CLUSTER) arrive_at(shared_address(&shared.empty[before]), threadIdx.x % 128);

        if (leader) wait_until_read();
        meet(1 + group, 128);
        for (int half = 0; half < 2; half++)
            store_swizzled(shared_address(shared.c[group][half]), warp * 16, sums + half * 32, scale, scale);
        stores_before_copies();
        meet(1 + group, 128);
        if (leader) {
            int row = (tile / tiles.across * CLUSTER + rank) * ROWS + group * 64, column = tile % tiles.across * COLUMNS;
            for (int half = 0; half < 2; half++)
                store_tile(c, column + half * 64, row, shared_address(shared.c[group][half]));
            commit_stores();
        }
    }
    if (leader) wait_until_stored();
}

template <bool EIGHT_BITS>
__device__ void multiply(const CUtensorMap& a, const CUtensorMap& b, const CUtensorMap& c, Tiles tiles, float scale) {
    extern __shared__ __align__(1024) unsigned char memory[];
    Shared& shared = *reinterpret_cast<Shared*>(memory);
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            initialise(shared_address(&shared.full[stage]), 1);
            initialise(shared_address(&shared.empty[stage]), GROUPS * CLUSTER);
        }
        publish_barriers();
    }
    cluster_meet();
    if (threadIdx.x < 128) {
        fewer_registers<40>();
        if (threadIdx.x == 0) produce(shared, a, b, tiles, EIGHT_BITS ? 128 : 64);
    } else {
        more_registers<232>();
        consume<EIGHT_BITS>(shared, c, tiles, scale);
    }
    // No block ends while the other may still write to its memory or arrive at its barriers.
    __syncwarp();
    cluster_meet();
}

__global__ void __launch_bounds__(384, 1)
    gemm_fp16(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
              const __grid_constant__ CUtensorMap c, Tiles tiles, float scale) {
    multiply<false>(a, b, c, tiles, scale);
}

__global__ void __launch_bounds__(384, 1)
    gemm_fp8(const __grid_constant__ CUtensorMap a, const __grid_constant__ CUtensorMap b,
             const __grid_constant__ CUtensorMap c, Tiles tiles, float scale) {
    multiply<true>(a, b, c, tiles, scale);
}

// Runs one kernel on inputs that `T` holds, and gives the worst error against sums in double precision.
template <typename T, typename Kernel>
double run(Kernel kernel, CUtensorMapDataType type, int m, int n, int k, float scale, uint64_t& seal) {
    Random random(7 + sizeof(T));
    std::vector<T> a(size_t(m) * k), b(size_t(n) * k);
    for (T& value : a) value = T(random.uniform(-1.0f, 1.0f));
    for (T& value : b) value = T(random.uniform(-1.0f, 1.0f));
    Buffer<T> left(a), right(b);
    Buffer<__half> product(size_t(m) * n);
    product.clear();
    int piece = 128 / sizeof(T), processors;
    CHECK(cudaDeviceGetAttribute(&processors, cudaDevAttrMultiProcessorCount, 0));
    Tiles tiles = {blocks_for(m, ROWS * CLUSTER), blocks_for(n, COLUMNS), blocks_for(k, piece)};
    // Two tiles or more for each, so that one is stored while the next is multiplied.
    int clusters = (tiles.down * tiles.across + 1) / 2;
    if (clusters > processors / CLUSTER) clusters = processors / CLUSTER;
    launch_clusters(kernel, dim3(clusters * CLUSTER), 384, sizeof(Shared), CLUSTER,
                    describe(left, type, sizeof(T), k, m, piece, ROWS),
                    describe(right, type, sizeof(T), k, n, piece, COLUMNS / CLUSTER),
                    describe(product, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, n, m, 64, 64), tiles, scale);
    CHECK_LAUNCH();
    CHECK(cudaDeviceSynchronize());
    std::vector<__half> got = product.read();
    seal = digest(got, seal);
    std::vector<float> x(a.size()), y(b.size());
    for (size_t i = 0; i < a.size(); i++) x[i] = float(a[i]);
    for (size_t i = 0; i < b.size(); i++) y[i] = float(b[i]);
    double worst = 0.0;
    // All of a small product, some rows of a large one.
    int stride = m > 512 ? m / 128 : 1;
    for (int row = 0; row < m; row += stride)
        for (int column = 0; column < n; column++) {
            double sum = 0.0;
            for (int i = 0; i < k; i++) sum += double(x[size_t(row) * k + i]) * y[size_t(column) * k + i];
            double error = std::fabs(float(got[size_t(row) * n + column]) - sum * scale);
            if (!(error <= worst)) worst = error;
        }
    return worst;
}

int main(int argc, char** argv) {
    int m = argument(argc, argv, 1, 256, 1 << 15);
    int n = argument(argc, argv, 2, 256, 1 << 15);
    int k = argument(argc, argv, 3, 256, 1 << 15);
    if (n % 8 != 0 || k % 16 != 0) {
        std::fprintf(stderr, "warp_specialised_gemm: n is %d and k is %d; expected multiples of 8 and of 16\n", n, k);
        return 2;
    }
    uint64_t seal = 14695981039346656037ull;
    float scale = 1.0f / std::sqrt(float(k));
    double halves = run<__half>(gemm_fp16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, m, n, k, scale, seal);
    double eights = run<__nv_fp8_e4m3>(gemm_fp8, CU_TENSOR_MAP_DATA_TYPE_UINT8, m, n, k, scale, seal);
    return verdict("warp_specialised_gemm", halves < 2e-3 && eights < 5e-3,
                   "%d x %d x %d, errors %.1e and %.1e, digest %016llx", m, n, k, halves, eights,
                   (unsigned long long)seal);
}
