// Cycles of instructions without control bits, as `ptxas -O0` of CUDA 13.3 writes them for sm_90: chains of one
// instruction, by warps of one sub-core and of one SM.
//
//   nvcc -O3 -Xptxas -O0 -std=c++17 -arch=sm_90 unscheduled.cu -o unscheduled
//
// A row is cycles per repetition; `cuobjdump -sass` says of how many instructions a repetition consists.
#include "common.cuh"

#define TWICE(text) text text
#define REPEATED(text) TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(text))))))
constexpr int REPEATS = 64;

// A chain: NAME, what its repetition is, and what it does with the register, its 64-bit twin, a float, an address of
// shared memory, of global memory, and of the thread's own.
#define CHAINS(X)                                                                                          \
    X(nothing, "")                                                                                         \
    X(mov, "mov.b32 %0, %0;")                                                                              \
    X(add, "add.u32 %0, %0, 5;")                                                                           \
    X(mad, "mad.lo.u32 %0, %0, %0, 5;")                                                                    \
    X(mad_wide, "mad.wide.u32 %1, %0, 3, %1;")                                                             \
    X(shift, "shl.b32 %0, %0, 1;")                                                                         \
    X(fma, "fma.rn.f32 %2, %2, %2, %2;")                                                                   \
    X(dfma, "fma.rn.f64 %3, %3, %3, %3;")                                                                  \
    X(rsqrt, "rsqrt.approx.ftz.f32 %2, %2;")                                                               \
    X(popc, "popc.b32 %0, %0;")                                                                            \
    X(two_popc, "popc.b32 %0, %0; popc.b32 %0, %0;")                                                       \
    X(popc_and_add, "popc.b32 %0, %0; add.u32 %0, %0, 5;")                                                 \
    X(load_shared, "ld.volatile.shared.u32 %0, [%4];")                                                     \
    X(store_shared, "st.volatile.shared.u32 [%4], %0;")                                                    \
    X(atomic_shared, "atom.shared.add.u32 %0, [%4], 1;")                                                   \
    X(load_global, "ld.volatile.global.u32 %0, [%5];")                                                     \
    X(load_cached, "ld.global.u32 %0, [%5];")                                                              \
    X(store_global, "st.volatile.global.u32 [%5], %0;")                                                    \
    X(reduce_global, "red.global.add.u32 [%5], 1;")                                                        \
    X(atomic_global, "atom.global.add.u32 %0, [%5], 1;")                                                   \
    X(load_local, "ld.volatile.local.u32 %0, [%6];")                                                       \
    X(store_local, "st.volatile.local.u32 [%6], %0;")                                                      \
    X(shuffle, "shfl.sync.idx.b32 %0, %0, 3, 31, -1;")                                                     \
    X(vote, "{.reg .pred p, q; setp.ne.u32 p, %0, 0; vote.sync.all.pred q, p, -1;}")                       \
    X(warp_sync, "bar.warp.sync -1;")                                                                      \
    X(barrier, "bar.sync 0;")                                                                              \
    X(fence, "membar.gl;")                                                                                 \
    X(clock, "mov.u32 %0, %%clock;")

#define KERNEL(NAME, TEXT)                                                                                 \
    __global__ void NAME##_chain(long long* out, unsigned* memory) {                                       \
        __shared__ unsigned shared[1024];                                                                  \
        volatile unsigned own[4] = {1, 2, 3, 4};                                                           \
        unsigned x = threadIdx.x + 1;                                                                      \
        unsigned long long wide = x;                                                                       \
        float f = x;                                                                                       \
        double d = x;                                                                                      \
        unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(shared + threadIdx.x));               \
        unsigned own_at = static_cast<unsigned>(__cvta_generic_to_local(const_cast<unsigned*>(own)));      \
        shared[threadIdx.x] = x;                                                                           \
        for (int round = 0; round < 2; round++) {                                                          \
            __syncthreads();                                                                               \
            long long begin = clock64();                                                                   \
            asm volatile(REPEATED(TEXT "\n")                                                               \
                         : "+r"(x), "+l"(wide), "+f"(f), "+d"(d)                                               \
                         : "r"(at), "l"(memory + threadIdx.x), "r"(own_at)                 \
                         : "memory");                                                                      \
            long long end = clock64();                                                                     \
            if (threadIdx.x == 0) *out = end - begin;                                                      \
        }                                                                                                  \
        if (x == 0x7fffffff && wide == 3 && f == 2) memory[threadIdx.x] = own[x & 3];                      \
    }
CHAINS(KERNEL)

int main() {
    Clock clock;
    unsigned* memory;
    CHECK(cudaMalloc(&memory, 1 << 16));
    CHECK(cudaMemset(memory, 0, 1 << 16));
    std::printf("name,warps,cycles,unit\n");
    for (int warps : {1, 2, 4, 5, 8, 16}) {
        double floor = 0;
        auto measure = [&](const char* name, void (*kernel)(long long*, unsigned*)) {
            double cycles = clock.median_of([&](long long* out) { kernel<<<1, 32 * warps>>>(out, memory); });
            if (floor == 0) floor = cycles;
            row(name, std::to_string(warps), (cycles - floor) / REPEATS, "cycles");
        };
#define MEASURE(NAME, TEXT) measure(#NAME, NAME##_chain);
        CHAINS(MEASURE)
    }
}
