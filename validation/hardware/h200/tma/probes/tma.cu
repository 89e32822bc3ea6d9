// Copies and reductions of the TMA engine, one case a launch: for each the words of the case, the state of its
// mbarrier and a digest of the memory that it may have changed.
#include <cstdio>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <unistd.h>
#include <cuda.h>
#include <cuda_runtime.h>

typedef CUresult (*Tiled)(CUtensorMap*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*, const uint32_t*, int, int, int, int);
typedef CUresult (*Im2col)(CUtensorMap*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const int*, const int*, uint32_t, uint32_t, const uint32_t*, int, int, int, int);
static Tiled tiled; static Im2col im2col;

enum { LOAD = 0, LOAD_IM2COL = 1, STORE = 2, STORE_IM2COL = 3, REDUCE = 4, REDUCE_IM2COL = 12, BULK_LOAD = 20, BULK_STORE = 21, BULK_SHARED = 22, BULK_REDUCE = 30, BULK_REDUCE_SHARED = 70 };

struct Command { int op; int rank; int c[5]; int off[3]; uint32_t place; uint32_t place2; uint32_t area; uint32_t expect; uint32_t seed; uint32_t delay; };

__host__ __device__ inline uint32_t mix(uint32_t x) { x ^= x >> 16; x *= 0x7feb352du; x ^= x >> 15; x *= 0x846ca68bu; x ^= x >> 16; return x; }

// Words with special floats in both widths.
#define SPECIALS {0u, 0x80000000u, 1u, 0x80000001u, 0x007fffffu, 0x807fffffu, 0x00800000u, 0x00800001u, 0x3f800000u, 0xbf800000u, 0x3f801fffu, 0x3f801000u, 0x3f803000u, 0x7f7fffffu, 0xff7fffffu, 0x7f800000u, 0xff800000u, 0x7fc00000u, 0xffc12345u, 0x7f812345u, 0x3c003c01u, 0x00010001u, 0x80018001u, 0x03ff83ffu, 0x7bff7bffu, 0x7c00fc00u, 0x7e007e01u, 0xfe017d01u, 0x04000401u, 0x33333333u, 0x12345678u, 0x9abcdef0u}
__host__ __device__ inline uint32_t special(uint32_t i) { const uint32_t table[32] = SPECIALS; return table[(i * 7 + i / 32 * 5) % 32]; }
__host__ __device__ inline uint32_t special_global(uint32_t i) { const uint32_t table[32] = SPECIALS; return table[i % 32]; }

#define LOADN(n, cs, ...) asm volatile("cp.async.bulk.tensor." #n "d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {" cs "}], [%2];" :: "r"(dst), "l"(&map), "r"(bar), __VA_ARGS__ : "memory")
#define LOADI(n, cs, os, ...) asm volatile("cp.async.bulk.tensor." #n "d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {" cs "}], [%2], {" os "};" :: "r"(dst), "l"(&map), "r"(bar), __VA_ARGS__ : "memory")
#define STOREN(text, n, mode, cs, ...) asm volatile(text #n "d.global.shared::cta." mode "bulk_group [%1, {" cs "}], [%0];" :: "r"(dst), "l"(&map), __VA_ARGS__ : "memory")
#define REDN(n, op, mode, cs, ...) asm volatile("cp.reduce.async.bulk.tensor." #n "d.global.shared::cta." op mode ".bulk_group [%1, {" cs "}], [%0];" :: "r"(dst), "l"(&map), __VA_ARGS__ : "memory")
#define REDALL(op, mode) switch (c.rank) { \
    case 3: REDN(3, op, mode, "%2,%3,%4", "r"(c.c[0]), "r"(c.c[1]), "r"(c.c[2])); break; \
    case 4: REDN(4, op, mode, "%2,%3,%4,%5", "r"(c.c[0]), "r"(c.c[1]), "r"(c.c[2]), "r"(c.c[3])); break; \
    case 5: REDN(5, op, mode, "%2,%3,%4,%5,%6", "r"(c.c[0]), "r"(c.c[1]), "r"(c.c[2]), "r"(c.c[3]), "r"(c.c[4])); break; }
#define REDTILE(op) switch (c.rank) { \
    case 1: REDN(1, op, ".tile", "%2", "r"(c.c[0])); break; \
    case 2: REDN(2, op, ".tile", "%2,%3", "r"(c.c[0]), "r"(c.c[1])); break; default: REDALL(op, ".tile") }

__device__ __forceinline__ uint64_t raw(uint32_t bar) { uint64_t v; asm volatile("ld.shared.b64 %0, [%1];" : "=l"(v) : "r"(bar) : "memory"); return v; }

