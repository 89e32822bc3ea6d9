// A shared object with kernels and a static runtime of its own.
#include <cstdio>

__global__ void add(const float *a, const float *b, float *c, int count)
{
    int index = threadIdx.x;
    if (index < count)
        c[index] = a[index] + b[index];
}

// Runs while the object is being loaded.
static struct Early {
    int devices = -1;
    Early() { cudaGetDeviceCount(&devices); }
} early;

extern "C" int plugin_run()
{
    float *memory;
    if (cudaMallocManaged(&memory, 96 * sizeof(float)) != cudaSuccess)
        return 1;
    for (int index = 0; index < 32; index++) {
        memory[index] = index;
        memory[32 + index] = 100;
    }
    add<<<1, 32>>>(memory, memory + 32, memory + 64, 32);
    if (cudaDeviceSynchronize() != cudaSuccess)
        return 2;
    printf("%d device, %g\n", early.devices, memory[64 + 31]);
    return 0;
}
