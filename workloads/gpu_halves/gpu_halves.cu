// Each GPU of the node scales and adds its part of two vectors, all of them at the same time.
//
// Usage: gpu_halves [elements]      needs two GPUs or more: lockstep run --gpus 2
#include "../common/workload.cuh"

using namespace workload;

extern "C" __global__ void scale_add(float factor, const float* x, const float* y, float* sum, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) sum[i] = factor * x[i] + y[i];
}

// What one GPU has: its part of the vectors, and a stream.
struct Part {
    int first, count;
    float *x, *y, *sum;
    cudaStream_t stream;
    cudaEvent_t begin, end;
};

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 65536);
    int gpus = 0;
    CHECK(cudaGetDeviceCount(&gpus));
    if (gpus < 2) return verdict("gpu_halves", false, "needs two GPUs, found %d", gpus);

    const float factor = 2.5f;
    std::vector<float> x = uniform_values(count, -1.0f, 1.0f, 1);
    std::vector<float> y = uniform_values(count, -1.0f, 1.0f, 2);
    std::vector<float> got(count), wanted(count);
    for (int i = 0; i < count; i++) wanted[i] = std::fma(factor, x[i], y[i]);

    std::vector<Part> parts(gpus);
    int each = (count + gpus - 1) / gpus;
    for (int gpu = 0; gpu < gpus; gpu++) {
        Part& part = parts[gpu];
        part.first = gpu * each;
        part.count = part.first + each <= count ? each : count - part.first;
        size_t bytes = part.count * sizeof(float);
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaStreamCreate(&part.stream));
        CHECK(cudaEventCreate(&part.begin));
        CHECK(cudaEventCreate(&part.end));
        CHECK(cudaMalloc(&part.x, bytes));
        CHECK(cudaMalloc(&part.y, bytes));
        CHECK(cudaMalloc(&part.sum, bytes));
        CHECK(cudaMemcpy(part.x, &x[part.first], bytes, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(part.y, &y[part.first], bytes, cudaMemcpyHostToDevice));
    }
    for (int gpu = 0; gpu < gpus; gpu++) {
        Part& part = parts[gpu];
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaEventRecord(part.begin, part.stream));
        scale_add<<<blocks_for(part.count, 256), 256, 0, part.stream>>>(factor, part.x, part.y, part.sum, part.count);
        CHECK_LAUNCH();
        CHECK(cudaEventRecord(part.end, part.stream));
    }
    bool at_home = true;
    for (int gpu = 0; gpu < gpus; gpu++) {
        Part& part = parts[gpu];
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaStreamSynchronize(part.stream));
        CHECK(cudaMemcpy(&got[part.first], part.sum, part.count * sizeof(float), cudaMemcpyDeviceToHost));
        cudaPointerAttributes attributes;
        CHECK(cudaPointerGetAttributes(&attributes, part.sum));
        at_home = at_home && attributes.device == gpu;
        float milliseconds = 0;
        CHECK(cudaEventElapsedTime(&milliseconds, part.begin, part.end));
        CHECK(cudaFree(part.x));
        CHECK(cudaFree(part.y));
        CHECK(cudaFree(part.sum));
    }
    size_t wrong = mismatches(got, wanted);
    return verdict("gpu_halves", wrong == 0 && at_home, "%d elements on %d GPUs, %zu wrong", count, gpus, wrong);
}
