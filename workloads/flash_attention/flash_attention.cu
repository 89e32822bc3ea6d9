// Causal attention in one pass over keys and values, with the running maximum and sum of an online softmax: in single
// precision with a thread a query, and in half precision with tensor cores and 16 queries a warp.
//
// Needs sm_80. Usage: flash_attention [sequence length, a multiple of 64] [heads]
#include "../common/tensor.cuh"

using namespace workload;
using namespace tensor;

constexpr int HEAD = 64;     // dimension of a head
constexpr int QUERIES = 64;  // a block
constexpr int KEYS = 32;     // a tile
constexpr float SCALE = 0.125f;  // 1 / sqrt(HEAD)

// Two threads share a query and halve its dimensions.
__global__ void attention_fp32(const float* q, const float* k, const float* v, float* out, int length) {
    constexpr int HALF = HEAD / 2;
    __shared__ float keys[KEYS][HEAD];
    __shared__ float values[KEYS][HEAD];
    size_t base = size_t(blockIdx.y) * length * HEAD;
    int query = blockIdx.x * QUERIES + threadIdx.x / 2;
    int side = threadIdx.x % 2 * HALF;
    float mine[HALF], sums[HALF];
    for (int d = 0; d < HALF; d++) {
        mine[d] = q[base + size_t(query) * HEAD + side + d] * SCALE;
        sums[d] = 0.0f;
    }
    float maximum = -INFINITY, total = 0.0f;
    int last = blockIdx.x * QUERIES + QUERIES;
    for (int start = 0; start < last; start += KEYS) {
        for (int i = threadIdx.x; i < KEYS * HEAD; i += 2 * QUERIES) {
            keys[i / HEAD][i % HEAD] = k[base + size_t(start) * HEAD + i];
            values[i / HEAD][i % HEAD] = v[base + size_t(start) * HEAD + i];
        }
        __syncthreads();
        for (int key = 0; key < KEYS; key++) {
            float score = 0.0f;
            for (int d = 0; d < HALF; d++) score += mine[d] * keys[key][side + d];
            score += __shfl_xor_sync(0xffffffffu, score, 1);
            if (start + key > query) continue;
            float larger = fmaxf(maximum, score);
            float shrink = __expf(maximum - larger);
            float weight = __expf(score - larger);
            total = total * shrink + weight;
            for (int d = 0; d < HALF; d++) sums[d] = sums[d] * shrink + weight * values[key][side + d];
            maximum = larger;
        }
        __syncthreads();
    }
    for (int d = 0; d < HALF; d++) out[base + size_t(query) * HEAD + side + d] = sums[d] / total;
}

constexpr int PITCH = HEAD + 8;

// Lane l holds, of a 16 x 8 tile of scores, columns 2 (l % 4) and the next in rows l / 4 and l / 4 + 8.
__global__ void attention_fp16(const __half* q, const __half* k, const __half* v, __half* out, int length) {
    __shared__ __align__(16) __half queries[QUERIES][PITCH];
    __shared__ __align__(16) __half keys[KEYS][PITCH];
    __shared__ __align__(16) __half values[KEYS][PITCH];
    size_t base = size_t(blockIdx.y) * length * HEAD;
    int lane = threadIdx.x % 32;
    int warp_row = threadIdx.x / 32 * 16;
    int block_row = blockIdx.x * QUERIES;
    for (int i = threadIdx.x; i < QUERIES * HEAD / 8; i += blockDim.x)
        copy_async(&queries[i / (HEAD / 8)][i % (HEAD / 8) * 8], &q[base + size_t(block_row) * HEAD + i * 8]);
    commit_copies();
    wait_copies<0>();
    __syncthreads();
    unsigned left[HEAD / 16][4];
    for (int d = 0; d < HEAD / 16; d++) load_matrices(left[d], &queries[warp_row + lane % 16][d * 16 + lane / 16 * 8]);

    float sums[HEAD / 8][4] = {};
    float maximum[2] = {-INFINITY, -INFINITY};
    float total[2] = {0.0f, 0.0f};
    for (int start = 0; start < block_row + QUERIES; start += KEYS) {
        for (int i = threadIdx.x; i < KEYS * HEAD / 8; i += blockDim.x) {
            int y = i / (HEAD / 8), x = i % (HEAD / 8) * 8;
            copy_async(&keys[y][x], &k[base + size_t(start) * HEAD + i * 8]);
            copy_async(&values[y][x], &v[base + size_t(start) * HEAD + i * 8]);
        }
        commit_copies();
        wait_copies<0>();
        __syncthreads();

        // Scores: queries times keys transposed. Keys lie by rows, which is the order that B wants by columns.
        float scores[KEYS / 8][4] = {};
        for (int d = 0; d < HEAD / 16; d++)
            for (int n = 0; n < KEYS / 16; n++) {
                unsigned right[4];
                load_matrices(right, &keys[n * 16 + lane / 16 * 8 + lane % 8][d * 16 + lane / 8 % 2 * 8]);
                multiply_add(scores[n * 2], left[d], right[0], right[1]);
                multiply_add(scores[n * 2 + 1], left[d], right[2], right[3]);
            }

        // Mask, then the softmax of two rows a lane; the four lanes of a group share them.
        float larger[2] = {maximum[0], maximum[1]};
        for (int n = 0; n < KEYS / 8; n++)
            for (int i = 0; i < 4; i++) {
                int row = block_row + warp_row + lane / 4 + i / 2 * 8;
                int column = start + n * 8 + lane % 4 * 2 + i % 2;
                scores[n][i] = column > row ? -INFINITY : scores[n][i] * SCALE;
                larger[i / 2] = fmaxf(larger[i / 2], scores[n][i]);
            }
        for (int r = 0; r < 2; r++) {
            larger[r] = fmaxf(larger[r], __shfl_xor_sync(0xffffffffu, larger[r], 1));
            larger[r] = fmaxf(larger[r], __shfl_xor_sync(0xffffffffu, larger[r], 2));
            float shrink = __expf(maximum[r] - larger[r]);
            total[r] *= shrink;
            for (int n = 0; n < HEAD / 8; n++) {
                sums[n][r * 2] *= shrink;
                sums[n][r * 2 + 1] *= shrink;
            }
            maximum[r] = larger[r];
        }
        for (int n = 0; n < KEYS / 8; n++)
            for (int i = 0; i < 4; i++) {
                scores[n][i] = __expf(scores[n][i] - maximum[i / 2]);
                total[i / 2] += scores[n][i];
            }

        // Weights times values: what was C of one multiply is A of the next.
        for (int step = 0; step < KEYS / 16; step++) {
            const float* first = scores[step * 2];
            const float* second = scores[step * 2 + 1];
            unsigned weights[4] = {pack(first[0], first[1]), pack(first[2], first[3]), pack(second[0], second[1]),
                                   pack(second[2], second[3])};
            for (int n = 0; n < HEAD / 16; n++) {
                unsigned right[4];
                load_matrices_transposed(right, &values[step * 16 + lane % 16][n * 16 + lane / 16 * 8]);
                multiply_add(sums[n * 2], weights, right[0], right[1]);
                multiply_add(sums[n * 2 + 1], weights, right[2], right[3]);
            }
        }
        __syncthreads();
    }
    for (int r = 0; r < 2; r++) {
        total[r] += __shfl_xor_sync(0xffffffffu, total[r], 1);
        total[r] += __shfl_xor_sync(0xffffffffu, total[r], 2);
        int row = block_row + warp_row + lane / 4 + r * 8;
        for (int n = 0; n < HEAD / 8; n++)
            *reinterpret_cast<unsigned*>(&out[base + size_t(row) * HEAD + n * 8 + lane % 4 * 2]) =
                pack(sums[n][r * 2] / total[r], sums[n][r * 2 + 1] / total[r]);
    }
}

