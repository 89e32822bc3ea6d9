// Reductions that a cluster of four blocks shares. Rows are divided by their root mean square: each block sums a
// quarter of a row and sends its sum to the others' shared memory (st.async), which wait for it at an mbarrier. And a
// matrix times a vector: every block has rows of its own, and pieces of the vector reach all four by multicast. In
// both a producer warp keeps a ring of bulk copies in flight.
//
// Needs sm_90. Usage: cluster_reduction [rows, a multiple of 64] [columns, a multiple of 512]
#include "../common/hopper.cuh"

using namespace workload;
using namespace hopper;

constexpr int CLUSTER = 4, WARPS = 4, STAGES = 3;
constexpr int LONGEST = 16384;  // columns: a quarter of them, three times, and as many results

// --- rows over their root mean square ---

struct Norm {
    float sums[2][CLUSTER], warps[WARPS];
    uint64_t full[STAGES], empty[STAGES], summed[2];
};

// `value` to the same place in another block, which its barrier counts as four bytes.
__device__ inline void send(uint32_t to, float value, uint32_t barrier, uint32_t block) {
    asm volatile(
        "{ .reg .b32 there, bar; mapa.shared::cluster.u32 there, %0, %3; mapa.shared::cluster.u32 bar, %2, %3;\n"
        "  st.async.shared::cluster.mbarrier::complete_tx::bytes.f32 [there], %1, [bar]; }" ::"r"(to),
        "f"(value), "r"(barrier), "r"(block)
        : "memory");
}

__device__ inline float warp_sum(float value) {
    for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(0xffffffffu, value, step);
    return value;
}

__global__ void __launch_bounds__((WARPS + 1) * 32)
    normalise_rows(const float* in, float* out, int rows, int columns) {
    extern __shared__ __align__(128) float parts[];  // STAGES of input and one of results
    __shared__ Norm shared;
    uint32_t rank = cluster_rank();
    int part = columns / CLUSTER, warp = threadIdx.x / 32, first = blockIdx.x / CLUSTER, clusters = gridDim.x / CLUSTER;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            initialise(shared_address(&shared.full[stage]), 1);
            initialise(shared_address(&shared.empty[stage]), WARPS);
        }
        for (int turn = 0; turn < 2; turn++) initialise(shared_address(&shared.summed[turn]), 1);
        publish_barriers();
    }
    cluster_meet();
    if (warp == WARPS) {
        Turn<STAGES> turn;
        for (int row = first; threadIdx.x % 32 == 0 && row < rows; row += clusters, turn.advance()) {
            uint32_t full = shared_address(&shared.full[turn.stage]);
            wait(shared_address(&shared.empty[turn.stage]), turn.parity ^ 1);
            expect(full, part * sizeof(float));
            load_bytes(shared_address(parts + turn.stage * part), in + size_t(row) * columns + rank * part,
                       part * sizeof(float), full);
        }
        __syncwarp();
    } else {
        Turn<STAGES> turn;
        Turn<2> exchange;
        float* results = parts + STAGES * part;
        for (int row = first; row < rows; row += clusters, turn.advance(), exchange.advance()) {
            uint32_t summed = shared_address(&shared.summed[exchange.stage]);
            if (threadIdx.x == 0) expect(summed, CLUSTER * sizeof(float));
            wait(shared_address(&shared.full[turn.stage]), turn.parity);
            const float* mine = parts + turn.stage * part;
            float squares = 0.0f;
            for (int i = threadIdx.x; i < part; i += WARPS * 32) squares = fmaf(mine[i], mine[i], squares);
            squares = warp_sum(squares);
            if (threadIdx.x % 32 == 0) shared.warps[warp] = squares;
            if (threadIdx.x == 0) wait_until_read();
            meet(1, WARPS * 32);
            if (threadIdx.x < CLUSTER) {
                float sum = 0.0f;
                for (int i = 0; i < WARPS; i++) sum += shared.warps[i];
                send(shared_address(&shared.sums[exchange.stage][rank]), sum, summed, threadIdx.x);
            }
            wait_for_cluster(summed, exchange.parity);
            float total = 0.0f;
            for (int i = 0; i < CLUSTER; i++) total += shared.sums[exchange.stage][i];
            float factor = rsqrtf(total / columns + 1e-6f);
            for (int i = threadIdx.x; i < part; i += WARPS * 32) results[i] = mine[i] * factor;
            __syncwarp();
            if (threadIdx.x % 32 == 0) arrive(shared_address(&shared.empty[turn.stage]));
            stores_before_copies();
            meet(1, WARPS * 32);
            if (threadIdx.x == 0) {
                store_bytes(out + size_t(row) * columns + rank * part, shared_address(results), part * sizeof(float));
                commit_stores();
            }
        }
        if (threadIdx.x == 0) wait_until_stored();
    }
    cluster_meet();
}

// --- a matrix times a vector ---

constexpr int ROWS = 16, PIECE = 512;  // rows of a block, and columns at a time

