// The seed's experiment on SM groups: vector addition whose elements are accumulated many times.
//
// Usage: accumulate [blocks] [accumulations]
#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void accumulate(const float* a, const float* b, float* sums, int times) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0.0f;
    for (int n = 0; n < times; n++) sum += a[i] + b[i];
    sums[i] = sum;
}

int main(int argc, char** argv) {
    const int threads = 256;
    int blocks = argc > 1 ? atoi(argv[1]) : 84;
    int times = argc > 2 ? atoi(argv[2]) : 2000;
    if (blocks < 1 || blocks > 65535 || times < 1 || times > 1000000) return 2;
    int count = blocks * threads;
    std::vector<float> a(count), b(count), sums(count);
    for (int i = 0; i < count; i++) {
        a[i] = float(i % 7);
        b[i] = float(i % 5);
    }
    float* device;
    size_t bytes = count * sizeof(float);
    if (cudaMalloc(&device, 3 * bytes) != cudaSuccess) return 3;
    cudaMemcpy(device, a.data(), bytes, cudaMemcpyHostToDevice);
    cudaMemcpy(device + count, b.data(), bytes, cudaMemcpyHostToDevice);
    accumulate<<<blocks, threads>>>(device, device + count, device + 2 * count, times);
    if (cudaMemcpy(sums.data(), device + 2 * count, bytes, cudaMemcpyDeviceToHost) != cudaSuccess) return 4;
    int wrong = 0;
    for (int i = 0; i < count; i++) {
        float sum = 0.0f;
        for (int n = 0; n < times; n++) sum += a[i] + b[i];
        wrong += sums[i] != sum;
    }
    cudaFree(device);
    printf("accumulate: %d blocks, %d times, %d wrong\n", blocks, times, wrong);
    return wrong != 0;
}
