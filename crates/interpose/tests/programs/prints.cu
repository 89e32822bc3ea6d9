// Output of kernels keeps its place; an error of a kernel sticks.
#include "check.h"

__global__ void talk(int number) { printf("kernel %d\n", number); }
__global__ void fault() { *(volatile int *)16 = 1; }

int main()
{
    printf("before\n");
    talk<<<1, 1>>>(7);
    SUCCEEDS(cudaDeviceSynchronize());
    printf("between\n");
    fault<<<1, 1>>>();
    EXPECT(cudaDeviceSynchronize() == cudaErrorIllegalAddress);
    EXPECT(cudaGetLastError() == cudaErrorIllegalAddress);
    EXPECT(cudaGetLastError() == cudaSuccess); // It shows again in the next call.
    void *pointer;
    EXPECT(cudaMalloc(&pointer, 4) == cudaErrorIllegalAddress);
    SUCCEEDS(cudaDeviceReset());
    cudaGetLastError();
    SUCCEEDS(cudaMalloc(&pointer, 4));
    printf("after\n");
    return 0;
}
