// Where lanes of a warp part and meet: kernels whose instruction counts tell how the hardware counts.
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
__constant__ int trips[64 * 32];
__global__ void loop(int pattern, unsigned* out) {
    int n = trips[pattern * 32 + threadIdx.x % 32];
    unsigned value = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < n; i++) value = value * 1664525u + 1013904223u;
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
__global__ void loop_memory(int pattern, const unsigned* in, unsigned* out) {
    int n = trips[pattern * 32 + threadIdx.x % 32];
    unsigned value = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < n; i++) value += in[(value + i) & 255];
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
__global__ void nested(int pattern, unsigned* out) {
    int n = trips[pattern * 32 + threadIdx.x % 32];
    unsigned value = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < n; i++) {
#pragma unroll 1
        for (int j = 0; j < (int)((threadIdx.x + i) % 5); j++) value = value * 1664525u + j;
        value ^= i;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = value;
}
__global__ void either(int pattern, unsigned* out) {
    int n = trips[pattern * 32 + threadIdx.x % 32];
    unsigned value = threadIdx.x;
    if (n & 1) {
        asm volatile("{ .reg .u32 t; add.u32 t, %0, 1; mul.lo.u32 %0, t, 77; xor.b32 %0, %0, 5; }" : "+r"(value));
        out[64 + threadIdx.x] = value * 3;
        __threadfence_block();
    } else {
        out[128 + threadIdx.x] = value * 5;
        __threadfence_block();
    }
    out[threadIdx.x] = value;
}
__global__ void breaks(int pattern, unsigned* out) {
    int n = trips[pattern * 32 + threadIdx.x % 32];
    unsigned value = threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < 40; i++) {
        value = value * 1664525u + 1013904223u;
        if (i == n) { value ^= 0x55; break; }
        if (value & 1) { value += 3; __threadfence_block(); }
    }
    out[threadIdx.x] = value;
}
// Which side goes first: every lane takes a ticket where it is.
__global__ void order(int pattern, unsigned* out) {
    __shared__ unsigned next;
    if (threadIdx.x == 0) next = 0;
    __syncwarp();
    int n = trips[pattern * 32 + threadIdx.x % 32];
    unsigned first = 0, second = 0;
    volatile unsigned* place = &next;
    if (n & 1) {
        first = atomicAdd(&next, 1);
        second = *place;
    } else {
        first = atomicAdd(&next, 1) + 1000;
        second = *place;
    }
    out[threadIdx.x] = first;
    out[32 + threadIdx.x] = second;
}
__global__ void loop_order(int pattern, unsigned* out) {
    __shared__ unsigned next;
    if (threadIdx.x == 0) next = 0;
    __syncwarp();
    int n = trips[pattern * 32 + threadIdx.x % 32];
    unsigned last = 0;
#pragma unroll 1
    for (int i = 0; i < n; i++) last = atomicAdd(&next, 1);
    unsigned after = atomicAdd(&next, 1);
    out[threadIdx.x] = last;
    out[32 + threadIdx.x] = after;
}
int main(int argc, char** argv) {
    static int table[64 * 32];
    srand(7);
    for (int p = 0; p < 64; p++)
        for (int l = 0; l < 32; l++) {
            int v = 3;
            switch (p) {
                case 0: v = 3; break;
                case 1: v = l == 0 ? 1 : 3; break;
                case 2: v = l == 31 ? 1 : 3; break;
                case 3: v = l < 16 ? 2 : 5; break;
                case 4: v = l < 16 ? 5 : 2; break;
                case 5: v = l; break;
                case 6: v = 31 - l; break;
                case 7: v = l / 4; break;
                case 8: v = l % 4; break;
                case 9: v = l == 5 ? 20 : 4; break;
                case 10: v = l == 0 ? 9 : l == 31 ? 5 : 7; break;
                case 11: v = l < 2 ? 0 : 4; break;
                case 12: v = l < 1 ? 2 : l < 3 ? 4 : 6; break;
                case 13: v = l < 30 ? 2 : 3; break;
                case 14: v = l < 31 ? 2 : 3; break;
                case 15: v = l == 16 ? 2 : 3; break;
                case 16: v = (l == 3 || l == 20) ? 2 : 3; break;
                case 17: v = l < 8 ? 1 : l < 16 ? 2 : l < 24 ? 3 : 4; break;
                case 18: v = l < 8 ? 4 : l < 16 ? 3 : l < 24 ? 2 : 1; break;
                case 19: v = l & 1; break;
                case 20: v = 1 + (l & 1); break;
                default: v = rand() % (p < 30 ? 3 : p < 40 ? 8 : 30);
            }
            table[p * 32 + l] = v;
        }
    cudaMemcpyToSymbol(trips, table, sizeof table);
    unsigned *out, *in;
    cudaMalloc(&out, 4096);
    cudaMalloc(&in, 4096);
    cudaMemset(in, 1, 4096);
    unsigned got[1024];
    for (int p = 0; p < 48; p++) loop<<<1, 32>>>(p, out);
    for (int p = 0; p < 48; p++) loop_memory<<<1, 32>>>(p, in, out);
    for (int p = 0; p < 48; p++) nested<<<1, 32>>>(p, out);
    for (int p = 0; p < 48; p++) either<<<1, 32>>>(p, out);
    for (int p = 0; p < 48; p++) breaks<<<1, 32>>>(p, out);
    for (int p = 0; p < 48; p++) {
        order<<<1, 32>>>(p, out);
        cudaMemcpy(got, out, 256, cudaMemcpyDeviceToHost);
        printf("order %d:", p);
        for (int i = 0; i < 64; i++) printf(" %u", got[i]);
        printf("\n");
    }
    for (int p = 0; p < 48; p++) {
        loop_order<<<1, 32>>>(p, out);
        cudaMemcpy(got, out, 256, cudaMemcpyDeviceToHost);
        printf("loop_order %d:", p);
        for (int i = 0; i < 64; i++) printf(" %u", got[i]);
        printf("\n");
    }
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
