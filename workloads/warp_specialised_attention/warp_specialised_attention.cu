// Causal attention as FlashAttention-3 does it: a producer warp brings queries, keys and values through the TMA, two
// consumer warp groups take turns, one multiplying (wgmma) while the other computes its softmax, and within a group
// the scores of the next keys are multiplied while the weights of the last ones are applied to their values.
//
// Needs sm_90a. Usage: warp_specialised_attention [sequence length, a multiple of 128] [heads]
#include "../common/hopper.cuh"

using namespace workload;
using namespace hopper;

constexpr int HEAD = 64;                  // dimension of a head: rows of 128 bytes
constexpr int QUERIES = 128, KEYS = 128;  // of a block, and of a tile
constexpr int GROUPS = 2, STAGES = 2;
constexpr uint32_t QUERY_BYTES = 64 * 128, KEY_BYTES = KEYS * 128;
// exp(s / sqrt(HEAD)) is 2 to the power of s times this.
constexpr float SCALE = 0.125f * 1.44269504f;

struct Shared {
    unsigned char queries[GROUPS][QUERY_BYTES];  // results too, at the end
    unsigned char keys[STAGES][KEY_BYTES], values[STAGES][KEY_BYTES];
    uint64_t queries_full, keys_full[STAGES], keys_empty[STAGES], values_full[STAGES], values_empty[STAGES];
};

