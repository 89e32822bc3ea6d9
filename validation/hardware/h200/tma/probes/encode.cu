// Tensor maps over a grid of parameters: for each the answer of the driver and the words that it wrote.
#include <cstdio>
#include <cstdint>
#include <cstring>
#include <vector>
#include <string>
#include <cuda.h>
#include <cuda_runtime.h>

struct Map { alignas(64) uint32_t w[32]; };
typedef CUresult (*Tiled)(CUtensorMap*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const uint32_t*, const uint32_t*, int, int, int, int);
typedef CUresult (*Im2col)(CUtensorMap*, int, uint32_t, void*, const uint64_t*, const uint64_t*, const int*, const int*, uint32_t, uint32_t, const uint32_t*, int, int, int, int);
typedef CUresult (*Wide)(CUtensorMap*, int, uint32_t, void*, const uint64_t*, const uint64_t*, int, int, uint32_t, uint32_t, const uint32_t*, int, int, int, int, int);
typedef CUresult (*Replace)(CUtensorMap*, void*);
static Tiled tiled; static Im2col im2col; static Wide wide; static Replace replace;

struct P {
    int kind = 0;  // 0 tiled, 1 im2col, 2 im2col wide
    int type = 7; uint32_t rank = 2; uint64_t address = 0x7f0000000000ull;
    uint64_t dim[5] = {64, 32, 16, 8, 4}; uint64_t stride[4] = {256, 8192, 131072, 1048576};
    uint32_t box[5] = {32, 8, 4, 2, 2}; uint32_t step[5] = {1, 1, 1, 1, 1};
    int lower[3] = {0, 0, 0}, upper[3] = {0, 0, 0}; uint32_t channels = 32, pixels = 64;
    int interleave = 0, swizzle = 0, promotion = 0, fill = 0, mode = 0;
};

static void line(const P& p) {
    Map map; memset(&map, 0xee, sizeof map);
    CUtensorMap* out = (CUtensorMap*)&map;
    int code;
    if (p.kind == 0) code = tiled(out, p.type, p.rank, (void*)p.address, p.dim, p.stride, p.box, p.step, p.interleave, p.swizzle, p.promotion, p.fill);
    else if (p.kind == 1) code = im2col(out, p.type, p.rank, (void*)p.address, p.dim, p.stride, p.lower, p.upper, p.channels, p.pixels, p.step, p.interleave, p.swizzle, p.promotion, p.fill);
    else code = wide ? wide(out, p.type, p.rank, (void*)p.address, p.dim, p.stride, p.lower[0], p.upper[0], p.channels, p.pixels, p.step, p.interleave, p.mode, p.swizzle, p.promotion, p.fill) : -1;
    printf("%d %d %u %llx", p.kind, p.type, p.rank, (unsigned long long)p.address);
    printf(" "); for (int i = 0; i < 5; i++) printf("%s%llx", i ? "," : "", (unsigned long long)p.dim[i]);
    printf(" "); for (int i = 0; i < 4; i++) printf("%s%llx", i ? "," : "", (unsigned long long)p.stride[i]);
    if (p.kind == 0) { printf(" "); for (int i = 0; i < 5; i++) printf("%s%u", i ? "," : "", p.box[i]); }
    else { printf(" %d,%d,%d %d,%d,%d %u %u", p.lower[0], p.lower[1], p.lower[2], p.upper[0], p.upper[1], p.upper[2], p.channels, p.pixels); }
    printf(" "); for (int i = 0; i < 5; i++) printf("%s%u", i ? "," : "", p.step[i]);
    printf(" %d %d %d %d", p.interleave, p.swizzle, p.promotion, p.fill);
    if (p.kind == 2) printf(" %d", p.mode);
    printf(" = %d", code);
    bool touched = false; for (int i = 0; i < 32; i++) touched |= map.w[i] != 0xeeeeeeeeu;
    if (touched) {
        int last = 31; while (last > 0 && map.w[last] == 0) last--;
        for (int i = 0; i <= last; i++) printf(" %x", map.w[i]);
    }
    printf("\n");
}

