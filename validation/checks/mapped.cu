// How far memory is mapped around an allocation: one thread walks and writes its progress to pinned memory until it faults.
// The words of its arguments are explained in mapped.txt, which has what it printed on an H200.
// nvcc -O2 -arch=sm_90a -cudart static mapped.cu
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
__device__ int variable[25];
__global__ void walk(char* from, long long step, int steps, volatile int* done, int write) {
    for (int i = 0; i < steps; i++) {
        volatile int* p = (volatile int*)(from + i * step);
        if (write) *p = 7; else (void)*p;
        __threadfence_system();
        done[0] = i + 1;
        __threadfence_system();
    }
}
__global__ void walk_shared(volatile int* done, int first, int step, int steps, int write) {
    extern __shared__ int dynamic[];
    volatile char* base = (volatile char*)dynamic;
    int sum = 0;
    for (int i = 0; i < steps; i++) {
        if (write) *(volatile int*)(base + first + i * step) = 7;
        else sum += *(volatile int*)(base + first + i * step);
        __threadfence_system();
        done[0] = i + 1 + (sum == 12345);
        __threadfence_system();
    }
}
__global__ void walk_local(volatile int* done, int step, int steps, int write) {
    volatile int array[64];
    for (int i = 0; i < 64; i++) array[i] = i;
    int sum = 0;
    for (int i = 0; i < steps; i++) {
        if (write == 1) *(volatile int*)((volatile char*)array + (long long)i * step) = 7;
        else sum += *(volatile int*)((volatile char*)array + (long long)i * step);
        __threadfence_system();
        done[0] = i + 1 + (sum == 12345678);
        __threadfence_system();
    }
}
int main(int argc, char** argv) {
    void* all[64]; int count = 0;
    cudaFree(0);
    int* done; cudaHostAlloc((void**)&done, 4096, cudaHostAllocMapped); memset(done, 0, 4096);
    for (int a = 1; a < argc; a++) {
        const char* s = argv[a];
        if (s[0] == 'm') { cudaError_t e = cudaMalloc(&all[count], strtoull(s + 1, 0, 0)); printf("%s=%p%s ", s, all[count], e ? "!" : ""); count++; }
        if (s[0] == 'h') { cudaMallocHost(&all[count], strtoull(s + 1, 0, 0)); printf("%s=%p ", s, all[count]); count++; }
        if (s[0] == 'u') { cudaMallocManaged(&all[count], strtoull(s + 1, 0, 0)); printf("%s=%p ", s, all[count]); count++; }
        if (s[0] == 'v') { cudaGetSymbolAddress(&all[count], variable); printf("%s=%p ", s, all[count]); count++; }
        if (s[0] == 'f') { cudaFree(all[atoi(s + 1)]); printf("%s ", s); }
        if (s[0] == 'z') { cudaMemset(all[atoi(s + 1)], 0x5a, 256); cudaDeviceSynchronize(); printf("%s ", s); }
        if (s[0] == 'w') {
            int index, steps, write; long long offset, step;
            sscanf(s + 1, "%d:%lld:%lld:%d:%d", &index, &offset, &step, &steps, &write);
            walk<<<1, 1>>>((char*)all[index] + offset, step, steps, done, write);
            cudaError_t e = cudaDeviceSynchronize();
            printf("%s -> %d of %d, %s", s, done[0], steps, cudaGetErrorName(e));
        }
        if (s[0] == 's') {
            int bytes, first, step, steps, write;
            sscanf(s + 1, "%d:%d:%d:%d:%d", &bytes, &first, &step, &steps, &write);
            cudaFuncSetAttribute(walk_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
            walk_shared<<<1, 1, bytes>>>(done, first, step, steps, write);
            cudaError_t e = cudaDeviceSynchronize();
            printf("%s -> %d of %d, %s", s, done[0], steps, cudaGetErrorName(e));
        }
        if (s[0] == 'l') {
            int step, steps, write;
            sscanf(s + 1, "%d:%d:%d", &step, &steps, &write);
            walk_local<<<1, 1>>>(done, step, steps, write);
            cudaError_t e = cudaDeviceSynchronize();
            printf("%s -> %d of %d, %s", s, done[0], steps, cudaGetErrorName(e));
        }
    }
    printf("\n");
    return 0;
}