__device__ inline float power_of_two(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ void produce(Shared& shared, const CUtensorMap& q, const CUtensorMap& k, const CUtensorMap& v, int row,
                        int tiles, int base) {
    uint32_t full = shared_address(&shared.queries_full);
    expect(full, GROUPS * QUERY_BYTES);
    for (int group = 0; group < GROUPS; group++)
        load_tile(shared_address(shared.queries[group]), q, 0, row + group * 64, full);
    Turn<STAGES> turn;
    // From the diagonal back to the first keys: only the first tile is masked.
    for (int tile = tiles - 1; tile >= 0; tile--, turn.advance()) {
        full = shared_address(&shared.keys_full[turn.stage]);
        wait(shared_address(&shared.keys_empty[turn.stage]), turn.parity ^ 1);
        expect(full, KEY_BYTES);
        load_tile(shared_address(shared.keys[turn.stage]), k, 0, base + tile * KEYS, full);
        full = shared_address(&shared.values_full[turn.stage]);
        wait(shared_address(&shared.values_empty[turn.stage]), turn.parity ^ 1);
        expect(full, KEY_BYTES);
        load_tile(shared_address(shared.values[turn.stage]), v, 0, base + tile * KEYS, full);
    }
}

// A lane holds two rows, l / 4 and l / 4 + 8 of its warp's 16, and of every 8 columns 2 (l % 4) and the next.
struct Rows {
    float maximum[2] = {-INFINITY, -INFINITY}, total[2] = {0.0f, 0.0f}, shrink[2];

    // Scores become weights; `shrink` says by how much what was summed before counts less.
    __device__ void soften(float (&scores)[64]) {
        for (int r = 0; r < 2; r++) {
            float larger = maximum[r];
#pragma unroll
            for (int i = 0; i < 64; i += 4) larger = fmaxf(larger, fmaxf(scores[i + r * 2], scores[i + r * 2 + 1]));
            larger = fmaxf(larger, __shfl_xor_sync(0xffffffffu, larger, 1));
            larger = fmaxf(larger, __shfl_xor_sync(0xffffffffu, larger, 2));
            shrink[r] = power_of_two((maximum[r] - larger) * SCALE);
            maximum[r] = larger;
            float sum = 0.0f, offset = larger * SCALE;
#pragma unroll
            for (int i = 0; i < 64; i += 4)
                for (int j = 0; j < 2; j++) {
                    float& score = scores[i + r * 2 + j];
                    score = power_of_two(fmaf(score, SCALE, -offset));
                    sum += score;
                }
            total[r] = fmaf(total[r], shrink[r], sum);
        }
    }
};

__device__ inline void score_keys(float (&scores)[64], uint32_t queries, uint32_t keys) {
    uint64_t a = operand(queries), b = operand(keys);
    begin_products();
#pragma unroll
    for (int d = 0; d < HEAD / 16; d++) multiply_halves(scores, a + d * 2, b + d * 2, d > 0);
    commit_products();
}

// Values lie by rows of the head: 16 keys are two groups of eight rows.
__device__ inline void apply_weights(float (&sums)[32], const uint32_t (&weights)[32], uint32_t values, bool add) {
    uint64_t b = operand(values);
    begin_products();
#pragma unroll
    for (int key = 0; key < KEYS / 16; key++) multiply_registers(sums, weights + key * 4, b + key * 128, add || key > 0);
    commit_products();
}

__device__ inline void pack_weights(uint32_t (&weights)[32], const float (&scores)[64]) {
#pragma unroll
    for (int i = 0; i < 32; i++) weights[i] = pack(scores[i * 2], scores[i * 2 + 1]);
}

__device__ void consume(Shared& shared, const CUtensorMap& out, int row, int tiles) {
    int group = threadIdx.x / 128 - 1, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    bool leader = threadIdx.x % 128 == 0;
    uint32_t queries = shared_address(shared.queries[group]);
    float scores[64], sums[32];
    uint32_t weights[32];
    Rows rows;
    Turn<STAGES> keys, values;
    // Group 0 multiplies first.
    if (group == 1) signal(1, 256);
    wait(shared_address(&shared.queries_full), 0);

    wait(shared_address(&shared.keys_full[keys.stage]), keys.parity);
    meet(1 + group, 256);
    score_keys(scores, queries, shared_address(shared.keys[keys.stage]));
    signal(2 - group, 256);
    wait_products<0>(scores);
    if (leader) arrive(shared_address(&shared.keys_empty[keys.stage]));
    keys.advance();
    int first = group * 64 + warp * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < 64; i++)
        if (i / 4 * 8 + lane % 4 * 2 + i % 2 > first + i / 2 % 2 * 8) scores[i] = -INFINITY;
    rows.soften(scores);
    pack_weights(weights, scores);

    for (int tile = 1; tile < tiles; tile++) {
        wait(shared_address(&shared.keys_full[keys.stage]), keys.parity);
        meet(1 + group, 256);
        score_keys(scores, queries, shared_address(shared.keys[keys.stage]));
        wait(shared_address(&shared.values_full[values.stage]), values.parity);
        apply_weights(sums, weights, shared_address(shared.values[values.stage]), tile > 1);
        signal(2 - group, 256);
        wait_products<1>(scores);
        if (leader) arrive(shared_address(&shared.keys_empty[keys.stage]));
        keys.advance();
        rows.soften(scores);
        wait_products<0>(sums);
        if (leader) arrive(shared_address(&shared.values_empty[values.stage]));
        values.advance();
#pragma unroll
        for (int i = 0; i < 32; i++) sums[i] *= rows.shrink[i / 2 % 2];
        pack_weights(weights, scores);
    }
    // The last turn is given away so that every signal is met.
    if (group == 0) meet(1, 256);
    wait(shared_address(&shared.values_full[values.stage]), values.parity);
    apply_weights(sums, weights, shared_address(shared.values[values.stage]), tiles > 1);
    wait_products<0>(sums);

    float factor[2];
    for (int r = 0; r < 2; r++) {
        float total = rows.total[r];
        total += __shfl_xor_sync(0xffffffffu, total, 1);
        total += __shfl_xor_sync(0xffffffffu, total, 2);
        factor[r] = 1.0f / total;
    }
    // All warps of the group have read the queries, whose place the results take.
    meet(3 + group, 128);
    store_swizzled(queries, warp * 16, sums, factor[0], factor[1]);
    stores_before_copies();
    meet(3 + group, 128);
    if (leader) {
        store_tile(out, 0, row + group * 64, queries);
        commit_stores();
        wait_until_stored();
    }
}

