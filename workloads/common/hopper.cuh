// Hopper's asynchronous units in the words of the PTX ISA: mbarriers, the tensor memory accelerator (TMA), products of
// a warp group (wgmma), clusters, and tensor maps from the host.
#pragma once

#include <cuda.h>
#include <cuda_fp16.h>

#include "workload.cuh"

namespace hopper {

__device__ inline uint32_t shared_address(const void* pointer) { return uint32_t(__cvta_generic_to_shared(pointer)); }

// --- mbarriers -------------------------------------------------------------------------------------------------------

__device__ inline void initialise(uint32_t barrier, int count) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

// Barriers that were initialised are seen by the whole cluster and by the TMA.
__device__ inline void publish_barriers() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

__device__ inline void arrive(uint32_t barrier) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(barrier) : "memory");
}

// At the barrier that lies at the same place in another block of the cluster.
__device__ inline void arrive_at(uint32_t barrier, uint32_t block) {
    asm volatile(
        "{ .reg .b32 there; mapa.shared::cluster.u32 there, %0, %1;\n"
        "  mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }" ::"r"(barrier),
        "r"(block)
        : "memory");
}

__device__ inline void expect(uint32_t barrier, uint32_t bytes) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1; }" ::"r"(barrier), "r"(bytes)
                 : "memory");
}

__device__ inline void wait(uint32_t barrier, uint32_t parity) {
    uint32_t done = 0;
    while (!done)
        asm volatile(
            "{ .reg .pred ready; mbarrier.try_wait.parity.shared.b64 ready, [%1], %2; selp.u32 %0, 1, 0, ready; }"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
}

// As `wait`, where arrivals come from other blocks of the cluster.
__device__ inline void wait_for_cluster(uint32_t barrier, uint32_t parity) {
    uint32_t done = 0;
    while (!done)
        asm volatile(
            "{ .reg .pred ready; mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 ready, [%1], %2;\n"
            "  selp.u32 %0, 1, 0, ready; }"
            : "=r"(done)
            : "r"(barrier), "r"(parity)
            : "memory");
}

// A ring of buffers: which of them is next, and the parity of its round.
template <int STAGES>
struct Turn {
    int stage = 0;
    uint32_t parity = 0;
    __device__ void advance() {
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
};

// Some of a block's threads, whole warps, meet; `number` 0 is that of __syncthreads.
__device__ inline void meet(int number, int threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(number), "r"(threads) : "memory");
}
__device__ inline void signal(int number, int threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(number), "r"(threads) : "memory");
}

// --- clusters --------------------------------------------------------------------------------------------------------

__device__ inline uint32_t cluster_rank() {
    uint32_t rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ inline void cluster_meet() {
    asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// --- copies ----------------------------------------------------------------------------------------------------------

// Threads' stores to shared memory come before what the TMA reads of it.
__device__ inline void stores_before_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

__device__ inline void load_tile(uint32_t to, const CUtensorMap& map, int x, int y, uint32_t barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3, %4}], [%2];" ::
            "r"(to), "l"(&map), "r"(barrier), "r"(x), "r"(y)
        : "memory");
}

// To the same place, and with a note to the same barrier, in all blocks of the mask.
__device__ inline void load_tile_to_all(uint32_t to, const CUtensorMap& map, int x, int y, uint32_t barrier, int mask) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%3, %4}], [%2], %5;" ::"r"(to),
        "l"(&map), "r"(barrier), "r"(x), "r"(y), "h"(uint16_t(mask))
        : "memory");
}

__device__ inline void store_tile(const CUtensorMap& map, int x, int y, uint32_t from) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%0, {%2, %3}], [%1];" ::"l"(&map), "r"(from),
                 "r"(x), "r"(y)
                 : "memory");
}

__device__ inline void load_bytes(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}

__device__ inline void load_bytes_to_all(uint32_t to, const void* from, uint32_t bytes, uint32_t barrier, int mask) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" ::
            "r"(to),
        "l"(from), "r"(bytes), "r"(barrier), "h"(uint16_t(mask))
        : "memory");
}

__device__ inline void store_bytes(void* to, uint32_t from, uint32_t bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to), "r"(from), "r"(bytes)
                 : "memory");
}

__device__ inline void commit_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
__device__ inline void wait_until_read() { asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory"); }
__device__ inline void wait_until_stored() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }

// --- registers and products of a warp group --------------------------------------------------------------------------

template <int COUNT>
__device__ inline void more_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}
template <int COUNT>
__device__ inline void fewer_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}

// Describes an operand whose rows are 128 bytes, swizzled as the TMA does it; eight rows are 1,024 bytes.
__device__ inline uint64_t operand(uint32_t address) {
    return uint64_t((address & 0x3ffff) >> 4) | uint64_t(64) << 16 | uint64_t(64) << 32 | uint64_t(1) << 62;
}

__device__ inline void begin_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ inline void commit_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// The registers of a sum may not be touched before its product has ended: `N` products may still run.
template <int PENDING, int N>
__device__ inline void wait_products(float (&sums)[N]) {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
    for (int i = 0; i < N; i++) asm volatile("" : "+f"(sums[i])::"memory");
}

#define HOPPER_SUMS_8(d, i) \
    "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), "+f"(d[i + 6]), "+f"(d[i + 7])
#define HOPPER_SUMS_32(d, i) \
    HOPPER_SUMS_8(d, i), HOPPER_SUMS_8(d, i + 8), HOPPER_SUMS_8(d, i + 16), HOPPER_SUMS_8(d, i + 24)