// Reductions without a tensor: number, operation, type.
#define BULK_GLOBAL(X) X(0,"add","u32") X(1,"add","s32") X(2,"add","u64") X(3,"min","u32") X(4,"min","s32") X(5,"min","u64") X(6,"min","s64") X(7,"max","u32") X(8,"max","s32") X(9,"max","u64") X(10,"max","s64") X(11,"inc","u32") X(12,"dec","u32") X(13,"and","b32") X(14,"and","b64") X(15,"or","b32") X(16,"or","b64") X(17,"xor","b32") X(18,"xor","b64") X(19,"add","f32") X(20,"add","f64") X(21,"add.noftz","f16") X(22,"add.noftz","bf16") X(23,"min","f16") X(24,"max","f16") X(25,"min","bf16") X(26,"max","bf16")
#define BULK_SHARED_RED(X) X(0,"add","u32") X(1,"add","s32") X(2,"add","u64") X(3,"min","u32") X(4,"min","s32") X(5,"max","u32") X(6,"max","s32") X(7,"inc","u32") X(8,"dec","u32") X(9,"and","b32") X(10,"or","b32") X(11,"xor","b32")

__global__ void run(const __grid_constant__ CUtensorMap map, Command c, uint8_t* global, uint32_t* out, uint64_t* states) {
    extern __shared__ __align__(1024) uint8_t tile[];
    __shared__ __align__(8) uint64_t barrier;
    uint32_t base = (uint32_t)__cvta_generic_to_shared(tile), bar = (uint32_t)__cvta_generic_to_shared(&barrier);
    uint32_t* words = (uint32_t*)tile;
    for (uint32_t i = threadIdx.x; i < c.area / 4; i += blockDim.x) words[i] = c.seed == 0x20000 ? special(i) : mix(i + c.seed);
    if (threadIdx.x == 0) {
        asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(bar) : "memory");
        states[0] = raw(bar);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    asm volatile("fence.proxy.async;" ::: "memory");
    __syncthreads();
    uint32_t dst = base + c.place, dst2 = base + c.place2;
    if (threadIdx.x == 0) {
        bool counted = c.op == LOAD || c.op == LOAD_IM2COL || c.op == BULK_LOAD || c.op == BULK_SHARED || c.op >= BULK_REDUCE_SHARED;
        if (counted) {
            uint64_t token;
            asm volatile("mbarrier.arrive.expect_tx.shared.b64 %0, [%1], %2;" : "=l"(token) : "r"(bar), "r"(c.expect) : "memory");
            states[1] = raw(bar); states[3] = token;
        }
        long long begin = clock64();
        switch (c.op) {
        case LOAD: switch (c.rank) {
            case 1: LOADN(1, "%3", "r"(c.c[0])); break;
            case 2: LOADN(2, "%3,%4", "r"(c.c[0]), "r"(c.c[1])); break;
            case 3: LOADN(3, "%3,%4,%5", "r"(c.c[0]), "r"(c.c[1]), "r"(c.c[2])); break;
            case 4: LOADN(4, "%3,%4,%5,%6", "r"(c.c[0]), "r"(c.c[1]), "r"(c.c[2]), "r"(c.c[3])); break;
            case 5: LOADN(5, "%3,%4,%5,%6,%7", "r"(c.c[0]), "r"(c.c[1]), "r"(c.c[2]), "r"(c.c[3]), "r"(c.c[4])); break;
            } break;
        case LOAD_IM2COL: switch (c.rank) {
            case 3: LOADI(3, "%3,%4,%5", "%6", "r"(c.c[0]), "r"(c.c[1]), "r"(c.c[2]), "h"((short)c.off[0])); break;
            case 4: LOADI(4, "%3,%4,%5,%6", "%7,%8", "r"(c.c[0]), "r"(c.c[1]), "r"(c.c[2]), "r"(c.c[3]), "h"((short)c.off[0]), "h"((short)c.off[1])); break;
            case 5: LOADI(5, "%3,%4,%5,%6,%7", "%8,%9,%10", "r"(c.c[0]), "r"(c.c[1]), "r"(c.c[2]), "r"(c.c[3]), "r"(c.c[4]), "h"((short)c.off[0]), "h"((short)c.off[1]), "h"((short)c.off[2])); break;
            } break;
        case STORE: switch (c.rank) {
            case 1: STOREN("cp.async.bulk.tensor.", 1, "tile.", "%2", "r"(c.c[0])); break;
            case 2: STOREN("cp.async.bulk.tensor.", 2, "tile.", "%2,%3", "r"(c.c[0]), "r"(c.c[1])); break;
            case 3: STOREN("cp.async.bulk.tensor.", 3, "tile.", "%2,%3,%4", "r"(c.c[0]), "r"(c.c[1]), "r"(c.c[2])); break;
            case 4: STOREN("cp.async.bulk.tensor.", 4, "tile.", "%2,%3,%4,%5", "r"(c.c[0]), "r"(c.c[1]), "r"(c.c[2]), "r"(c.c[3])); break;
            case 5: STOREN("cp.async.bulk.tensor.", 5, "tile.", "%2,%3,%4,%5,%6", "r"(c.c[0]), "r"(c.c[1]), "r"(c.c[2]), "r"(c.c[3]), "r"(c.c[4])); break;
            } break;
        case STORE_IM2COL: switch (c.rank) {
            case 3: STOREN("cp.async.bulk.tensor.", 3, "im2col_no_offs.", "%2,%3,%4", "r"(c.c[0]), "r"(c.c[1]), "r"(c.c[2])); break;
            case 4: STOREN("cp.async.bulk.tensor.", 4, "im2col_no_offs.", "%2,%3,%4,%5", "r"(c.c[0]), "r"(c.c[1]), "r"(c.c[2]), "r"(c.c[3])); break;
            case 5: STOREN("cp.async.bulk.tensor.", 5, "im2col_no_offs.", "%2,%3,%4,%5,%6", "r"(c.c[0]), "r"(c.c[1]), "r"(c.c[2]), "r"(c.c[3]), "r"(c.c[4])); break;
            } break;
        case REDUCE + 0: REDTILE("add") break;
        case REDUCE + 1: REDTILE("min") break;
        case REDUCE + 2: REDTILE("max") break;
        case REDUCE + 3: REDTILE("inc") break;
        case REDUCE + 4: REDTILE("dec") break;
        case REDUCE + 5: REDTILE("and") break;
        case REDUCE + 6: REDTILE("or") break;
        case REDUCE + 7: REDTILE("xor") break;
        case REDUCE_IM2COL + 0: REDALL("add", ".im2col_no_offs") break;
        case REDUCE_IM2COL + 7: REDALL("xor", ".im2col_no_offs") break;
        case BULK_LOAD: asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(dst), "l"(global + c.c[0]), "r"(c.c[1]), "r"(bar) : "memory"); break;
        case BULK_STORE: asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" :: "l"(global + c.c[0]), "r"(dst), "r"(c.c[1]) : "memory"); break;
        case BULK_SHARED: asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" :: "r"(dst2), "r"(dst), "r"(c.c[1]), "r"(bar) : "memory"); break;
#define X(n, op, type) case BULK_REDUCE + n: asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." op "." type " [%0], [%1], %2;" :: "l"(global + c.c[0]), "r"(dst), "r"(c.c[1]) : "memory"); break;
        BULK_GLOBAL(X)
#undef X
#define X(n, op, type) case BULK_REDUCE_SHARED + n: asm volatile("cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes." op "." type " [%0], [%1], %2, [%3];" :: "r"(dst2), "r"(dst), "r"(c.c[1]), "r"(bar) : "memory"); break;
        BULK_SHARED_RED(X)
#undef X
        }
        uint32_t done = 0;
        if (counted) {
            while (!done && clock64() - begin < 200000)
                asm volatile("{.reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}" : "=r"(done) : "r"(bar) : "memory");
        } else {
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
            done = 1;
        }
        long long waited = clock64() - begin;
        long long until = clock64() + c.delay;
        while (clock64() < until) {}
        states[2] = raw(bar); states[4] = done; states[5] = waited;
    }
    __syncthreads();
    asm volatile("fence.proxy.async;" ::: "memory");
    for (uint32_t i = threadIdx.x; i < c.area / 4; i += blockDim.x) out[i] = words[i];
}

