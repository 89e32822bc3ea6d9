// The launch calls of CUDA before 7, which no header declares any more.
#include "check.h"
#include <cuda_runtime.h>
#include <dlfcn.h>

__global__ void add(const float *a, const float *b, float *c, int count)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) c[index] = a[index] + b[index];
}

int main()
{
    void *library = dlopen("libcudart.so.11.0", RTLD_NOW);
    EXPECT(library != NULL);
    typedef cudaError_t (*ConfigureCall)(dim3, dim3, size_t, cudaStream_t);
    typedef cudaError_t (*SetupArgument)(const void *, size_t, size_t);
    typedef cudaError_t (*Launch)(const void *);
    ConfigureCall configure = (ConfigureCall)dlsym(library, "cudaConfigureCall");
    SetupArgument argument = (SetupArgument)dlsym(library, "cudaSetupArgument");
    Launch launch = (Launch)dlsym(library, "cudaLaunch");
    EXPECT(configure && argument && launch);
    const int count = 100;
    float *a, *b, *c;
    SUCCEEDS(cudaMallocManaged(&a, count * 4));
    SUCCEEDS(cudaMallocManaged(&b, count * 4));
    SUCCEEDS(cudaMallocManaged(&c, count * 4));
    for (int index = 0; index < count; index++) {
        a[index] = index;
        b[index] = 2;
    }
    SUCCEEDS(configure(dim3(4), dim3(32), 0, 0));
    SUCCEEDS(argument(&a, 8, 0));
    SUCCEEDS(argument(&b, 8, 8));
    SUCCEEDS(argument(&c, 8, 16));
    SUCCEEDS(argument(&count, 4, 24));
    SUCCEEDS(launch((const void *)add));
    SUCCEEDS(cudaDeviceSynchronize());
    EXPECT(c[99] == 101);
    EXPECT(launch((const void *)add) == cudaErrorMissingConfiguration);
    // __cudaRegisterFatBinary, __cudaRegisterFunction and __cudaRegisterVar ran before main.
    return 0;
}
