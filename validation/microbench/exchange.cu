// Exchange inside a warp and a block: shuffles, votes, barriers, fences.
#include "common.cuh"

constexpr int CHAIN = 256;

// A chain of dependent steps of every warp of one block; cycles of the first warp.
#define CHAIN_KERNEL(name, body)                                         \
    __global__ void name(long long* out, int seed, int* memory) {        \
        int x = seed + threadIdx.x;                                      \
        __syncthreads();                                                 \
        for (int round = 0; round < 2; round++) {                        \
            long long begin = clock64();                                 \
            _Pragma("unroll 32") for (int i = 0; i < CHAIN; i++) { body; } \
            long long end = clock64();                                   \
            if (threadIdx.x == 0) out[0] = end - begin;                  \
        }                                                                \
        if (x == 0x7fffffff) memory[0] = x;                              \
    }

CHAIN_KERNEL(shuffle_index, asm volatile("shfl.sync.idx.b32 %0,%0,%0,31,0xffffffff;" : "+r"(x)))
CHAIN_KERNEL(shuffle_butterfly, asm volatile("shfl.sync.bfly.b32 %0,%0,1,31,0xffffffff;" : "+r"(x)))
CHAIN_KERNEL(shuffle_down, asm volatile("shfl.sync.down.b32 %0,%0,1,31,0xffffffff;" : "+r"(x)))
CHAIN_KERNEL(vote_any, asm volatile("{.reg .pred p,q; setp.ne.s32 p,%0,0; vote.sync.any.pred q,p,0xffffffff; selp.s32 %0,1,0,q;}" : "+r"(x)))
CHAIN_KERNEL(warp_barrier, asm volatile("bar.warp.sync 0xffffffff;" ::: "memory"))
CHAIN_KERNEL(block_barrier, asm volatile("bar.sync 0;" ::: "memory"))
CHAIN_KERNEL(block_barrier_and_count, asm volatile("{.reg .pred p; setp.ne.s32 p,%0,0; bar.red.popc.u32 %0,0,p;}" : "+r"(x)))
CHAIN_KERNEL(fence_block, asm volatile("membar.cta;" ::: "memory"))
CHAIN_KERNEL(fence_gpu, asm volatile("membar.gl;" ::: "memory"))
CHAIN_KERNEL(fence_system, asm volatile("membar.sys;" ::: "memory"))
CHAIN_KERNEL(store_and_fence_gpu, memory[threadIdx.x + 32 * (i & 15)] = x; asm volatile("membar.gl;" ::: "memory"))

// Independent shuffles, to fill the unit.
__global__ void shuffle_throughput(long long* out, int seed) {
    // Different in every lane and dependent on memory, so that no shuffle can be seen through.
    int a = seed + threadIdx.x * 7, b = int(out[threadIdx.x % 32]), c = a ^ b, d = a * 3 + b;
    __syncthreads();
    long long begin = clock64();
#pragma unroll 8
    for (int i = 0; i < CHAIN; i++) {
        asm volatile("shfl.sync.bfly.b32 %0,%0,1,31,0xffffffff;" : "+r"(a));
        asm volatile("shfl.sync.bfly.b32 %0,%0,2,31,0xffffffff;" : "+r"(b));
        asm volatile("shfl.sync.bfly.b32 %0,%0,4,31,0xffffffff;" : "+r"(c));
        asm volatile("shfl.sync.bfly.b32 %0,%0,8,31,0xffffffff;" : "+r"(d));
    }
    __syncthreads();
    long long end = clock64();
    if (threadIdx.x == 0) out[0] = end - begin;
    if (a + b + c + d == 0x7fffffff) out[1] = 1;
}

int main() {
    warm_up();
    Clock clock;
    int* memory;
    CHECK(cudaMalloc(&memory, 1 << 16));
    struct Case {
        const char* name;
        void (*kernel)(long long*, int, int*);
    };
    const Case one_warp[] = {{"shuffle_index", shuffle_index}, {"shuffle_butterfly", shuffle_butterfly},
                             {"shuffle_down", shuffle_down},   {"vote_any", vote_any},
                             {"warp_barrier", warp_barrier},   {"fence_block", fence_block},
                             {"fence_gpu", fence_gpu},         {"fence_system", fence_system},
                             {"store_and_fence_gpu", store_and_fence_gpu}};
    for (const Case& c : one_warp) {
        double cycles = clock.median_of([&](long long* out) { c.kernel<<<1, 32>>>(out, 1, memory); });
        row("latency", text("%s threads=32", c.name), cycles / CHAIN, "cycles/inst");
    }
    for (int threads : {32, 64, 128, 256, 512, 1024}) {
        double plain = clock.median_of([&](long long* out) { block_barrier<<<1, threads>>>(out, 1, memory); });
        row("latency", text("block_barrier threads=%d", threads), plain / CHAIN, "cycles/inst");
        double count = clock.median_of([&](long long* out) { block_barrier_and_count<<<1, threads>>>(out, 1, memory); });
        row("latency", text("block_barrier_and_count threads=%d", threads), count / CHAIN, "cycles/inst");
        double full = clock.median_of([&](long long* out) { shuffle_throughput<<<1, threads>>>(out, 1); });
        row("throughput", text("shuffle threads=%d", threads), 4.0 * CHAIN * threads / full, "thread-inst/cycle/SM");
    }
    return 0;
}