static const int sizes[16] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 1, 1, 1};
struct Case {
    int op = 0, type = 7, rank = 2; uint64_t address = 0;
    uint64_t dim[5] = {64, 32, 16, 8, 4}; uint64_t stride[4] = {256, 8192, 131072, 1048576};
    uint32_t box[5] = {32, 8, 4, 2, 2}; uint32_t step[5] = {1, 1, 1, 1, 1};
    int lower[3] = {0, 0, 0}, upper[3] = {0, 0, 0}; uint32_t channels = 8, pixels = 16;
    int interleave = 0, swizzle = 0, fill = 0;
    int c[5] = {0, 0, 0, 0, 0}, off[3] = {0, 0, 0}; uint32_t place = 0, place2 = 0;
    bool im2col() const { return op == LOAD_IM2COL || op == STORE_IM2COL || (op >= REDUCE_IM2COL && op < BULK_LOAD); }
    bool special_data = false;
    bool tensor() const { return op < BULK_LOAD; }
    uint32_t bytes() const {
        if (!tensor()) return c[1];
        uint32_t n = sizes[type];
        if (im2col() && interleave) { int unit = 16 * interleave / sizes[type]; return 16 * interleave * ((channels + unit - 1) / unit) * pixels; }
        if (im2col()) return n * channels * pixels;
        if (interleave) { int unit = 16 * interleave / sizes[type]; n = 16 * interleave; for (int i = 0; i < rank; i++) n *= i == rank - 2 ? (box[i] + unit - 1) / unit : (box[i] + step[i] - 1) / step[i]; return n; }
        for (int i = 0; i < rank; i++) n *= i == 0 ? box[0] : (box[i] + step[i] - 1) / step[i];
        return n;
    }
};

