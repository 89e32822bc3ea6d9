// The elementwise kernels between the matrix multiplies of a language model: token embeddings gathered from a table,
// GELU, a gated SiLU in half precision, and the token with the largest logit.
//
// Usage: activations [tokens] [width, a multiple of 2]
#include <cuda_fp16.h>

#include "../common/workload.cuh"

using namespace workload;

constexpr int VOCABULARY = 512;

__global__ void gather_embeddings(const int* tokens, const float* table, float* out, int width) {
    const float* row = table + size_t(tokens[blockIdx.x]) * width;
    for (int i = threadIdx.x; i < width; i += blockDim.x) out[size_t(blockIdx.x) * width + i] = row[i];
}

__global__ void gelu(float* values, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float x = values[i];
    values[i] = 0.5f * x * (1.0f + tanhf(0.7978845608f * (x + 0.044715f * x * x * x)));
}

__global__ void gated_silu(const __half2* gate, const __half2* up, __half2* out, int pairs) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= pairs) return;
    float2 g = __half22float2(gate[i]);
    float2 u = __half22float2(up[i]);
    out[i] = __floats2half2_rn(g.x / (1.0f + __expf(-g.x)) * u.x, g.y / (1.0f + __expf(-g.y)) * u.y);
}

// A block a row; ties go to the lower index. Key and index travel as one 64-bit word.
__global__ void largest_logit(const float* logits, int* tokens, int width) {
    __shared__ unsigned long long best;
    if (threadIdx.x == 0) best = 0;
    __syncthreads();
    unsigned long long mine = 0;
    for (int i = threadIdx.x; i < width; i += blockDim.x) {
        unsigned bits = __float_as_uint(logits[size_t(blockIdx.x) * width + i]);
        // Larger floats become larger unsigned numbers.
        unsigned key = bits & 0x80000000u ? ~bits : bits | 0x80000000u;
        unsigned long long candidate = (unsigned long long)key << 32 | (0xffffffffu - unsigned(i));
        mine = candidate > mine ? candidate : mine;
    }
    atomicMax(&best, mine);
    __syncthreads();
    if (threadIdx.x == 0) tokens[blockIdx.x] = int(0xffffffffu - unsigned(best));
}

int main(int argc, char** argv) {
    int tokens = argument(argc, argv, 1, 64, 1 << 16);
    int width = argument(argc, argv, 2, 512, 1 << 16) / 2 * 2;
    if (width == 0) width = 2;
    size_t count = size_t(tokens) * width;
    std::vector<float> table = uniform_values(size_t(VOCABULARY) * width, -3.0f, 3.0f, 1);
    std::vector<int> token(tokens);
    std::vector<__half> gate(count), up(count);
    Random random(2);
    for (int& t : token) t = random.below(VOCABULARY);
    for (size_t i = 0; i < count; i++) {
        gate[i] = __float2half(random.uniform(-4.0f, 4.0f));
        up[i] = __float2half(random.uniform(-2.0f, 2.0f));
    }
    Buffer<int> device_tokens(token), largest(tokens);
    Buffer<float> device_table(table), values(count);
    Buffer<__half> device_gate(gate), device_up(up), gated(count);
    gather_embeddings<<<tokens, 128>>>(device_tokens, device_table, values, width);
    largest_logit<<<tokens, 128>>>(values, largest, width);
    gelu<<<blocks_for(count, 256), 256>>>(values, int(count));
    gated_silu<<<blocks_for(count / 2, 256), 256>>>(reinterpret_cast<__half2*>(device_gate.get()),
                                                    reinterpret_cast<__half2*>(device_up.get()),
                                                    reinterpret_cast<__half2*>(gated.get()), int(count / 2));
    CHECK_LAUNCH();

    std::vector<double> wanted(count), wanted_gated(count);
    std::vector<int> wanted_largest(tokens, 0);
    for (int row = 0; row < tokens; row++)
        for (int i = 0; i < width; i++) {
            const float* source = &table[size_t(token[row]) * width];
            double x = source[i];
            if (source[i] > source[wanted_largest[row]]) wanted_largest[row] = i;
            wanted[size_t(row) * width + i] = 0.5 * x * (1.0 + std::tanh(0.7978845608 * (x + 0.044715 * x * x * x)));
            double g = __half2float(gate[size_t(row) * width + i]);
            wanted_gated[size_t(row) * width + i] = g / (1.0 + std::exp(-g)) * __half2float(up[size_t(row) * width + i]);
        }
    std::vector<float> got_gated;
    for (__half value : gated.read()) got_gated.push_back(__half2float(value));
    double gelu_error = worst_error(values.read(), wanted);
    double gated_error = worst_error(got_gated, wanted_gated);
    size_t wrong = mismatches(largest.read(), wanted_largest);
    return verdict("activations", gelu_error < 1e-5 && gated_error < 1e-3 && wrong == 0,
                   "%d x %d, worst error %.2e GELU, %.2e gated, %zu tokens wrong", tokens, width, gelu_error, gated_error, wrong);
}