#define HOPPER_LIST_32                                                                                     \
    "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
    "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define HOPPER_LIST_64                                                                                           \
    HOPPER_LIST_32                                                                                               \
    ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, " \
    "%53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"

// sums (64 x 128) = or += A (64 x 16) times B (16 x 128), both by rows of K in shared memory.
__device__ inline void multiply_halves(float (&sums)[64], uint64_t a, uint64_t b, bool add) {
    asm volatile("{ .reg .pred add; setp.ne.b32 add, %66, 0;\n"
                 "  wgmma.mma_async.sync.aligned.m64n128k16.f32.f16.f16 {" HOPPER_LIST_64 "}, %64, %65, add, 1, 1, 0, 0; }"
                 : HOPPER_SUMS_32(sums, 0), HOPPER_SUMS_32(sums, 32)
                 : "l"(a), "l"(b), "r"(int(add)));
}

// The same for numbers of eight bits (four of exponent, three of fraction): K is 32.
__device__ inline void multiply_eights(float (&sums)[64], uint64_t a, uint64_t b, bool add) {
    asm volatile("{ .reg .pred add; setp.ne.b32 add, %66, 0;\n"
                 "  wgmma.mma_async.sync.aligned.m64n128k32.f32.e4m3.e4m3 {" HOPPER_LIST_64 "}, %64, %65, add, 1, 1; }"
                 : HOPPER_SUMS_32(sums, 0), HOPPER_SUMS_32(sums, 32)
                 : "l"(a), "l"(b), "r"(int(add)));
}

// sums (64 x 64) += A (64 x 16, in registers) times B (16 x 64, by rows of N in shared memory).
__device__ inline void multiply_registers(float (&sums)[32], const uint32_t* a, uint64_t b, bool add) {
    asm volatile("{ .reg .pred add; setp.ne.b32 add, %37, 0;\n"
                 "  wgmma.mma_async.sync.aligned.m64n64k16.f32.f16.f16 {" HOPPER_LIST_32
                 "}, {%32, %33, %34, %35}, %36, add, 1, 1, 1; }"
                 : HOPPER_SUMS_32(sums, 0)
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(int(add)));
}

__device__ inline uint32_t pack(float low, float high) {
    __half2 both = __floats2half2_rn(low, high);
    return *reinterpret_cast<uint32_t*>(&both);
}

// Four matrices of 8 x 8 halves from the lanes of a warp; lane l gives the place of row l % 8 of matrix l / 8.
__device__ inline void store_matrices(uint32_t to, uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(a), "r"(b), "r"(c), "r"(d)
                 : "memory");
}

// A warp's 16 rows by 64 columns of a sum, as halves, into a tile of 128 bytes a row that the TMA will unswizzle.
// `first` is the row of the tile at which the warp's rows begin.
__device__ inline void store_swizzled(uint32_t tile, int first, const float* sums, float factor_upper, float factor_lower) {
    int lane = threadIdx.x % 32, row = first + lane % 16;
    for (int pair = 0; pair < 4; pair++) {
        const float* s = sums + pair * 8;
        uint32_t chunk = uint32_t(pair * 2 + lane / 16) ^ (row % 8);
        store_matrices(tile + row * 128 + chunk * 16, pack(s[0] * factor_upper, s[1] * factor_upper),
                       pack(s[2] * factor_lower, s[3] * factor_lower), pack(s[4] * factor_upper, s[5] * factor_upper),
                       pack(s[6] * factor_lower, s[7] * factor_lower));
    }
}

// --- the host --------------------------------------------------------------------------------------------------------

// A matrix by rows, read or written in boxes whose rows are swizzled over 128 bytes. What lies outside reads as zero
// and is not written.
inline CUtensorMap describe(void* matrix, CUtensorMapDataType type, int element, int columns, int rows, int box_columns,
                            int box_rows) {
    typedef CUresult (*Encode)(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*, const cuuint64_t*,
                               const cuuint64_t*, const cuuint32_t*, const cuuint32_t*, CUtensorMapInterleave,
                               CUtensorMapSwizzle, CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
    Encode encode = nullptr;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void**)&encode, 12000, cudaEnableDefault, &found));
    CUtensorMap map;
    cuuint64_t size[] = {cuuint64_t(columns), cuuint64_t(rows)}, stride[] = {cuuint64_t(columns) * element};
    cuuint32_t box[] = {cuuint32_t(box_columns), cuuint32_t(box_rows)}, step[] = {1, 1};
    CUresult made = encode(&map, type, 2, matrix, size, stride, box, step, CU_TENSOR_MAP_INTERLEAVE_NONE,
                           CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                           CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    if (made != CUDA_SUCCESS) {
        std::fprintf(stderr, "cuTensorMapEncodeTiled: %d\n", int(made));
        std::exit(2);
    }
    return map;
}

// Starts a kernel in clusters of `cluster` blocks along x.
template <typename... Parameters, typename... Arguments>
void launch_clusters(void (*kernel)(Parameters...), dim3 grid, int threads, size_t shared, int cluster,
                     Arguments... arguments) {
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, int(shared)));
    cudaLaunchConfig_t configuration = {};
    configuration.gridDim = grid;
    configuration.blockDim = dim3(threads);
    configuration.dynamicSmemBytes = shared;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {unsigned(cluster), 1, 1};
    configuration.attrs = &attribute;
    configuration.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&configuration, kernel, arguments...));
}

}  // namespace hopper