static const uint32_t BUFFER = 1 << 19, SLACK = 32 << 20;
static uint8_t *allocation, *buffer; static uint32_t* out; static uint64_t* states;
static std::vector<uint32_t> initial, after, shared_words;
static FILE* dump; static size_t dumped;
static uint32_t delay = 2000;

static uint64_t fnv(const void* data, size_t n) { uint64_t h = 0xcbf29ce484222325ull; const uint8_t* p = (const uint8_t*)data; for (size_t i = 0; i < n; i++) h = (h ^ p[i]) * 0x100000001b3ull; return h; }

static int number = 0, start = 0;
static bool one(const Case& k, bool keep) {
    int own = number++;
    if (own < start) return true;
    alignas(64) CUtensorMap map; memset(&map, 0, sizeof map);
    printf("%d", k.op);
    if (k.tensor()) {
        int code;
        if (k.im2col()) code = im2col(&map, k.type, k.rank, buffer + k.address, k.dim, k.stride, k.lower, k.upper, k.channels, k.pixels, k.step, k.interleave, k.swizzle, 0, k.fill);
        else code = tiled(&map, k.type, k.rank, buffer + k.address, k.dim, k.stride, k.box, k.step, k.interleave, k.swizzle, 0, k.fill);
        printf(" %d %d %llx ", k.type, k.rank, (unsigned long long)k.address);
        for (int i = 0; i < k.rank; i++) printf("%s%llu", i ? "," : "", (unsigned long long)k.dim[i]);
        printf(" "); for (int i = 0; i + 1 < k.rank; i++) printf("%s%llu", i ? "," : "", (unsigned long long)k.stride[i]); if (k.rank == 1) printf("-");
        if (k.im2col()) { printf(" "); for (int i = 0; i + 2 < k.rank; i++) printf("%s%d", i ? "," : "", k.lower[i]); printf(" "); for (int i = 0; i + 2 < k.rank; i++) printf("%s%d", i ? "," : "", k.upper[i]); printf(" %u %u", k.channels, k.pixels); }
        else { printf(" "); for (int i = 0; i < k.rank; i++) printf("%s%u", i ? "," : "", k.box[i]); }
        printf(" "); for (int i = 0; i < k.rank; i++) printf("%s%u", i ? "," : "", k.step[i]);
        printf(" %d %d %d ", k.interleave, k.swizzle, k.fill);
        for (int i = 0; i < k.rank; i++) printf("%s%d", i ? "," : "", k.c[i]);
        if (k.op == LOAD_IM2COL) { printf(" "); for (int i = 0; i + 2 < k.rank; i++) printf("%s%d", i ? "," : "", k.off[i]); }
        if (code) { printf(" = encode %d\n", code); return true; }
    } else printf(" %x %d", k.c[0], k.c[1]);
    printf(" %u", k.place); if (!k.tensor()) printf(" %u", k.place2);
    Command c; c.op = k.op; c.rank = k.rank; memcpy(c.c, k.c, sizeof c.c); memcpy(c.off, k.off, sizeof c.off);
    c.place = k.place; c.place2 = k.place2; c.expect = k.bytes(); c.seed = k.special_data ? 0x20000 : 0x10000; c.delay = delay;
    c.area = ((k.place > k.place2 ? k.place : k.place2) + k.bytes() * (k.swizzle && k.tensor() ? 8 : 1) + 1024 + 255) / 256 * 256; if (k.interleave) c.area = 24576; if (c.area > 99840) c.area = 99840;
    cudaMemset(states, 0, 64);
    run<<<1, 128, c.area>>>(map, c, buffer, out, states);
    cudaError_t e = cudaDeviceSynchronize();
    if (e) { printf(" = fault %d %s\n", e, cudaGetErrorName(e)); fflush(stdout); if (dump) fclose(dump); FILE* next = fopen(getenv("NEXT") ? getenv("NEXT") : "next", "w"); fprintf(next, "%d\n", own + 1); fclose(next); _exit(3); }
    uint64_t s[8]; cudaMemcpy(s, states, 64, cudaMemcpyDeviceToHost);
    bool writes = (k.op >= STORE && k.op <= BULK_LOAD - 1) || k.op == BULK_STORE || (k.op >= BULK_REDUCE && k.op < BULK_REDUCE_SHARED);
    shared_words.resize(c.area / 4); cudaMemcpy(shared_words.data(), out, c.area, cudaMemcpyDeviceToHost);
    uint64_t digest;
    if (writes) { cudaMemcpy(after.data(), buffer, BUFFER, cudaMemcpyDeviceToHost); digest = fnv(after.data(), BUFFER); }
    else digest = fnv(shared_words.data(), c.area);
    if (getenv("VERBOSE")) fprintf(stderr, "%llx %llx %llx token %llx waited %llu\n", (unsigned long long)s[0], (unsigned long long)s[1], (unsigned long long)s[2], (unsigned long long)s[3], (unsigned long long)s[5]);
    printf("%s = %llu %016llx", k.special_data ? " s" : "", (unsigned long long)s[4], (unsigned long long)digest);
    if (keep && dump && dumped < (7u << 20)) {
        printf(" @%zu", dumped);
        if (writes) {
            uint32_t n = 0; for (uint32_t i = 0; i < BUFFER / 4; i++) n += after[i] != initial[i];
            fwrite(&n, 4, 1, dump); dumped += 4;
            for (uint32_t i = 0; i < BUFFER / 4; i++) if (after[i] != initial[i]) { fwrite(&i, 4, 1, dump); fwrite(&after[i], 4, 1, dump); dumped += 8; }
        } else { fwrite(&c.area, 4, 1, dump); fwrite(shared_words.data(), 1, c.area, dump); dumped += 4 + c.area; }
    }
    printf("\n");
    if (writes) cudaMemcpy(buffer, initial.data(), BUFFER, cudaMemcpyHostToDevice);
    return true;
}

