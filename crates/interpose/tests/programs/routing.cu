// The calls of table 1 of the SST-GPU report, one after the other, each behind its name; a question for free memory
// stands between them, so that what the simulator is asked for each can be told apart.
#include "check.h"
#include <cuda_runtime.h>
#include <dlfcn.h>

__device__ int counter;

__global__ void add(const float *a, const float *b, float *c, int count)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) c[index] = a[index] + b[index];
    if (index == 0) counter = count;
}

static void next(const char *call)
{
    size_t available, total;
    SUCCEEDS(cudaMemGetInfo(&available, &total));
    printf("%s\n", call);
    fflush(stdout);
}

int main()
{
    typedef cudaError_t (*ConfigureCall)(dim3, dim3, size_t, cudaStream_t);
    typedef cudaError_t (*SetupArgument)(const void *, size_t, size_t);
    typedef cudaError_t (*Launch)(const void *);
    void *library = dlopen("libcudart.so.11.0", RTLD_NOW);
    EXPECT(library != NULL);
    ConfigureCall configure = (ConfigureCall)dlsym(library, "cudaConfigureCall");
    SetupArgument argument = (SetupArgument)dlsym(library, "cudaSetupArgument");
    Launch launch = (Launch)dlsym(library, "cudaLaunch");
    EXPECT(configure && argument && launch);
    const int count = 64;
    const size_t bytes = count * sizeof(float);
    float host[count] = {0}, *device;
    int devices, blocks;
    cudaDeviceProp properties;

    cudaFuncAttributes attributes;
    void *variable;

    // What is registered before `main` is asked for at its first use.
    next("__cudaRegisterFatBinary __cudaRegisterVar");
    SUCCEEDS(cudaGetSymbolAddress(&variable, counter));
    next("__cudaRegisterFunction");
    SUCCEEDS(cudaFuncGetAttributes(&attributes, add));
    next("cudaMalloc");
    SUCCEEDS(cudaMalloc(&device, bytes));
    next("cudaMemcpy");
    SUCCEEDS(cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice));
    next("cudaMemset");
    SUCCEEDS(cudaMemset(device, 0, bytes));
    next("cudaConfigureCall");
    SUCCEEDS(configure(dim3(2), dim3(32), 0, 0));
    next("cudaSetupArgument");
    SUCCEEDS(argument(&device, 8, 0));
    SUCCEEDS(argument(&device, 8, 8));
    SUCCEEDS(argument(&device, 8, 16));
    SUCCEEDS(argument(&count, 4, 24));
    next("cudaLaunch");
    SUCCEEDS(launch((const void *)add));
    next("cudaGetLastError");
    SUCCEEDS(cudaGetLastError());
    next("cudaFuncSetCacheConfig");
    SUCCEEDS(cudaFuncSetCacheConfig(add, cudaFuncCachePreferL1));
    next("cudaSetDevice");
    SUCCEEDS(cudaSetDevice(0));
    next("cudaGetDeviceCount");
    SUCCEEDS(cudaGetDeviceCount(&devices));
    next("cudaGetDeviceProperties");
    SUCCEEDS(cudaGetDeviceProperties(&properties, 0));
    next("cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags");
    SUCCEEDS(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, add, 32, 0, 0));
    next("cudaFree");
    SUCCEEDS(cudaFree(device));
    next("the end");
    return 0;
}
