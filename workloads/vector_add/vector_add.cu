// Vector addition: one thread an element, three streams of memory.
//
// Usage: vector_add [elements]
#include "../common/workload.cuh"

using namespace workload;

// A C name, so that the same kernel can be asked for by name from its PTX.
extern "C" __global__ void vector_add(const float* a, const float* b, float* sum, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) sum[i] = a[i] + b[i];
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 163840);
    std::vector<float> a = uniform_values(count, -1.0f, 1.0f, 1);
    std::vector<float> b = uniform_values(count, -1.0f, 1.0f, 2);
    std::vector<float> wanted(count);
    for (int i = 0; i < count; i++) wanted[i] = a[i] + b[i];

    Buffer<float> device_a(a), device_b(b), device_sum(count);
    vector_add<<<blocks_for(count, 256), 256>>>(device_a, device_b, device_sum, count);
    CHECK_LAUNCH();
    size_t wrong = mismatches(device_sum.read(), wanted);
    return verdict("vector_add", wrong == 0, "%d elements, %zu wrong", count, wrong);
}