static uint64_t rstate;
static uint64_t rnd() { uint64_t z = (rstate += 0x9E3779B97F4A7C15ull); z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull; z = (z ^ (z >> 27)) * 0x94D049BB133111EBull; return z ^ (z >> 31); }
static uint64_t below(uint64_t n) { return rnd() % n; }
static bool chance(int n) { return below(n) == 0; }

static void strides(Case& k, int pad = 1) { uint64_t p = sizes[k.type]; for (int i = 0; i < 4; i++) { p *= k.dim[i]; p = (p + 31) / 32 * 32 + 32 * pad; k.stride[i] = p; } }

static void tiled_cases(int op, bool keep) {
    for (int rank = 1; rank <= 5; rank++) for (int type = 0; type < 13; type++) {
        if (op >= STORE && type != 0 && type != 6 && type != 7 && type != 12 && op < REDUCE) continue;
        if (op >= REDUCE && type != 2 && type != 4 && type != 6 && type != 7 && type != 9) continue;
        Case k; k.op = op; k.type = type; k.rank = rank;
        const uint64_t d[5] = {40, 9, 7, 5, 3}; memcpy(k.dim, d, sizeof d); if (rank == 1) k.dim[0] = 200; strides(k); k.address = 4096;
        k.box[0] = 16; k.box[1] = 4; k.box[2] = 3; k.box[3] = 2; k.box[4] = 2; if (rank == 1) k.box[0] = 64;
        one(k, keep);
        for (int i = 0; i < rank; i++) { int u = i == 0 ? 16 / sizes[type] : 1; Case q = k; q.c[i] = 2 * u; one(q, keep && type % 5 == 2); if (op < STORE) { q.c[i] = -u; one(q, keep && type % 5 == 2); } q.c[i] = ((int)k.dim[i] - 2) / u * u; q.fill = type >= 6; one(q, keep); q.c[i] = 1024; one(q, false); }
        Case q = k; for (int i = 0; i < rank; i++) q.c[i] = i & 1 ? (op < STORE ? -2 : 1) : i == 0 ? (int)k.dim[i] / (16 / sizes[type]) * (16 / sizes[type]) - 16 / sizes[type] : op >= STORE && k.dim[i] < 5 ? 0 : (int)k.dim[i] - 5; one(q, false); q.fill = type >= 6; one(q, keep);
    }
    // Special values.
    for (int type = 6; type < 13; type++) { Case k; k.op = op; k.type = type; k.rank = 2; k.dim[0] = 64; k.dim[1] = 16; k.stride[0] = 512; k.address = BUFFER - 16384; k.box[0] = 32; k.box[1] = 16; k.special_data = true; if (op < REDUCE || type == 6 || type == 7 || type == 9 || type == 10) one(k, true); }
    // Swizzles, and where the tile begins.
    for (int sw = 0; sw < 4; sw++) for (int inner = 16; inner <= (16 << sw) && inner <= 128; inner *= 2) for (uint32_t place : {0u, 128u, 256u, 384u, 512u, 640u, 896u, 1024u}) {
        Case k; k.op = op; k.type = 2; k.rank = 3; k.dim[0] = 64; k.dim[1] = 20; k.dim[2] = 6; strides(k); k.swizzle = sw; k.box[0] = inner / 4; k.box[1] = 10; k.box[2] = 3; k.c[0] = 4; k.c[1] = 3; k.place = place; one(k, keep && (place == 0 || place == 384)); }
    for (int sw = 0; sw < 4; sw++) for (int inner = 48; inner <= (16 << sw) && inner < 128; inner += 16) { Case k; k.op = op; k.type = 2; k.rank = 2; strides(k); k.swizzle = sw; k.box[0] = inner / 4; k.box[1] = 11; k.c[0] = 4; k.c[1] = 3; one(k, keep); }
    // Steps.
    for (int rank = 2; rank <= 5; rank++) for (int i = 0; i < rank; i++) for (uint32_t s : {2u, 3u, 5u, 8u}) { Case k; k.op = op; k.type = 6; k.rank = rank; const uint64_t d[5] = {40, 19, 7, 6, 5}; memcpy(k.dim, d, sizeof d); strides(k); k.box[0] = 16; k.box[1] = 9; k.box[2] = 4; k.box[3] = 3; k.box[4] = 2; k.step[i] = s; k.c[0] = 8; k.c[i] += i ? 1 : 0; one(k, keep && s != 5); k.c[i] = i ? -3 : -8; if (op >= STORE) k.c[i] = 0; k.fill = 1; one(k, false); }
    // Random.
    rstate = 77 + op;
    for (int n = 0; n < 300; n++) {
        Case k; k.op = op; k.rank = 1 + below(5); k.type = below(13); if (op >= REDUCE) { const int some[6] = {2, 3, 4, 6, 7, 9}; k.type = some[k.type % 6]; }
        uint64_t total = 0;
        do { total = sizes[k.type]; for (int i = 0; i < 5; i++) { k.dim[i] = 1 + below(i == 0 ? 100 : 14); } strides(k, below(3)); total = k.rank == 1 ? 1000 : k.stride[k.rank - 2] * k.dim[k.rank - 1]; } while (total > 300000);
        k.address = 16 * below(1000); k.swizzle = below(4);
        uint32_t bytes;
        do { int inner = (k.swizzle ? 16 << below(k.swizzle + 1) : 16 * (1 + below(12))); if (inner > 128 && k.swizzle) inner = 128; k.box[0] = inner / sizes[k.type]; if (k.box[0] > 256) k.box[0] = 256; for (int i = 1; i < 5; i++) { k.box[i] = 1 + below(chance(3) ? 20 : 6); k.step[i] = chance(4) ? 1 + below(8) : 1; } bytes = k.bytes(); } while (bytes > (k.swizzle ? 10000 : 30000));
        for (int i = 0; i < k.rank; i++) { k.c[i] = (int)below(k.dim[i] + 4) - 2 - (chance(3) ? (int)below(k.box[i]) : 0); if (op >= STORE && k.c[i] < 0) k.c[i] = 0; if (i == 0) { int u = 16 / sizes[k.type]; k.c[i] = (k.c[i] / u) * u; } }
        k.fill = k.type >= 6 && chance(2); k.place = 128 * below(9);
        one(k, false);
    }
}

