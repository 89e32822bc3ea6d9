// Rotary position embedding of queries and keys: pairs of dimensions are turned by an angle that grows with the
// position, once with angles computed in place and once from a table.
//
// Usage: rotary_embedding [positions] [heads]
#include "../common/workload.cuh"

using namespace workload;

constexpr int HEAD = 64;
constexpr int PAIRS = HEAD / 2;
constexpr double BASE = 10000.0;

// Thread x is a pair of dimensions d and d + 32; block (position, head).
__global__ void rotate_computed(const float* in, float* out, int heads) {
    int pair = threadIdx.x;
    size_t row = (size_t(blockIdx.x) * heads + blockIdx.y) * HEAD;
    float frequency = exp2f(pair * float(-13.287712379549449 / PAIRS));
    float sine, cosine;
    sincosf(blockIdx.x * frequency, &sine, &cosine);
    float first = in[row + pair];
    float second = in[row + pair + PAIRS];
    out[row + pair] = first * cosine - second * sine;
    out[row + pair + PAIRS] = second * cosine + first * sine;
}

__global__ void make_table(float2* table, int positions) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= positions * PAIRS) return;
    float frequency = exp2f(i % PAIRS * float(-13.287712379549449 / PAIRS));
    float sine, cosine;
    sincosf(i / PAIRS * frequency, &sine, &cosine);
    table[i] = make_float2(cosine, sine);
}

__global__ void rotate_from_table(const float* in, const float2* table, float* out, int heads, int elements) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= elements / 2) return;
    int pair = i % PAIRS;
    int position = i / (PAIRS * heads);
    size_t row = size_t(i / PAIRS) * HEAD;
    float2 turn = table[position * PAIRS + pair];
    float first = in[row + pair];
    float second = in[row + pair + PAIRS];
    out[row + pair] = first * turn.x - second * turn.y;
    out[row + pair + PAIRS] = second * turn.x + first * turn.y;
}

int main(int argc, char** argv) {
    int positions = argument(argc, argv, 1, 128, 1 << 16);
    int heads = argument(argc, argv, 2, 4, 256);
    int count = positions * heads * HEAD;
    std::vector<float> in = uniform_values(count, -1.0f, 1.0f, 1);
    Buffer<float> device_in(in), computed(count), looked_up(count);
    Buffer<float2> table(size_t(positions) * PAIRS);
    rotate_computed<<<dim3(positions, heads), PAIRS>>>(device_in, computed, heads);
    make_table<<<blocks_for(positions * PAIRS, 256), 256>>>(table, positions);
    rotate_from_table<<<blocks_for(count / 2, 256), 256>>>(device_in, table, looked_up, heads, count);
    CHECK_LAUNCH();
    std::vector<double> wanted(count);
    for (int row = 0; row < positions * heads; row++)
        for (int pair = 0; pair < PAIRS; pair++) {
            double angle = row / heads * std::pow(BASE, -double(pair) / PAIRS);
            double first = in[row * HEAD + pair], second = in[row * HEAD + pair + PAIRS];
            wanted[row * HEAD + pair] = first * std::cos(angle) - second * std::sin(angle);
            wanted[row * HEAD + pair + PAIRS] = second * std::cos(angle) + first * std::sin(angle);
        }
    // Angles are single precision: their error grows with the position.
    double limit = 1e-6 * std::max(10, positions);
    double computed_error = worst_error(computed.read(), wanted);
    double table_error = worst_error(looked_up.read(), wanted);
    return verdict("rotary_embedding", computed_error < limit && table_error < limit,
                   "%d positions, %d heads, worst error %.2e computed, %.2e from table", positions, heads, computed_error,
                   table_error);
}