static uint64_t state;
static uint64_t rnd() { uint64_t z = (state += 0x9E3779B97F4A7C15ull); z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull; z = (z ^ (z >> 27)) * 0x94D049BB133111EBull; return z ^ (z >> 31); }
static uint64_t below(uint64_t n) { return rnd() % n; }
static bool chance(int n) { return below(n) == 0; }

static void grid(int kind) {
    P base; base.kind = kind;
    if (kind) { base.rank = 4; base.channels = 32; if (kind == 2) { base.swizzle = 3; } }
    line(base);
    for (int t = -1; t < 20; t++) { P p = base; p.type = t; line(p); p.fill = 1; line(p); }
    for (int r = 0; r < 8; r++) { P p = base; p.rank = r; line(p);
        for (int il = 1; il < 3; il++) for (int sw = 0; sw < 4; sw++) { P q = p; q.interleave = il; q.swizzle = sw; line(q); } }
    const uint64_t addresses[] = {0, 8, 16, 32, 48, 0x1234567890, 0x7fffffffffffull, 0x7ffffffffff0ull, 0xfffffffffffffff0ull, 0x1000000000000000ull, 0x8000000000000000ull, 1ull << 47, 1ull << 48, 1ull << 49, 1ull << 56, 1ull << 57};
    for (uint64_t a : addresses) { P p = base; p.address = a; line(p); p.rank = 4; p.interleave = 2; p.swizzle = 1; line(p); p.interleave = 1; line(p); }
    for (int r = 1; r <= 5; r++) for (int i = 0; i < 5; i++) {
        for (uint64_t d : {0ull, 1ull, 2ull, 3ull, 7ull, 1ull << 31, (1ull << 32) - 1, 1ull << 32, (1ull << 32) + 1, 1ull << 40}) { P p = base; p.rank = r; p.dim[i] = d; line(p); }
        if (i < 4) for (uint64_t s : {0ull, 8ull, 16ull, 32ull, 48ull, 100ull, 128ull, 240ull, 1ull << 20, 1ull << 31, 1ull << 32, 1ull << 35, 1ull << 36, 1ull << 39, (1ull << 40) - 16, 1ull << 40, 1ull << 41, 1ull << 63}) { P p = base; p.rank = r; p.stride[i] = s; line(p); if (r >= 3) { p.interleave = 1; line(p); p.interleave = 2; p.swizzle = 1; line(p); } }
        for (uint32_t s : {0u, 1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 9u, 16u, 0x80000000u}) { P p = base; p.rank = r; p.step[i] = s; line(p); if (r >= 3) { p.interleave = 1; line(p); } }
        if (kind == 0) for (uint32_t b : {0u, 1u, 2u, 3u, 4u, 8u, 12u, 16u, 64u, 128u, 255u, 256u, 257u, 512u, 0x80000000u}) { P p = base; p.rank = r; p.box[i] = b; line(p); }
    }
    for (int i = -1; i < 5; i++) { P p = base; p.interleave = i; line(p); p.rank = 3; line(p); p.rank = 5; line(p); }
    for (int i = -1; i < 10; i++) { P p = base; p.swizzle = i; line(p); p.box[0] = 8; p.channels = 8; line(p); }
    for (int i = -1; i < 6; i++) { P p = base; p.promotion = i; line(p); p = base; p.fill = i; line(p); }
    // Inner box against swizzle, type by type.
    for (int t = 0; t < 16; t++) for (int sw = 0; sw < 7; sw++) for (uint32_t b : {1u, 2u, 4u, 8u, 16u, 32u, 64u, 128u, 256u}) for (int il = 0; il < 3; il++) {
        P p = base; p.type = t; p.swizzle = sw; p.box[0] = b; p.channels = b; p.interleave = il; if (il) p.rank = 4; line(p); }
    // Sizes that shared memory cannot hold.
    if (kind == 0) for (uint32_t a : {64u, 128u, 256u}) for (uint32_t b : {64u, 128u, 200u, 256u}) for (uint32_t c : {1u, 2u, 4u, 8u, 16u}) { P p = base; p.rank = 3; p.dim[0] = 1024; p.stride[0] = 4096; p.stride[1] = 1 << 24; p.box[0] = a; p.box[1] = b; p.box[2] = c; line(p); p.type = 0; line(p); }
    if (kind) {
        for (uint32_t r = 3; r <= 5; r++) for (int i = 0; i < 3; i++) for (int v : {-40000, -32769, -32768, -1000, -129, -128, -100, -17, -16, -15, -5, -1, 1, 2, 5, 14, 15, 16, 17, 100, 127, 128, 129, 1000, 32767, 32768, 40000}) { P p = base; p.rank = r; p.lower[i] = v; line(p); p = base; p.rank = r; p.upper[i] = v; line(p); p.lower[i] = v; line(p); }
        for (uint32_t c : {0u, 1u, 2u, 3u, 4u, 5u, 8u, 12u, 16u, 64u, 100u, 128u, 255u, 256u, 257u, 512u}) { P p = base; p.channels = c; line(p); p.type = 0; line(p); }
        for (uint32_t c : {0u, 1u, 2u, 3u, 100u, 255u, 256u, 257u, 511u, 512u, 1000u, 1023u, 1024u, 1025u, 2048u}) { P p = base; p.pixels = c; line(p); p.rank = 5; line(p); }
        if (kind == 2) for (int m = -1; m < 4; m++) for (int sw = 0; sw < 7; sw++) { P p = base; p.mode = m; p.swizzle = sw; line(p); p.pixels = 32; line(p); }
    }
    // Random ones.
    state = 1000 + kind;
    for (int n = 0; n < (kind == 2 ? 1500 : 6000); n++) {
        P p; p.kind = kind;
        p.type = chance(10) ? below(16) : below(13); p.rank = kind ? 3 + below(3) : 1 + below(5);
        if (chance(30)) p.rank = below(7);
        p.address = (rnd() & 0x7fffffffffffull) & ~(chance(20) ? 0xfull : 0x1full);
        p.interleave = chance(3) ? 1 + below(2) : 0;
        p.swizzle = chance(20) ? below(7) : below(4);
        if (p.interleave == 2 && !chance(6)) p.swizzle = 1;
        p.promotion = below(4); p.fill = chance(3);
        const int sizes[16] = {1, 2, 4, 4, 8, 8, 2, 4, 8, 2, 4, 4, 4, 1, 1, 1};
        uint64_t pitch = sizes[p.type];
        for (int i = 0; i < 5; i++) {
            p.dim[i] = 1 + below(1ull << (1 + below(i == 0 ? 14 : 10)));
            if (chance(100)) p.dim[i] = 0;
            pitch *= p.dim[i]; pitch = (pitch + 31) / 32 * 32;
            if (i < 4) p.stride[i] = (pitch + 32 * below(4)) & 0xffffffffffull;
            if (i < 4 && chance(20)) p.stride[i] = rnd() >> (20 + below(10)) << 4;
            p.step[i] = chance(4) ? 1 + below(8) : 1;
            if (chance(100)) p.step[i] = below(12);
            p.box[i] = 1 + below(1ull << (1 + below(8)));
        }
        p.box[0] = (16 << below(4)) / sizes[p.type]; if (chance(10)) p.box[0] = below(300);
        p.channels = p.box[0]; p.pixels = 1 + below(1024); if (chance(20)) p.pixels = below(2000);
        int range = p.rank == 3 ? 32768 : p.rank == 4 ? 128 : 16;
        for (int i = 0; i < 3; i++) {
            p.lower[i] = (int)below(2 * range) - range; p.upper[i] = (int)below(2 * range) - range;
            if (chance(2)) { p.lower[i] /= 4; p.upper[i] /= 4; }
            if (i + 2 >= (int)p.rank && chance(2)) p.lower[i] = p.upper[i] = 0;
        }
        p.mode = below(2);
        line(p);
    }
}