static void interleaved_cases(int op) {
    for (int il = 1; il <= 2; il++) for (int rank = 3; rank <= 5; rank++) for (int type : {6, 7, 0, 8}) for (int sw = 0; sw < 4; sw++) for (int shape = 0; shape < 8; shape++) {
        if (type != 6 && (shape > 4 || sw > 1 || rank == 5)) continue;
        if (il == 2 && sw != 1 && shape > 2) continue;
        Case k; k.op = op; k.type = type; k.rank = rank; k.interleave = il; k.swizzle = sw; int unit = 16 * il / sizes[type];
        // Width first, then height and depth, slices of channels last but one, images last.
        const uint64_t d[5] = {11, 6, 5, 4, 3}; memcpy(k.dim, d, sizeof d); k.dim[rank - 2] = 3 * unit; k.dim[rank - 1] = 3;
        k.stride[0] = 11 * 32 + 32; k.stride[1] = k.stride[0] * 7; k.stride[2] = k.stride[1] * 6; k.stride[3] = k.stride[2] * 5;
        for (int i = 0; i < 5; i++) k.box[i] = 2; k.box[0] = 16; if (type == 8) k.box[0] = 8; k.box[rank - 2] = unit; k.box[rank - 1] = 2;
        if (shape == 1) k.box[rank - 2] = 2 * unit; if (shape == 2) { k.box[rank - 2] = unit + unit / 2; k.c[0] = 1; }
        if (shape == 3) { k.c[rank - 2] = 1; k.c[rank - 1] = 1; } if (shape == 4) { k.box[rank - 2] = 2 * unit; k.c[rank - 2] = 2; }
        if (shape == 5) { k.step[0] = 2; k.step[1] = rank > 3 ? 2 : 1; k.c[0] = op == LOAD ? -2 : 2; } if (shape == 6) { k.box[rank - 2] = 3 * unit; k.step[rank - 2] = 2; } if (shape == 7) { k.c[rank - 1] = 2; k.c[1] += 1; k.fill = op == LOAD; k.box[rank - 2] = 1; }
        one(k, true); }
    if (op == LOAD) for (int il = 1; il <= 2; il++) for (int rank = 3; rank <= 5; rank++) for (int variant = 0; variant < 8; variant++) {
        Case k; k.op = LOAD_IM2COL; k.type = 6; k.rank = rank; k.interleave = il; k.swizzle = il == 2 ? 1 : variant % 4; int unit = 8 * il;
        const uint64_t d[5] = {6, 5, 4, 4, 3}; memcpy(k.dim, d, sizeof d); k.dim[rank - 2] = 3 * unit; k.dim[rank - 1] = 3; k.stride[0] = 6 * 32 + 32; k.stride[1] = k.stride[0] * 8; k.stride[2] = k.stride[1] * 6; k.stride[3] = k.stride[2] * 5;
        k.channels = variant == 1 ? 2 * unit : unit; k.pixels = 20; if (variant >= 2) { k.lower[0] = -1; k.upper[0] = -1; k.c[0] = -1; k.off[0] = 1; } if (variant == 3) k.c[rank - 2] = 1; if (variant == 4) k.c[rank - 1] = 1; if (variant == 5) k.step[0] = 2; if (variant == 6) { k.channels = 2 * unit; k.off[0] = 2; } if (variant == 7) k.pixels = 40;
        one(k, true); }
}

