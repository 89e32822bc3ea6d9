// One step of training a network with one hidden layer: a forward pass with a tree of partial products in shared
// memory, errors of the layers, and the update of both sets of weights.
//
// Usage: backprop [inputs, a multiple of 16]
#include "../common/workload.cuh"

using namespace workload;

constexpr int HIDDEN = 16;
constexpr float LEARNING = 0.3f;

__device__ __host__ inline float squash(float x) { return 1.0f / (1.0f + expf(-x)); }

// Block b sums inputs 16 b .. 16 b + 15 for every hidden unit: thread (unit, input).
__global__ void forward_partial(const float* inputs, const float* weights, float* partial) {
    __shared__ float products[16][HIDDEN];
    int input = blockIdx.x * 16 + threadIdx.y;
    products[threadIdx.y][threadIdx.x] = inputs[input] * weights[input * HIDDEN + threadIdx.x];
    __syncthreads();
    for (int stride = 8; stride > 0; stride /= 2) {
        if (threadIdx.y < stride) products[threadIdx.y][threadIdx.x] += products[threadIdx.y + stride][threadIdx.x];
        __syncthreads();
    }
    if (threadIdx.y == 0) partial[blockIdx.x * HIDDEN + threadIdx.x] = products[0][threadIdx.x];
}

// One warp: hidden units, the output, and the errors of both.
__global__ void output_and_errors(const float* partial, int blocks, const float* output_weights, float target, float* hidden,
                                  float* hidden_error, float* output_error) {
    int unit = threadIdx.x;
    float sum = 0.0f;
    for (int block = 0; block < blocks; block++) sum += partial[block * HIDDEN + unit];
    float value = squash(sum);
    hidden[unit] = value;
    float weighted = value * output_weights[unit];
    for (int distance = HIDDEN / 2; distance > 0; distance /= 2)
        weighted += __shfl_xor_sync(0xffffu, weighted, distance, HIDDEN);
    float output = squash(weighted);
    float error = output * (1.0f - output) * (target - output);
    hidden_error[unit] = value * (1.0f - value) * error * output_weights[unit];
    if (unit == 0) *output_error = error;
}

__global__ void adjust_weights(const float* inputs, const float* hidden_error, float* weights) {
    int input = blockIdx.x * 16 + threadIdx.y;
    weights[input * HIDDEN + threadIdx.x] += LEARNING * hidden_error[threadIdx.x] * inputs[input];
}

__global__ void adjust_output_weights(const float* hidden, const float* output_error, float* output_weights) {
    output_weights[threadIdx.x] += LEARNING * *output_error * hidden[threadIdx.x];
}

int main(int argc, char** argv) {
    int inputs = argument(argc, argv, 1, 4096, 1 << 22);
    if (inputs % 16 != 0) {
        std::fprintf(stderr, "backprop: %d inputs are not a multiple of 16\n", inputs);
        return 2;
    }
    std::vector<float> input = uniform_values(inputs, 0.0f, 1.0f, 1);
    // Weights shrink with the number of inputs, so that units do not saturate.
    float scale = 4.0f / std::sqrt(float(inputs));
    std::vector<float> weights = uniform_values(size_t(inputs) * HIDDEN, -scale, scale, 2);
    std::vector<float> output_weights = uniform_values(HIDDEN, -1.0f, 1.0f, 3);
    float target = 0.9f;

    Buffer<float> device_input(input), device_weights(weights), device_output_weights(output_weights);
    Buffer<float> partial(inputs), hidden(HIDDEN), hidden_error(HIDDEN), output_error(1);
    dim3 block(HIDDEN, 16);
    forward_partial<<<inputs / 16, block>>>(device_input, device_weights, partial);
    output_and_errors<<<1, HIDDEN>>>(partial, inputs / 16, device_output_weights, target, hidden, hidden_error, output_error);
    adjust_weights<<<inputs / 16, block>>>(device_input, hidden_error, device_weights);
    adjust_output_weights<<<1, HIDDEN>>>(hidden, output_error, device_output_weights);
    CHECK_LAUNCH();

    double units[HIDDEN], weighted = 0.0;
    for (int unit = 0; unit < HIDDEN; unit++) {
        double sum = 0.0;
        for (int i = 0; i < inputs; i++) sum += double(input[i]) * weights[size_t(i) * HIDDEN + unit];
        units[unit] = 1.0 / (1.0 + std::exp(-sum));
        weighted += units[unit] * output_weights[unit];
    }
    double output = 1.0 / (1.0 + std::exp(-weighted));
    double error = output * (1.0 - output) * (target - output);
    std::vector<double> wanted(weights.begin(), weights.end()), wanted_output(output_weights.begin(), output_weights.end());
    for (int unit = 0; unit < HIDDEN; unit++) {
        double unit_error = units[unit] * (1.0 - units[unit]) * error * output_weights[unit];
        for (int i = 0; i < inputs; i++) wanted[size_t(i) * HIDDEN + unit] += LEARNING * unit_error * input[i];
        wanted_output[unit] += LEARNING * error * units[unit];
    }
    double weights_error = worst_error(device_weights.read(), wanted);
    double output_weights_error = worst_error(device_output_weights.read(), wanted_output);
    std::vector<double> wanted_units(units, units + HIDDEN);
    double units_error = worst_error(hidden.read(), wanted_units);
    return verdict("backprop", weights_error < 1e-5 && output_weights_error < 1e-5 && units_error < 1e-4,
                   "%d inputs, worst error %.2e hidden units, %.2e weights, %.2e output weights", inputs, units_error,
                   weights_error, output_weights_error);
}