int main() {
    cudaFree(0);
    cudaDriverEntryPointQueryResult q;
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", (void**)&tiled, 12000, cudaEnableDefault, &q);
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2col", (void**)&im2col, 12000, cudaEnableDefault, &q);
    cudaGetDriverEntryPointByVersion("cuTensorMapEncodeIm2colWide", (void**)&wide, 12080, cudaEnableDefault, &q);
    cudaGetDriverEntryPointByVersion("cuTensorMapReplaceAddress", (void**)&replace, 12000, cudaEnableDefault, &q);
    printf("# entry points %d %d %d %d\n", tiled != 0, im2col != 0, wide != 0, replace != 0);
    grid(0); grid(1); grid(2);
    // Pointers.
    P p; Map map; CUtensorMap* m = (CUtensorMap*)&map; memset(&map, 0, sizeof map);
#define SHOW(...) printf("# %s = %d\n", #__VA_ARGS__, (int)(__VA_ARGS__))
    SHOW(tiled(nullptr, 7, 2, (void*)p.address, p.dim, p.stride, p.box, p.step, 0, 0, 0, 0));
    SHOW(tiled((CUtensorMap*)((char*)m + 8), 7, 2, (void*)p.address, p.dim, p.stride, p.box, p.step, 0, 0, 0, 0));
    SHOW(tiled((CUtensorMap*)((char*)m + 16), 7, 2, (void*)p.address, p.dim, p.stride, p.box, p.step, 0, 0, 0, 0));
    SHOW(tiled((CUtensorMap*)((char*)m + 32), 7, 2, (void*)p.address, p.dim, p.stride, p.box, p.step, 0, 0, 0, 0));
    SHOW(tiled(m, 7, 2, nullptr, p.dim, p.stride, p.box, p.step, 0, 0, 0, 0));
    SHOW(tiled(m, 7, 2, (void*)p.address, nullptr, p.stride, p.box, p.step, 0, 0, 0, 0));
    SHOW(tiled(m, 7, 2, (void*)p.address, p.dim, nullptr, p.box, p.step, 0, 0, 0, 0));
    SHOW(tiled(m, 7, 1, (void*)p.address, p.dim, nullptr, p.box, p.step, 0, 0, 0, 0));
    SHOW(tiled(m, 7, 2, (void*)p.address, p.dim, p.stride, nullptr, p.step, 0, 0, 0, 0));
    SHOW(tiled(m, 7, 2, (void*)p.address, p.dim, p.stride, p.box, nullptr, 0, 0, 0, 0));
    SHOW(im2col(m, 7, 4, (void*)p.address, p.dim, p.stride, nullptr, p.upper, 32, 32, p.step, 0, 0, 0, 0));
    SHOW(im2col(m, 7, 4, (void*)p.address, p.dim, p.stride, p.lower, nullptr, 32, 32, p.step, 0, 0, 0, 0));
    SHOW(im2col(nullptr, 7, 4, (void*)p.address, p.dim, p.stride, p.lower, p.upper, 32, 32, p.step, 0, 0, 0, 0));
    SHOW(im2col(m, 7, 4, (void*)p.address, p.dim, p.stride, p.lower, p.upper, 32, 32, nullptr, 0, 0, 0, 0));
    auto dump = [&] { printf("#"); for (int i = 0; i < 32; i++) printf(" %x", map.w[i]); printf("\n"); };
    for (int il = 0; il < 3; il++) {
        SHOW(tiled(m, 7, 3, (void*)p.address, p.dim, p.stride, p.box, p.step, il, il == 2, 2, 1)); dump();
        for (uint64_t a : {0ull, 8ull, 16ull, 32ull, 0x7654321ff0ull, 0xfffffffffffffff0ull}) { printf("# il %d a %llx ", il, (unsigned long long)a); SHOW(replace(m, (void*)a)); dump(); }
    }
    SHOW(replace(nullptr, (void*)p.address));
    SHOW(replace((CUtensorMap*)((char*)m + 16), (void*)p.address));
    memset(&map, 0, sizeof map); SHOW(replace(m, (void*)p.address)); dump();
    memset(&map, 0xff, sizeof map); SHOW(replace(m, (void*)p.address)); dump();
    return 0;
}
