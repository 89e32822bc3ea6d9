// Adds two vectors and checks the sum.
#include <cstdio>
#include <vector>

__global__ void add(const float *a, const float *b, float *c, int count)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        c[index] = a[index] + b[index];
}

int main()
{
    const int count = 1000;
    std::vector<float> a(count), b(count), c(count);
    for (int index = 0; index < count; index++) {
        a[index] = index;
        b[index] = 2 * index;
    }
    float *device_a, *device_b, *device_c;
    cudaMalloc(&device_a, count * sizeof(float));
    cudaMalloc(&device_b, count * sizeof(float));
    cudaMalloc(&device_c, count * sizeof(float));
    cudaMemcpy(device_a, a.data(), count * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(device_b, b.data(), count * sizeof(float), cudaMemcpyHostToDevice);
    add<<<(count + 255) / 256, 256>>>(device_a, device_b, device_c, count);
    printf("%s\n", cudaGetErrorString(cudaGetLastError()));
    cudaMemcpy(c.data(), device_c, count * sizeof(float), cudaMemcpyDeviceToHost);
    int wrong = 0;
    for (int index = 0; index < count; index++)
        wrong += c[index] != 3.0f * index;
    printf("%d wrong\n", wrong);
    cudaFree(device_a);
    cudaFree(device_b);
    cudaFree(device_c);
    return wrong != 0;
}