__global__ void __launch_bounds__(384, 1)
    attention(const __grid_constant__ CUtensorMap q, const __grid_constant__ CUtensorMap k,
              const __grid_constant__ CUtensorMap v, const __grid_constant__ CUtensorMap out, int length) {
    extern __shared__ __align__(1024) unsigned char memory[];
    Shared& shared = *reinterpret_cast<Shared*>(memory);
    if (threadIdx.x == 0) {
        initialise(shared_address(&shared.queries_full), 1);
        for (int stage = 0; stage < STAGES; stage++) {
            initialise(shared_address(&shared.keys_full[stage]), 1);
            initialise(shared_address(&shared.keys_empty[stage]), GROUPS);
            initialise(shared_address(&shared.values_full[stage]), 1);
            initialise(shared_address(&shared.values_empty[stage]), GROUPS);
        }
        publish_barriers();
    }
    __syncthreads();
    int base = blockIdx.y * length, row = base + blockIdx.x * QUERIES, tiles = blockIdx.x + 1;
    if (threadIdx.x < 128) {
        fewer_registers<24>();
        if (threadIdx.x == 0) produce(shared, q, k, v, row, tiles, base);
    } else {
        more_registers<240>();
        consume(shared, out, row, tiles);
    }
}

// The worst error against attention in double precision, over all rows of a small input and some of a large one.
static double compare(const std::vector<__half>& q, const std::vector<__half>& k, const std::vector<__half>& v,
                      const std::vector<__half>& got, int length, int heads) {
    double worst = 0.0;
    std::vector<double> weights(length);
    int stride = length > 512 ? 61 : 1;
    for (int head = 0; head < heads; head++)
        for (int query = head % stride; query < length; query += stride) {
            size_t base = size_t(head) * length * HEAD, mine = base + size_t(query) * HEAD;
            double largest = -INFINITY, total = 0.0;
            for (int key = 0; key <= query; key++) {
                double score = 0.0;
                for (int d = 0; d < HEAD; d++) score += double(float(q[mine + d])) * float(k[base + size_t(key) * HEAD + d]);
                weights[key] = score * 0.125;
                largest = std::fmax(largest, weights[key]);
            }
            for (int key = 0; key <= query; key++) total += weights[key] = std::exp(weights[key] - largest);
            for (int d = 0; d < HEAD; d++) {
                double sum = 0.0;
                for (int key = 0; key <= query; key++) sum += weights[key] * float(v[base + size_t(key) * HEAD + d]);
                double error = std::fabs(float(got[mine + d]) - sum / total);
                if (!(error <= worst)) worst = error;
            }
        }
    return worst;
}

int main(int argc, char** argv) {
    int length = argument(argc, argv, 1, 256, 16384);
    int heads = argument(argc, argv, 2, 2, 256);
    if (length % QUERIES != 0) {
        std::fprintf(stderr, "warp_specialised_attention: length is %d; expected a multiple of %d\n", length, QUERIES);
        return 2;
    }
    size_t count = size_t(heads) * length * HEAD;
    Random random(11);
    std::vector<__half> q(count), k(count), v(count);
    for (auto* values : {&q, &k, &v})
        for (__half& value : *values) value = __half(random.uniform(-2.0f, 2.0f));
    Buffer<__half> queries(q), keys(k), values(v), out(count);
    out.clear();
    auto map = [&](__half* matrix, int box) {
        return describe(matrix, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, HEAD, heads * length, HEAD, box);
    };
    CHECK(cudaFuncSetAttribute(attention, cudaFuncAttributeMaxDynamicSharedMemorySize, sizeof(Shared)));
    attention<<<dim3(length / QUERIES, heads), 384, sizeof(Shared)>>>(map(queries, 64), map(keys, KEYS), map(values, KEYS),
                                                                     map(out, 64), length);
    CHECK_LAUNCH();
    CHECK(cudaDeviceSynchronize());
    std::vector<__half> got = out.read();
    double worst = compare(q, k, v, got, length, heads);
    return verdict("warp_specialised_attention", worst < 4e-3, "%d queries, %d heads, error %.1e, digest %016llx", length,
                   heads, worst, (unsigned long long)digest(got));
}
