// Measures a call that asks the simulator, one that need not, and a large copy.
#include "check.h"
#include <chrono>
#include <cstring>
#include <vector>

static double seconds()
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int main()
{
    const int count = 20000;
    size_t free_bytes, total;
    int value;
    SUCCEEDS(cudaFree(0));
    double start = seconds();
    for (int index = 0; index < count; index++)
        SUCCEEDS(cudaMemGetInfo(&free_bytes, &total));
    double asking = (seconds() - start) / count;
    start = seconds();
    for (int index = 0; index < count; index++)
        SUCCEEDS(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
    double local = (seconds() - start) / count;
    const size_t bytes = 256 << 20;
    std::vector<char> host(bytes, 1);
    void *device;
    SUCCEEDS(cudaMalloc(&device, bytes));
    SUCCEEDS(cudaMemcpy(device, host.data(), bytes, cudaMemcpyHostToDevice)); // Touches the pages.
    start = seconds();
    SUCCEEDS(cudaMemcpy(device, host.data(), bytes, cudaMemcpyHostToDevice));
    double copy = seconds() - start;
    printf("asking %.2f us, local %.3f us, copy %.2f GB/s\n", asking * 1e6, local * 1e6, bytes / copy / 1e9);
    return 0;
}