static void im2col_cases(int op, bool keep) {
    for (int rank = 3; rank <= 5; rank++) for (int variant = 0; variant < 40; variant++) {
        Case k; k.op = op; k.type = 6; k.rank = rank; rstate = 1000 * rank + variant;
        const uint64_t d[5] = {16, 6, 5, 4, 3}; memcpy(k.dim, d, sizeof d); if (rank < 5) k.dim[rank - 1] = 3; strides(k); k.channels = 8; k.pixels = 20;
        if (variant >= 1 && variant <= 3) k.c[variant] = 1;
        if (variant == 4) k.c[0] = 8;
        if (variant >= 5) for (int i = 0; i + 2 < rank; i++) { k.lower[i] = -(int)below(3); k.upper[i] = -(int)below(3); k.c[i + 1] = k.lower[i]; }
        if (variant >= 8) for (int i = 0; i + 2 < rank; i++) { k.off[i] = below(3); k.c[i + 1] = k.lower[i] + below((int)k.dim[i + 1] + k.upper[i] - k.lower[i]); }
        if (variant >= 14) k.c[rank - 1] = (int)below(4) - 1;
        if (variant >= 18) { k.fill = below(2); k.swizzle = below(4); k.channels = 8 << below(k.swizzle + 1); if (k.channels > 64) k.channels = 64; k.pixels = 1 + below(60); k.dim[0] = 8 + below(60); strides(k); k.place = 128 * below(9); }
        if (variant >= 26) for (int i = 1; i < 5; i++) k.step[i] = 1 + below(3);
        if (variant >= 32) { k.c[0] = 8 * ((int)below(4) - 1); for (int i = 0; i + 2 < rank; i++) { k.lower[i] = (int)below(4) - 3; k.upper[i] = (int)below(3) - 2; k.c[i + 1] = k.lower[i] + below((int)k.dim[i + 1] + k.upper[i] - k.lower[i]); } }
        if (op != LOAD_IM2COL) { for (int i = 0; i < 3; i++) { k.lower[i] = k.upper[i] = k.off[i] = 0; if (k.c[i + 1] < 0) k.c[i + 1] = 0; } for (int i = 0; i < rank; i++) { if (k.c[i] < 0) k.c[i] = 0; } }
        one(k, keep);
    }
}