struct Product {
    float matrix[STAGES][ROWS][PIECE], vector[STAGES][PIECE];
    uint64_t full[STAGES], empty[STAGES];
};

__global__ void __launch_bounds__((WARPS + 1) * 32)
    multiply_vector(const float* matrix, const float* vector, float* out, int columns) {
    extern __shared__ __align__(128) unsigned char memory[];
    Product& shared = *reinterpret_cast<Product*>(memory);
    uint32_t rank = cluster_rank();
    int warp = threadIdx.x / 32, lane = threadIdx.x % 32, row = blockIdx.x * ROWS;
    if (threadIdx.x == 0) {
        for (int stage = 0; stage < STAGES; stage++) {
            initialise(shared_address(&shared.full[stage]), 1);
            initialise(shared_address(&shared.empty[stage]), WARPS * CLUSTER);
        }
        publish_barriers();
    }
    cluster_meet();
    Turn<STAGES> turn;
    if (warp == WARPS) {
        for (int column = 0; lane == 0 && column < columns; column += PIECE, turn.advance()) {
            uint32_t full = shared_address(&shared.full[turn.stage]);
            wait_for_cluster(shared_address(&shared.empty[turn.stage]), turn.parity ^ 1);
            expect(full, (ROWS + 1) * PIECE * sizeof(float));
            for (int i = 0; i < ROWS; i++)
                load_bytes(shared_address(shared.matrix[turn.stage][i]), matrix + size_t(row + i) * columns + column,
                           PIECE * sizeof(float), full);
            int part = rank * (PIECE / CLUSTER);
            load_bytes_to_all(shared_address(shared.vector[turn.stage] + part), vector + column + part,
                              PIECE / CLUSTER * sizeof(float), full, (1 << CLUSTER) - 1);
        }
        __syncwarp();
    } else {
        float sums[ROWS / WARPS] = {};
        for (int column = 0; column < columns; column += PIECE, turn.advance()) {
            wait(shared_address(&shared.full[turn.stage]), turn.parity);
            for (int i = lane; i < PIECE; i += 32)
#pragma unroll
                for (int r = 0; r < ROWS / WARPS; r++)
                    sums[r] = fmaf(shared.matrix[turn.stage][warp * (ROWS / WARPS) + r][i], shared.vector[turn.stage][i], sums[r]);
            __syncwarp();
            if (lane < CLUSTER) arrive_at(shared_address(&shared.empty[turn.stage]), lane);
        }
        for (int r = 0; r < ROWS / WARPS; r++) {
            float sum = warp_sum(sums[r]);
            if (lane == r) out[row + warp * (ROWS / WARPS) + r] = sum;
        }
    }
    cluster_meet();
}

int main(int argc, char** argv) {
    int rows = argument(argc, argv, 1, 128, 1 << 16);
    int columns = argument(argc, argv, 2, 2048, LONGEST);
    if (rows % (CLUSTER * ROWS) != 0 || columns % PIECE != 0) {
        std::fprintf(stderr, "cluster_reduction: %d rows and %d columns; expected multiples of %d and of %d\n", rows, columns,
                     CLUSTER * ROWS, PIECE);
        return 2;
    }
    std::vector<float> matrix = uniform_values(size_t(rows) * columns, -1.0f, 1.0f, 3);
    std::vector<float> vector = uniform_values(size_t(columns), -1.0f, 1.0f, 4);
    Buffer<float> in(matrix), out(matrix.size()), x(vector), y(rows);
    out.clear();
    y.clear();
    int clusters = rows < 32 ? rows : 32;
    launch_clusters(normalise_rows, dim3(clusters * CLUSTER), (WARPS + 1) * 32,
                    (STAGES + 1) * (columns / CLUSTER) * sizeof(float), CLUSTER, in.get(), out.get(), rows, columns);
    CHECK_LAUNCH();
    launch_clusters(multiply_vector, dim3(rows / ROWS), (WARPS + 1) * 32, sizeof(Product), CLUSTER, out.get(), x.get(), y.get(),
                    columns);
    CHECK_LAUNCH();
    CHECK(cudaDeviceSynchronize());
    std::vector<float> normal = out.read(), product = y.read();
    double worst = 0.0;
    for (int row = 0; row < rows; row++) {
        const float* values = &matrix[size_t(row) * columns];
        double squares = 0.0, sum = 0.0;
        for (int i = 0; i < columns; i++) squares += double(values[i]) * values[i];
        double factor = 1.0 / std::sqrt(squares / columns + 1e-6);
        for (int i = 0; i < columns; i++) {
            sum += values[i] * factor * vector[i];
            worst = std::fmax(worst, std::fabs(normal[size_t(row) * columns + i] - values[i] * factor));
        }
        worst = std::fmax(worst, std::fabs(product[row] - sum) / std::sqrt(double(columns)));
    }
    return verdict("cluster_reduction", worst < 1e-5, "%d x %d, error %.1e, digest %016llx", rows, columns, worst,
                   (unsigned long long)digest(product, digest(normal)));
}
