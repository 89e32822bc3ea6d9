// Lanes that return from different depths and come to a barrier of their block: which of them come together, and when.
//
//   nvcc -O3 -arch=sm_90 barrier_parts.cu -o barrier_parts
//
// A line is warp.round, `before` or `after` the barrier, and the lanes with one clock. Sums hold what other launches
// left in shared memory.
#include <cstdio>
#include <cstdlib>
typedef unsigned u32; typedef unsigned long long u64;
#define ROUNDS 4
__device__ __noinline__ u64 descend(u32 value, u32 depth) {
    if (depth == 0) return value * 0x9e3779b97f4a7c15ull;
    u64 got = descend(value * 31 + 7, depth - 1);
    if ((value >> 3) % 5 == 0) got ^= descend(value ^ 38555u, depth - 1);
    return got + value;
}
__global__ void marks(u64 *o, u32 salt, u32 depths) {
    __shared__ u64 parts[160];
    u64 start = clock64(), sum = 0;
    u64 *mine = o + threadIdx.x * (2 * ROUNDS + 1);
    for (u32 seed = 0; seed < ROUNDS; seed++) {
        u32 value = (threadIdx.x + seed * 1000 + salt) * 2654435761u;
        value ^= value >> 15; value *= 0x2c1b3c6du; value ^= value >> 13;
        parts[threadIdx.x] = descend(value, value % depths);
        mine[2 * seed] = clock64() - start;
        __syncthreads();
        mine[2 * seed + 1] = clock64() - start;
        sum = sum * 31 + parts[(threadIdx.x + 1) % blockDim.x];
        __syncthreads();
    }
    mine[2 * ROUNDS] = sum;
}
int main(int argc, char **argv) {
    u64 *o; static u64 host[160 * (2 * ROUNDS + 1)];
    cudaMalloc(&o, sizeof host);
    cudaDeviceSetLimit(cudaLimitStackSize, 8192);
    for (int c = 0; c < 24; c++) {
        int warps = (const int[]){1, 2, 5, 3}[c % 4], depths = 2 + c / 4 % 3 * 3;
        cudaMemset(o, 0, sizeof host);
        marks<<<1, warps * 32>>>(o, c * 77, depths);
        printf("case %d warps %d depths %d %s\n", c, warps, depths, cudaGetErrorString(cudaDeviceSynchronize()));
        cudaMemcpy(host, o, sizeof host, cudaMemcpyDeviceToHost);
        for (int w = 0; w < warps; w++) {
            for (int m = 0; m < 2 * ROUNDS; m++) {
                printf("%d.%d%s", w, m / 2, m % 2 ? " after" : " before");
                u32 done = 0;
                while (done != 0xffffffffu) {
                    u64 least = ~0ull;
                    for (int t = 0; t < 32; t++) { u64 x = host[(w * 32 + t) * (2 * ROUNDS + 1) + m]; if (!(done >> t & 1) && x < least) least = x; }
                    u32 here = 0;
                    for (int t = 0; t < 32; t++) if (!(done >> t & 1) && host[(w * 32 + t) * (2 * ROUNDS + 1) + m] == least) here |= 1u << t;
                    done |= here;
                    printf(" %08x@%llu", here, least);
                }
                puts("");
            }
        }
        u64 all = 0; for (int t = 0; t < warps * 32; t++) all = all * 31 + host[t * (2 * ROUNDS + 1) + 2 * ROUNDS];
        printf("sum %llx\n", all);
    }
}