int main(int argc, char** argv) {
    int length = argument(argc, argv, 1, 128, 16384);
    int heads = argument(argc, argv, 2, 2, 256);
    if (length % QUERIES != 0) {
        std::fprintf(stderr, "flash_attention: length %d is not a multiple of %d\n", length, QUERIES);
        return 2;
    }
    size_t count = size_t(heads) * length * HEAD;
    // Both kernels get values that half precision holds exactly.
    std::vector<__half> half_q(count), half_k(count), half_v(count);
    std::vector<float> q(count), k(count), v(count);
    Random random(1);
    for (size_t i = 0; i < count; i++) {
        q[i] = __half2float(half_q[i] = __float2half(random.uniform(-2.0f, 2.0f)));
        k[i] = __half2float(half_k[i] = __float2half(random.uniform(-2.0f, 2.0f)));
        v[i] = __half2float(half_v[i] = __float2half(random.uniform(-1.0f, 1.0f)));
    }
    Buffer<float> device_q(q), device_k(k), device_v(v), out(count);
    Buffer<__half> device_half_q(half_q), device_half_k(half_k), device_half_v(half_v), half_out(count);
    dim3 grid(length / QUERIES, heads);
    attention_fp32<<<grid, QUERIES * 2>>>(device_q, device_k, device_v, out, length);
    attention_fp16<<<grid, QUERIES / 16 * 32>>>(device_half_q, device_half_k, device_half_v, half_out, length);
    CHECK_LAUNCH();

    std::vector<double> wanted(count, 0.0), weights(length);
    for (int head = 0; head < heads; head++)
        for (int row = 0; row < length; row++) {
            size_t base = size_t(head) * length * HEAD;
            double largest = -INFINITY, total = 0.0;
            for (int key = 0; key <= row; key++) {
                double score = 0.0;
                for (int d = 0; d < HEAD; d++) score += double(q[base + row * HEAD + d]) * k[base + key * HEAD + d];
                weights[key] = score * SCALE;
                largest = std::fmax(largest, weights[key]);
            }
            for (int key = 0; key <= row; key++) total += weights[key] = std::exp(weights[key] - largest);
            for (int key = 0; key <= row; key++)
                for (int d = 0; d < HEAD; d++)
                    wanted[base + row * HEAD + d] += weights[key] / total * v[base + key * HEAD + d];
        }
    std::vector<float> got_half;
    for (__half value : half_out.read()) got_half.push_back(__half2float(value));
    double fp32 = worst_error(out.read(), wanted);
    double fp16 = worst_error(got_half, wanted);
    return verdict("flash_attention", fp32 < 1e-4 && fp16 < 5e-3, "length %d, %d heads, worst error %.2e fp32, %.2e fp16", length,
                   heads, fp32, fp16);
}
