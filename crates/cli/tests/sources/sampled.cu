// Two kernels that are launched many times, one of which has more to do now and then.
// Usage: sampled STEPS
#include <cstdio>
#include <cstdlib>

__global__ void smooth(const float *in, float *out, int count) {
    int number = blockIdx.x * blockDim.x + threadIdx.x;
    if (number > 0 && number < count - 1) out[number] = 0.25f * in[number - 1] + 0.5f * in[number] + 0.25f * in[number + 1];
}

__global__ void stir(const float *in, float *out, int count, int rounds) {
    int number = blockIdx.x * blockDim.x + threadIdx.x;
    float value = in[number];
    for (int round = 0; round < rounds; ++round) value = value * 0.99f + in[(number * 7 + round) % count];
    out[number] = value * 0.01f;
}

int main(int, char **words) {
    const int steps = std::atoi(words[1]), count = 4096;
    float *one, *other, *host = new float[count];
    for (int number = 0; number < count; ++number) host[number] = number % 17;
    if (cudaMalloc(&one, count * sizeof(float)) || cudaMalloc(&other, count * sizeof(float))) return 2;
    cudaMemcpy(one, host, count * sizeof(float), cudaMemcpyHostToDevice);
    cudaMemcpy(other, host, count * sizeof(float), cudaMemcpyHostToDevice);
    for (int step = 0; step < steps; ++step) {
        smooth<<<16, 256>>>(step % 2 ? other : one, step % 2 ? one : other, count);
        stir<<<16, 256>>>(other, one, count, step % 5 == 0 ? 40 : 20);
    }
    cudaMemcpy(host, one, count * sizeof(float), cudaMemcpyDeviceToHost);
    std::printf("%g\n", host[100]);
    return cudaGetLastError() != cudaSuccess;
}
