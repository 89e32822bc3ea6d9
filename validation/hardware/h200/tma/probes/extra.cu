// What the engine does with what it should refuse, how long it takes, and what several CTAs get.
#include <cstdio>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <algorithm>
#include <cuda.h>
#include <cuda_runtime.h>
typedef CUresult (*Tiled)(CUtensorMap*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*, const uint32_t*, int, int, int, int);
typedef CUresult (*Im2col)(CUtensorMap*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const int*, const int*, uint32_t, uint32_t, const uint32_t*, int, int, int, int);
static Tiled tiled; static Im2col im2col;
#define ASM(...) asm volatile(__VA_ARGS__)
__device__ __forceinline__ uint32_t sh(const void* p) { return (uint32_t)__cvta_generic_to_shared(p); }
__device__ __forceinline__ uint64_t raw(uint32_t bar) { uint64_t v; ASM("ld.shared.b64 %0, [%1];" : "=l"(v) : "r"(bar) : "memory"); return v; }
__device__ __forceinline__ bool test(uint32_t bar, uint32_t parity) { uint32_t d; ASM("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(d) : "r"(bar), "r"(parity) : "memory"); return d; }
__device__ __forceinline__ bool try_wait(uint32_t bar, uint32_t parity) { uint32_t d; ASM("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}" : "=r"(d) : "r"(bar), "r"(parity) : "memory"); return d; }

__global__ void fault(const __grid_constant__ CUtensorMap map, const CUtensorMap* far, int kind, uint8_t* global, uint64_t* states) {
    extern __shared__ __align__(1024) uint8_t tile[];
    __shared__ __align__(16) uint64_t barrier[2];
    uint32_t dst = sh(tile), bar = sh(barrier);
    if (threadIdx.x) return;
    ASM("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar) : "memory");
    ASM("fence.mbarrier_init.release.cluster;" ::: "memory");
    uint64_t token; ASM("mbarrier.arrive.expect_tx.shared.b64 %0, [%1], %2;" : "=l"(token) : "r"(bar), "r"(1024) : "memory");
    const CUtensorMap* m = far ? far : &map;
#define L2D(d, x, y) ASM("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4}], [%2];" :: "r"(d), "l"(m), "r"(bar), "r"(x), "r"(y) : "memory")
#define S2D(d, x, y) ASM("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%1, {%2,%3}], [%0];" :: "r"(d), "l"(m), "r"(x), "r"(y) : "memory")
    switch (kind) {
    case 0: L2D(dst, 0, 0); break;
    case 1: L2D(dst + 16, 0, 0); break;
    case 2: L2D(dst + 64, 0, 0); break;
    case 3: L2D(dst + 8, 0, 0); break;
    case 4: L2D(dst + 4, 0, 0); break;
    case 5: bar += 4; L2D(dst, 0, 0); break;
    case 6: L2D(dst + 240 * 1024, 0, 0); break;
    case 7: ASM("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3,%3,%3}], [%2];" :: "r"(dst), "l"(m), "r"(bar), "r"(0) : "memory"); break;
    case 8: ASM("cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3}], [%2];" :: "r"(dst), "l"(m), "r"(bar), "r"(0) : "memory"); break;
    case 9: ASM("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3,%3,%3}], [%2], {%4};" :: "r"(dst), "l"(m), "r"(bar), "r"(0), "h"((short)0) : "memory"); break;
    case 10: m = (const CUtensorMap*)((const char*)m + 64); L2D(dst, 0, 0); break;
    case 11: m = (const CUtensorMap*)((const char*)m + 16); L2D(dst, 0, 0); break;
    case 12: S2D(dst + 16, 0, 0); break;
    case 13: S2D(dst + 8, 0, 0); break;
    case 14: S2D(dst + 240 * 1024, 0, 0); break;
#define B(d, g, n) ASM("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(d), "l"(g), "r"(n), "r"(bar) : "memory")
    case 15: B(dst + 8, global, 1024); break;
    case 16: B(dst, global + 8, 1024); break;
    case 17: B(dst, global, 1000); break;
    case 18: B(dst, global, 8); break;
    case 19: B(dst, (uint8_t*)0x1000, 1024); break;
    case 20: B(dst + 240 * 1024, global, 1024); break;
    case 21: ASM("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(global + 8), "r"(dst), "r"(1024) : "memory"); break;
    case 22: ASM("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(global), "r"(dst + 8), "r"(1024) : "memory"); break;
    case 23: ASM("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"((uint8_t*)0x1000), "r"(dst), "r"(1024) : "memory"); break;
    case 24: S2D(dst, 0, 0); break;
    case 25: ASM("prefetch.tensormap [%0];" :: "l"((const char*)m + 16) : "memory"); break;
    case 26: ASM("cp.async.bulk.prefetch.L2.global [%0], %1;" :: "l"((uint8_t*)0x1000), "r"(1024) : "memory"); break;
    case 27: ASM("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1,%1}];" :: "l"(m), "r"(0) : "memory"); break;
    case 28: ASM("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" :: "l"(global + 8), "r"(dst), "r"(1024) : "memory"); break;
    case 29: B(dst, global, 300 * 1024); break;
    case 30: L2D(dst, 0, 0); break;
    case 31: L2D(dst, 1, 0); break;
    case 32: S2D(dst, 2, 0); break;
    case 33: ASM("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3,%5,%3}], [%2], {%4};" :: "r"(dst), "l"(m), "r"(bar), "r"(0), "h"((short)0), "r"(-1) : "memory"); break;
    case 34: ASM("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3,%5,%3}], [%2], {%4};" :: "r"(dst), "l"(m), "r"(bar), "r"(0), "h"((short)0), "r"(16) : "memory"); break;
    case 35: ASM("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3,%3,%5}], [%2], {%4};" :: "r"(dst), "l"(m), "r"(bar), "r"(0), "h"((short)0), "r"(-1) : "memory"); break;
    case 36: ASM("cp.async.bulk.tensor.3d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%3,%3,%5}], [%2], {%4};" :: "r"(dst), "l"(m), "r"(bar), "r"(0), "h"((short)0), "r"(9) : "memory"); break;
    case 37: L2D(dst, 0, 0); break;
    }
    ASM("cp.async.bulk.commit_group;" ::: "memory"); ASM("cp.async.bulk.wait_group 0;" ::: "memory");
    long long until = clock64() + 100000; while (clock64() < until) {}
    states[0] = raw(sh(barrier));
}

// Latency of one copy, from issue until the barrier turns or the group ends, several times over.
__global__ void latency(const __grid_constant__ CUtensorMap map, int kind, uint32_t bytes, int count, uint8_t* global, uint64_t* times, int y) {
    extern __shared__ __align__(1024) uint8_t tile[];
    __shared__ __align__(8) uint64_t barrier;
    uint32_t dst = sh(tile), bar = sh(&barrier);
    if (threadIdx.x) return;
    ASM("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar) : "memory");
    ASM("fence.mbarrier_init.release.cluster;" ::: "memory");
    uint32_t parity = 0;
    for (int r = 0; r < 6; r++) {
        uint64_t token; ASM("mbarrier.arrive.expect_tx.shared.b64 %0, [%1], %2;" : "=l"(token) : "r"(bar), "r"(kind < 2 ? bytes * count : 0) : "memory");
        long long begin = clock64();
        for (int i = 0; i < count; i++) {
            if (kind == 0) ASM("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4}], [%2];" :: "r"(dst), "l"(&map), "r"(bar), "r"(0), "r"(y * i) : "memory");
            if (kind == 1) ASM("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(dst), "l"(global + (uint64_t)bytes * i), "r"(bytes), "r"(bar) : "memory");
            if (kind == 2) ASM("cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%1, {%2,%3}], [%0];" :: "r"(dst), "l"(&map), "r"(0), "r"(y * i) : "memory");
            if (kind == 3) ASM("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(global + (uint64_t)bytes * i), "r"(dst), "r"(bytes) : "memory");
            if (kind == 4) ASM("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%1, {%2,%3}], [%0];" :: "r"(dst), "l"(&map), "r"(0), "r"(y * i) : "memory");
        }
        long long issued = clock64(), read = issued, end;
        if (kind >= 2) {
            ASM("cp.async.bulk.commit_group;" ::: "memory");
            ASM("cp.async.bulk.wait_group.read 0;" ::: "memory"); read = clock64();
            ASM("cp.async.bulk.wait_group 0;" ::: "memory");
        } else while (!try_wait(bar, parity)) {}
        end = clock64(); parity ^= 1;
        times[r * 3] = issued - begin; times[r * 3 + 1] = read - begin; times[r * 3 + 2] = end - begin;
    }
}

// Every CTA of a cluster of four takes a quarter and gives it to those of a mask.
__global__ void __cluster_dims__(4, 1, 1) multicast(const __grid_constant__ CUtensorMap map, int bulk, const uint8_t* global, uint32_t* out, uint64_t* states, uint32_t masks) {
    __shared__ __align__(1024) uint8_t tile[4096];
    __shared__ __align__(8) uint64_t barrier;
    uint32_t dst = sh(tile), bar = sh(&barrier), rank;
    ASM("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) ((uint32_t*)tile)[i] = 0xabcd0000 + rank * 4096 + i;
    if (threadIdx.x == 0) {
        ASM("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar) : "memory");
        ASM("fence.mbarrier_init.release.cluster;" ::: "memory");
        uint32_t expect = 0; for (int from = 0; from < 4; from++) if (masks >> (4 * from + rank) & 1) expect += 1024;
        uint64_t token; ASM("mbarrier.arrive.expect_tx.shared.b64 %0, [%1], %2;" : "=l"(token) : "r"(bar), "r"(expect) : "memory");
    }
    ASM("fence.proxy.async;" ::: "memory");
    ASM("barrier.cluster.arrive.aligned;" ::: "memory"); ASM("barrier.cluster.wait.aligned;" ::: "memory");
    if (threadIdx.x == 0) {
        uint16_t mask = masks >> (4 * rank) & 15;
        if (bulk) ASM("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;" :: "r"(dst + 1024 * rank), "l"(global + 1024 * rank), "r"(1024), "r"(bar), "h"(mask) : "memory");
        else ASM("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1, {%4,%5}], [%2], %3;" :: "r"(dst + 1024 * rank), "l"(&map), "r"(bar), "h"(mask), "r"(0), "r"(8 * rank) : "memory");
        long long begin = clock64(); while (!test(bar, 0) && clock64() - begin < 1000000) {}
        states[rank] = raw(bar);
    }
    __syncthreads();
    ASM("barrier.cluster.arrive.aligned;" ::: "memory"); ASM("barrier.cluster.wait.aligned;" ::: "memory");
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) out[rank * 1024 + i] = ((uint32_t*)tile)[i];
}

// Copies and reductions from each CTA of a cluster of two to the other, or to itself.
__global__ void __cluster_dims__(2, 1, 1) across(int kind, int self, uint32_t* out, uint64_t* states) {
    __shared__ __align__(1024) uint8_t tile[4096];
    __shared__ __align__(8) uint64_t barrier;
    uint32_t dst = sh(tile), bar = sh(&barrier), rank, to, there, there_bar;
    ASM("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank)); to = self ? rank : rank ^ 1;
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) ((uint32_t*)tile)[i] = (i + 1) * 2654435761u + rank * 0x01234567u;
    ASM("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(dst + 2048), "r"(to));
    ASM("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there_bar) : "r"(bar), "r"(to));
    if (threadIdx.x == 0) {
        ASM("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar) : "memory"); ASM("fence.mbarrier_init.release.cluster;" ::: "memory");
        uint64_t token; ASM("mbarrier.arrive.expect_tx.shared.b64 %0, [%1], %2;" : "=l"(token) : "r"(bar), "r"(1024) : "memory");
    }
    ASM("fence.proxy.async;" ::: "memory");
    ASM("barrier.cluster.arrive.aligned;" ::: "memory"); ASM("barrier.cluster.wait.aligned;" ::: "memory");
    if (threadIdx.x == 0) {
#define A(n, text) if (kind == n) ASM(text " [%0], [%1], %2, [%3];" :: "r"(there), "r"(dst), "r"(1024), "r"(there_bar) : "memory")
#define R(n, t) A(n, "cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes." t)
        A(0, "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes");
        R(1, "add.u32"); R(2, "add.s32"); R(3, "add.u64"); R(4, "min.u32"); R(5, "min.s32"); R(6, "max.u32"); R(7, "max.s32"); R(8, "inc.u32"); R(9, "dec.u32"); R(10, "and.b32"); R(11, "or.b32"); R(12, "xor.b32");
        long long begin = clock64(); while (!test(bar, 0) && clock64() - begin < 1000000) {}
        states[rank] = test(bar, 0);
    }
    __syncthreads();
    ASM("barrier.cluster.arrive.aligned;" ::: "memory"); ASM("barrier.cluster.wait.aligned;" ::: "memory");
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) out[rank * 1024 + i] = ((uint32_t*)tile)[i];
}

__constant__ CUtensorMap constant_map;
// A map made anew on the device, and maps in global and constant memory.
__global__ void replaced(const __grid_constant__ CUtensorMap map, CUtensorMap* far, uint8_t* global, uint32_t* out, uint32_t* words, int kind) {
    __shared__ __align__(1024) uint8_t tile[4096];
    __shared__ __align__(128) CUtensorMap local;
    __shared__ __align__(8) uint64_t barrier;
    uint32_t dst = sh(tile), bar = sh(&barrier);
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) ((uint32_t*)tile)[i] = i;
    if (threadIdx.x < 32) ((uint32_t*)&local)[threadIdx.x] = ((const uint32_t*)&map)[threadIdx.x];
    if (threadIdx.x == 0) { ASM("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar) : "memory"); ASM("fence.mbarrier_init.release.cluster;" ::: "memory"); }
    ASM("fence.proxy.async;" ::: "memory");
    __syncthreads();
    uint32_t at = sh(&local);
    if (threadIdx.x < 32 && kind == 0) {
        if (threadIdx.x == 0) {
            ASM("tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%0], %1;" :: "r"(at), "l"(global + 4096) : "memory");
            ASM("tensormap.replace.tile.rank.shared::cta.b1024.b32 [%0], %1;" :: "r"(at), "r"(2) : "memory");
            ASM("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "r"(at), "r"(16) : "memory");
            ASM("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "r"(at), "r"(5) : "memory");
            ASM("tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [%0], 2, %1;" :: "r"(at), "r"(3) : "memory");
            ASM("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 0, %1;" :: "r"(at), "r"(37) : "memory");
            ASM("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" :: "r"(at), "r"(21) : "memory");
            ASM("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 2, %1;" :: "r"(at), "r"(4) : "memory");
            ASM("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 0, %1;" :: "r"(at), "l"(208ull) : "memory");
            ASM("tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [%0], 1, %1;" :: "r"(at), "l"(8192ull) : "memory");
            ASM("tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [%0], 1, %1;" :: "r"(at), "r"(2) : "memory");
            ASM("tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [%0], 7;" :: "r"(at) : "memory");
            ASM("tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [%0], 0;" :: "r"(at) : "memory");
            ASM("tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [%0], 2;" :: "r"(at) : "memory");
            ASM("tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [%0], 1;" :: "r"(at) : "memory");
        }
        __syncwarp();
        ASM("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" :: "l"(far), "r"(at) : "memory");
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        const CUtensorMap* m = kind == 2 ? &constant_map : far;
        if (kind < 2) ASM("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" :: "l"(far) : "memory");
        ASM("prefetch.tensormap [%0];" :: "l"(m) : "memory");
        uint64_t token; ASM("mbarrier.arrive.expect_tx.shared.b64 %0, [%1], %2;" : "=l"(token) : "r"(bar), "r"(kind == 0 ? 16 * 4 * 3 * 3 : 1024) : "memory");
        if (kind == 0) ASM("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4,%5}], [%2];" :: "r"(dst), "l"(m), "r"(bar), "r"(24), "r"(-2), "r"(2) : "memory");
        else ASM("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {%3,%4}], [%2];" :: "r"(dst), "l"(m), "r"(bar), "r"(8), "r"(2) : "memory");
        long long begin = clock64(); while (!test(bar, 0) && clock64() - begin < 1000000) {}
    }
    __syncthreads();
    for (int i = threadIdx.x; i < 1024; i += blockDim.x) out[i] = ((uint32_t*)tile)[i];
    if (threadIdx.x < 32) words[threadIdx.x] = ((uint32_t*)far)[threadIdx.x];
}

static uint64_t fnv(const void* data, size_t n) { uint64_t h = 0xcbf29ce484222325ull; const uint8_t* p = (const uint8_t*)data; for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001b3ull; return h; }
static uint32_t mix(uint32_t x) { x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16; return x; }

int main(int argc, char** argv) {
    setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
    cudaDriverEntryPointQueryResult q;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void**)&tiled, 12000, cudaEnableDefault, &q);
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", (void**)&im2col, 12000, cudaEnableDefault, &q);
    const uint32_t size = 16 << 20; uint8_t* buffer; uint32_t* out; uint64_t* states; CUtensorMap* far;
    cudaMalloc(&buffer, size); cudaMalloc(&out, 1 << 16); cudaMalloc(&states, 4096); cudaMalloc(&far, 4096);
    std::vector<uint32_t> words(size / 4); for (uint32_t i = 0; i < size / 4; i++) words[i] = mix(i);
    cudaMemcpy(buffer, words.data(), size, cudaMemcpyHostToDevice);
    alignas(64) CUtensorMap map;
    auto make = [&](int type, uint64_t w, uint64_t h, uint64_t pitch, uint32_t bw, uint32_t bh, int sw, uint8_t* at) { uint64_t d[2] = {w, h}, s[1] = {pitch}; uint32_t b[2] = {bw, bh}, e[2] = {1, 1}; int code = tiled(&map, type, 2, at, d, s, b, e, 0, sw, 0, 0); if (code) printf("encode %d\n", code); };
    const char* what = argc > 1 ? argv[1] : "";
    if (!strcmp(what, "fault")) {
        int kind = atoi(argv[2]); make(7, 64, 64, 256, 32, 8, 0, buffer);
        CUtensorMap* given = nullptr;
        if (kind >= 33 && kind <= 37) { uint64_t d[3] = {64, 16, 4}, s[2] = {256, 4096}; uint32_t e[3] = {1, 1, 1}; int z[1] = {0}; im2col(&map, 7, 3, buffer, d, s, z, z, 32, 8, e, 0, 0, 0, 0); }
        if (kind == 9) { uint64_t d[3] = {64, 16, 4}, s[2] = {256, 4096}; uint32_t e[3] = {1, 1, 1}; int z = 0; (void)z; (void)e; }
        if (kind == 24) make(7, 64, 64, 256, 32, 8, 0, (uint8_t*)0x1000);
        if (kind == 27) make(7, 64, 64, 256, 32, 8, 0, (uint8_t*)0x1000);
        if (kind == 30) { given = far; cudaMemset(far, 0, 256); }
        if (kind == 10 || kind == 11) { given = far; cudaMemcpy(far, &map, 128, cudaMemcpyHostToDevice); cudaMemcpy((char*)far + (kind == 10 ? 64 : 16), &map, 128, cudaMemcpyHostToDevice); }
        if (argc > 3) make(7, 64, 64, 256, 32, 8, 0, (uint8_t*)0x1000);
        cudaFuncSetAttribute(fault, cudaFuncAttributeMaxDynamicSharedMemorySize, 32768);
        fault<<<1, 32, 32768>>>(map, given, kind, buffer + 65536, states);
        cudaError_t e = cudaDeviceSynchronize(); uint64_t s = 0; cudaError_t f = cudaMemcpy(&s, states, 8, cudaMemcpyDeviceToHost);
        printf("fault %d%s: %d %s %016llx\n", kind, argc > 3 ? " unmapped" : "", e, cudaGetErrorName(e), f ? 0ull : (unsigned long long)s);
    }
    if (!strcmp(what, "latency")) {
        cudaFuncSetAttribute(latency, cudaFuncAttributeMaxDynamicSharedMemorySize, 131072);
        struct { uint32_t w, h; int sw; } shapes[] = {{4, 1, 0}, {8, 1, 0}, {32, 1, 0}, {32, 2, 0}, {32, 4, 0}, {32, 8, 3}, {32, 16, 3}, {32, 32, 3}, {32, 64, 3}, {32, 128, 3}, {32, 256, 3}, {32, 256, 0}, {64, 64, 0}, {256, 16, 0}, {4, 256, 0}, {8, 256, 1}};
        for (auto& s : shapes) for (int kind = 0; kind < 5; kind++) for (int count : {1, 2, 4, 8, 16}) {
            uint32_t bytes = s.w * s.h * 4; if ((uint64_t)bytes * count > (1 << 20) || bytes > 65536) continue;
            make(7, 1024, 4096, 4096, s.w, s.h, s.sw, buffer);
            latency<<<1, 32, 131072>>>(map, kind, bytes, count, buffer, states, s.h);
            cudaError_t e = cudaDeviceSynchronize(); uint64_t t[18]; cudaMemcpy(t, states, sizeof t, cudaMemcpyDeviceToHost);
            printf("latency kind %d box %ux%u swizzle %d bytes %u count %d: %d", kind, s.w, s.h, s.sw, bytes, count, e);
            for (int r = 0; r < 6; r++) printf(" %llu/%llu/%llu", (unsigned long long)t[3 * r], (unsigned long long)t[3 * r + 1], (unsigned long long)t[3 * r + 2]);
            printf("\n");
        }
    }
    if (!strcmp(what, "multicast")) for (int bulk = 0; bulk < 2; bulk++) for (uint32_t masks : {0xffffu, 0x8421u, 0x1248u, 0x3333u, 0x0f0fu, 0x000eu}) {
        make(7, 32, 64, 128, 32, 8, 3, buffer); cudaMemset(states, 0, 64); cudaMemset(out, 0, 16384);
        multicast<<<4, 128>>>(map, bulk, buffer, out, states, masks);
        cudaError_t e = cudaDeviceSynchronize(); uint64_t s[4]; std::vector<uint32_t> got(4096); cudaMemcpy(s, states, 32, cudaMemcpyDeviceToHost); cudaMemcpy(got.data(), out, 16384, cudaMemcpyDeviceToHost);
        printf("multicast bulk %d masks %04x: %d", bulk, masks, e); for (int r = 0; r < 4; r++) printf(" %016llx %016llx", (unsigned long long)s[r], (unsigned long long)fnv(&got[1024 * r], 4096)); printf("\n");
    }
    if (!strcmp(what, "across")) for (int self = 0; self < 2; self++) for (int kind = 0; kind <= 12; kind++) {
        if (argc > 2 && self != atoi(argv[2])) continue;
        across<<<2, 128>>>(kind, self, out, states);
        cudaError_t e = cudaDeviceSynchronize(); uint64_t s[2] = {0, 0}; std::vector<uint32_t> got(2048); cudaMemcpy(s, states, 16, cudaMemcpyDeviceToHost); cudaMemcpy(got.data(), out, 8192, cudaMemcpyDeviceToHost);
        printf("across self %d kind %d: %d %llu %016llx %llu %016llx\n", self, kind, e, (unsigned long long)s[0], (unsigned long long)fnv(&got[0], 4096), (unsigned long long)s[1], (unsigned long long)fnv(&got[1024], 4096));
        if (e) break;
    }
    if (!strcmp(what, "address")) {
        typedef CUresult (*Replace)(CUtensorMap*, void*); Replace replace; cudaGetDriverEntryPointByVersion("cuTensorMapReplaceAddress", (void**)&replace, 12000, cudaEnableDefault, &q);
        for (int il = 0; il < 3; il++) for (int round = 0; round < 2; round++) for (uint64_t a : {0ull, 8ull, 16ull, 32ull, 48ull, 0x7654321ff0ull, 1ull << 48, 1ull << 56, 1ull << 57, 0xfffffffffffffff0ull}) {
            alignas(64) uint32_t w[48]; memset(w, 0, sizeof w); CUtensorMap* m = (CUtensorMap*)w; uint64_t d[3] = {64, 32, 16}, st[2] = {256, 8192}; uint32_t b[3] = {32, 8, 4}, es[3] = {1, 1, 1};
            int made = tiled(m, 7, 3, buffer, d, st, b, es, il, il == 2, 2, 1); if (round) memset(w, il ? 0xff : 0, sizeof w);
            int code = replace(m, (void*)a); bool set = w[0] == (uint32_t)a && w[1] == (uint32_t)(a >> 32);
            printf("address il %d round %d %llx: made %d code %d set %d\n", il, round, (unsigned long long)a, made, code, set);
        }
        alignas(64) uint32_t w[64]; CUtensorMap* m = (CUtensorMap*)((char*)w + 16); uint64_t d[3] = {64, 32, 16}, st[2] = {256, 8192}; uint32_t b[3] = {32, 8, 4}, es[3] = {1, 1, 1};
        printf("unaligned map: encode %d replace %d null map %d\n", tiled(m, 7, 3, buffer, d, st, b, es, 0, 0, 2, 1), replace(m, buffer), replace(nullptr, buffer));
    }
    if (!strcmp(what, "replaced")) for (int kind = 0; kind < 3; kind++) {
        make(6, 96, 64, 256, 64, 8, 1 * 0, buffer); cudaMemcpy(far, &map, 128, cudaMemcpyHostToDevice); cudaMemcpyToSymbol(constant_map, &map, 128);
        uint32_t* w = (uint32_t*)states;
        replaced<<<1, 128>>>(map, far, buffer, out, w, kind);
        cudaError_t e = cudaDeviceSynchronize(); std::vector<uint32_t> got(1024), mw(32); cudaMemcpy(got.data(), out, 4096, cudaMemcpyDeviceToHost); cudaMemcpy(mw.data(), w, 128, cudaMemcpyDeviceToHost);
        printf("replaced %d: %d %016llx", kind, e, (unsigned long long)fnv(got.data(), 4096)); for (int i = 2; i < 32; i++) printf(" %x", mw[i]); printf("\n");
    }
    return 0;
}