static void bulk_cases() {
    for (int op : {(int)BULK_LOAD, (int)BULK_STORE}) for (int n : {0, 16, 32, 48, 128, 1024, 4096, 16000}) for (int at : {0, 16, 48, 112}) { Case k; k.op = op; k.c[0] = 8192 + at; k.c[1] = n; k.place = 16 * (at / 16 % 3); k.place2 = 20480 + at; one(k, true); }
    for (int t = 0; t < 27; t++) for (int n : {16, 48, 4096, -4096}) { Case k; k.op = BULK_REDUCE + t; k.c[0] = 8192 + 16; k.c[1] = abs(n); k.place = 32; if (n < 0) { k.special_data = true; k.c[0] = BUFFER - 16384; } one(k, n == -4096); }
    return;
    for (int n : {16, 48, 4096}) { Case k; k.op = BULK_SHARED; k.c[1] = n; k.place = 32; k.place2 = 8192 + 16; one(k, n <= 48); }
    for (int t = 0; t < 12; t++) for (int n : {16, 48, 4096}) { Case k; k.op = BULK_REDUCE_SHARED + t; k.c[1] = n; k.place = 32; k.place2 = 8192 + 16; one(k, n <= 48); }
}

static void setup() {
    cudaDriverEntryPointQueryResult q;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void**)&tiled, 12000, cudaEnableDefault, &q);
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", (void**)&im2col, 12000, cudaEnableDefault, &q);
    cudaMalloc(&allocation, BUFFER + 2 * SLACK); cudaMemset(allocation, 0, BUFFER + 2 * SLACK); buffer = allocation + SLACK;
    cudaMalloc(&out, 1 << 18); cudaMalloc(&states, 64);
    initial.resize(BUFFER / 4); after.resize(BUFFER / 4);
    for (uint32_t i = 0; i < BUFFER / 4; i++) initial[i] = i >= BUFFER / 4 - 4096 ? special_global(i) : mix(i);
    cudaMemcpy(buffer, initial.data(), BUFFER, cudaMemcpyHostToDevice);
    cudaFuncSetAttribute(run, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000);
}

// Reductions of tensors: what should be allowed first, for what is refused ends the process.
static void reductions() {
    for (int pass = 0; pass < 2; pass++) for (int op = 0; op < 8; op++) for (int type = 0; type < 13; type++) {
        bool integer = type >= 2 && type <= 5, small = type == 6 || type == 9;
        bool allowed = op >= 5 && type == 5 ? false : op == 0 ? (integer && type != 5) || small || type == 7 || type == 10 : op <= 2 ? integer || small : op <= 4 ? type == 2 : type >= 2 && type <= 5;
        if (allowed != (pass == 0)) continue;
        if (pass == 1 && type < 3 && op > 0) continue; if (pass == 1 && op == 0 && type < 8) continue;
        if (pass == 1 && type > 2 && !(op == 0) && !(op == 1 && (type == 7 || type == 8)) && !(op == 3 && (type == 3 || type == 4)) && !(op == 5 && (type == 6 || type == 7))) continue;
        for (int what = 0; what < (pass ? 1 : 3); what++) { Case k; k.op = REDUCE + op; k.type = type; k.rank = 2; k.address = 4096; const uint64_t d[5] = {40, 9, 7, 5, 3}; memcpy(k.dim, d, sizeof d); strides(k); k.box[0] = 16; k.box[1] = 6; if (what == 1) { k.c[0] = 32; k.c[1] = 5; } if (what == 2) { k.special_data = true; k.dim[0] = 128 / sizes[type]; k.dim[1] = 32; k.stride[0] = 128; k.address = BUFFER - 16384; k.box[0] = 128 / sizes[type]; k.box[1] = 32; } one(k, what == 2); }
    }
}

int main(int argc, char** argv) {
    setvbuf(stdout, nullptr, _IOLBF, BUFSIZ);
    if (getenv("DELAY")) delay = atoi(getenv("DELAY"));
    setup();
    const char* what = argc > 1 ? argv[1] : "all";
    if (getenv("DUMP")) { dump = fopen(getenv("DUMP"), "ab"); dumped = ftell(dump); }
    if (getenv("START")) start = atoi(getenv("START"));
    if (!strcmp(what, "load")) tiled_cases(LOAD, true);
    if (!strcmp(what, "interleaved")) interleaved_cases(LOAD);
    if (!strcmp(what, "interleaved_store")) interleaved_cases(STORE);
    if (!strcmp(what, "store")) tiled_cases(STORE, true);
    if (!strcmp(what, "im2col")) im2col_cases(LOAD_IM2COL, true);
    if (!strcmp(what, "im2col_store")) im2col_cases(STORE_IM2COL, true);
    if (!strcmp(what, "add")) tiled_cases(REDUCE, false);
    if (!strcmp(what, "im2col_add")) { im2col_cases(REDUCE_IM2COL, false); }
    if (!strcmp(what, "bulk")) bulk_cases();
    if (!strcmp(what, "reduce")) reductions();
    if (dump) fclose(dump);
    return 0;
}
