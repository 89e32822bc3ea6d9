// Built with the per-thread default stream.
#include "check.h"

__global__ void add(const float *a, const float *b, float *c, int count) { c[threadIdx.x] = a[threadIdx.x] + b[threadIdx.x]; }

int main()
{
    float *memory;
    SUCCEEDS(cudaMallocManaged(&memory, 4096));
    add<<<1, 1>>>(memory, memory, memory, 1);
    SUCCEEDS(cudaGetLastError());
    SUCCEEDS(cudaMemcpy(memory, memory + 8, 4, cudaMemcpyDefault));
    SUCCEEDS(cudaStreamSynchronize(0));
    return 0;
}
