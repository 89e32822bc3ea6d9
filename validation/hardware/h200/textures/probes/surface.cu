// Records what surface instructions and queries answer on a GPU, one line a case: name, coordinates, answers.
// Usage: surface [trap]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>
#include <cuda_runtime.h>

typedef unsigned long long u64;
#define NUMBER 24
__constant__ int4 places[NUMBER];
static int4 host_places[NUMBER];

#define LOAD(name, ...) __global__ void name(u64 s, uint32_t* out) { for (int i = 0; i < NUMBER; i++) { \
    int4 p = places[i]; uint32_t a = 0xaaaaaaaa, b = 0xbbbbbbbb, c = 0xcccccccc, d = 0xdddddddd; \
    __VA_ARGS__; out[i * 4] = a; out[i * 4 + 1] = b; out[i * 4 + 2] = c; out[i * 4 + 3] = d; } }
#define P1 "l"(s), "r"(p.x)
#define P2 P1, "r"(p.y)
#define P3 P2, "r"(p.z)
#define GEOMETRIES(mode) \
LOAD(load_1d_##mode, asm volatile("suld.b.1d.b32." #mode " %0, [%1, {%2}];" : "=r"(a) : P1)) \
LOAD(load_2d_##mode, asm volatile("suld.b.2d.b32." #mode " %0, [%1, {%2, %3}];" : "=r"(a) : P2)) \
LOAD(load_3d_##mode, asm volatile("suld.b.3d.b32." #mode " %0, [%1, {%2, %3, %4, %4}];" : "=r"(a) : P3)) \
LOAD(load_a1d_##mode, asm volatile("suld.b.a1d.b32." #mode " %0, [%1, {%3, %2}];" : "=r"(a) : "l"(s), "r"(p.x), "r"(p.z))) \
LOAD(load_a2d_##mode, asm volatile("suld.b.a2d.b32." #mode " %0, [%1, {%4, %2, %3, %3}];" : "=r"(a) : P3))
#if PART == 1
GEOMETRIES(clamp)
GEOMETRIES(zero)
GEOMETRIES(trap)
LOAD(load_b8, { unsigned short v; asm volatile("{.reg .b8 t; suld.b.2d.b8.zero t, [%1, {%2, %3}]; cvt.u16.u8 %0, t;}" : "=h"(v) : P2); a = v; })
LOAD(load_b16, { unsigned short v; asm volatile("suld.b.2d.b16.zero %0, [%1, {%2, %3}];" : "=h"(v) : P2); a = v; })
LOAD(load_b64, { u64 v; asm volatile("suld.b.2d.b64.zero %0, [%1, {%2, %3}];" : "=l"(v) : P2); a = v; b = v >> 32; })
LOAD(load_v2b32, asm volatile("suld.b.2d.v2.b32.zero {%0, %1}, [%2, {%3, %4}];" : "=r"(a), "=r"(b) : P2))
LOAD(load_v4b32, asm volatile("suld.b.2d.v4.b32.zero {%0, %1, %2, %3}, [%4, {%5, %6}];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : P2))
LOAD(load_v4b32_clamp, asm volatile("suld.b.2d.v4.b32.clamp {%0, %1, %2, %3}, [%4, {%5, %6}];" : "=r"(a), "=r"(b), "=r"(c), "=r"(d) : P2))
LOAD(load_v4b16, { unsigned short e, f, g, h; asm volatile("suld.b.2d.v4.b16.zero {%0, %1, %2, %3}, [%4, {%5, %6}];" : "=h"(e), "=h"(f), "=h"(g), "=h"(h) : P2); a = e; b = f; c = g; d = h; })
LOAD(load_v4b8, { unsigned short e, f, g, h; asm volatile("{.reg .b8 t<4>; suld.b.2d.v4.b8.clamp {t0, t1, t2, t3}, [%4, {%5, %6}]; cvt.u16.u8 %0, t0; cvt.u16.u8 %1, t1; cvt.u16.u8 %2, t2; cvt.u16.u8 %3, t3;}" : "=h"(e), "=h"(f), "=h"(g), "=h"(h) : P2); a = e; b = f; c = g; d = h; })

#endif
#define STORE(name, ...) __global__ void name(u64 s, uint32_t*) { for (int i = 0; i < NUMBER; i++) { \
    int4 p = places[i]; uint32_t a = 0x01010101u * (i + 1), b = a ^ 0xf0f0f0f0u, c = a + 0x12345678u, d = ~a; (void)b; (void)c; (void)d; \
    __VA_ARGS__; __threadfence(); } }
#define STORES(mode) \
STORE(store_1d_##mode, asm volatile("sust.b.1d.b32." #mode " [%0, {%1}], %2;" :: P1, "r"(a))) \
STORE(store_2d_##mode, asm volatile("sust.b.2d.b32." #mode " [%0, {%1, %2}], %3;" :: P2, "r"(a))) \
STORE(store_3d_##mode, asm volatile("sust.b.3d.b32." #mode " [%0, {%1, %2, %3, %3}], %4;" :: P3, "r"(a))) \
STORE(store_a1d_##mode, asm volatile("sust.b.a1d.b32." #mode " [%0, {%2, %1}], %3;" :: "l"(s), "r"(p.x), "r"(p.z), "r"(a))) \
STORE(store_a2d_##mode, asm volatile("sust.b.a2d.b32." #mode " [%0, {%3, %1, %2, %2}], %4;" :: P3, "r"(a)))
#if PART == 2
STORES(clamp)
STORES(zero)
STORES(trap)
STORE(store_b8, asm volatile("{.reg .b8 t; cvt.u8.u32 t, %3; sust.b.2d.b8.zero [%0, {%1, %2}], t;}" :: P2, "r"(a)))
STORE(store_b16, asm volatile("sust.b.2d.b16.zero [%0, {%1, %2}], %3;" :: P2, "h"((unsigned short)a)))
STORE(store_v2b32, asm volatile("sust.b.2d.v2.b32.zero [%0, {%1, %2}], {%3, %4};" :: P2, "r"(a), "r"(b)))
STORE(store_v4b32, asm volatile("sust.b.2d.v4.b32.zero [%0, {%1, %2}], {%3, %4, %5, %6};" :: P2, "r"(a), "r"(b), "r"(c), "r"(d)))
STORE(store_v4b32_clamp, asm volatile("sust.b.2d.v4.b32.clamp [%0, {%1, %2}], {%3, %4, %5, %6};" :: P2, "r"(a), "r"(b), "r"(c), "r"(d)))
#endif
#define VALUES float e = (i - 4) * 0.3f; a = __float_as_uint(e); b = __float_as_uint(e * 1000); c = __float_as_uint(1.0f / (i + 1)); d = __float_as_uint(-e);
#if PART == 3
STORE(format_zero, VALUES asm volatile("sust.p.2d.v4.b32.zero [%0, {%1, %2}], {%3, %4, %5, %6};" :: P2, "r"(a), "r"(b), "r"(c), "r"(d)))
STORE(format_clamp, asm volatile("sust.p.2d.v4.b32.clamp [%0, {%1, %2}], {%3, %4, %5, %6};" :: P2, "r"(a), "r"(b), "r"(c), "r"(d)))
STORE(format_small, { a = i * 40 - 300; b = i * 9000; c = i - 10; d = i; } asm volatile("sust.p.2d.v4.b32.trap [%0, {%1, %2}], {%3, %4, %5, %6};" :: "l"(s), "r"(i % 8), "r"(i / 8), "r"(a), "r"(b), "r"(c), "r"(d)))
STORE(format_1d, asm volatile("sust.p.1d.b32.zero [%0, {%1}], {%2};" :: P1, "r"(a)))
STORE(format_3d, asm volatile("sust.p.3d.v2.b32.zero [%0, {%1, %2, %3, %3}], {%4, %5};" :: P3, "r"(a), "r"(b)))
#endif
#define REDUCE(op, type) \
STORE(reduce_##op##_##type##_clamp, asm volatile("sured.b." #op ".2d." #type ".clamp [%0, {%1, %2}], %3;" :: P2, "r"(c))) \
STORE(reduce_##op##_##type##_zero, asm volatile("sured.b." #op ".2d." #type ".zero [%0, {%1, %2}], %3;" :: P2, "r"(c)))
#if PART == 4
REDUCE(add, u32) REDUCE(min, u32) REDUCE(max, u32) REDUCE(min, s32) REDUCE(max, s32) REDUCE(and, b32) REDUCE(or, b32)
STORE(reduce_add_u64, asm volatile("sured.b.add.2d.u64.zero [%0, {%1, %2}], %3;" :: P2, "l"((u64)a * c)))
STORE(reduce_format, asm volatile("sured.p.add.2d.b32.zero [%0, {%1, %2}], %3;" :: P2, "r"(c)))
STORE(reduce_1d, asm volatile("sured.b.add.1d.u32.zero [%0, {%1}], %2;" :: P1, "r"(c)))
STORE(reduce_3d, asm volatile("sured.b.add.3d.u32.zero [%0, {%1, %2, %3, %3}], %4;" :: P3, "r"(c)))

#endif
#define QUERY(what) { uint32_t v = 0; asm volatile("txq." #what ".b32 %0, [%1];" : "=r"(v) : "l"(t)); out[n++] = v; }
#define SQUERY(what) { uint32_t v = 0; asm volatile("suq." #what ".b32 %0, [%1];" : "=r"(v) : "l"(s)); out[n++] = v; }
#if PART == 5
__global__ void queries(u64 t, u64 s, uint32_t* out) {
    int n = 0;
    QUERY(width) QUERY(height) QUERY(depth) QUERY(channel_data_type) QUERY(channel_order) QUERY(normalized_coords)
    QUERY(array_size) QUERY(num_mipmap_levels)
    SQUERY(width) SQUERY(height) SQUERY(depth) SQUERY(channel_data_type) SQUERY(channel_order)
    SQUERY(array_size) SQUERY(memory_layout)
}
__global__ void level_queries(u64 t, uint32_t* out) {
    for (int l = -1; l < 7; l++) {
        uint32_t w = 0, h = 0, d = 0;
        asm volatile("txq.level.width.b32 %0, [%1], %2;" : "=r"(w) : "l"(t), "r"(l));
        asm volatile("txq.level.height.b32 %0, [%1], %2;" : "=r"(h) : "l"(t), "r"(l));
        asm volatile("txq.level.depth.b32 %0, [%1], %2;" : "=r"(d) : "l"(t), "r"(l));
        out[(l + 1) * 3] = w; out[(l + 1) * 3 + 1] = h; out[(l + 1) * 3 + 2] = d;
    }
}

#endif
struct Shape { int bits, channels, type, w, h, d, flags; };
static uint32_t* out;

static void one(const char* name, void (*kernel)(u64, uint32_t*), Shape z, bool store) {
    cudaChannelFormatDesc d = {z.bits, z.channels > 1 ? z.bits : 0, z.channels > 2 ? z.bits : 0, z.channels > 2 ? z.bits : 0,
        z.type == 0 ? cudaChannelFormatKindSigned : z.type == 1 ? cudaChannelFormatKindUnsigned : cudaChannelFormatKindFloat};
    size_t element = z.bits / 8 * z.channels;
    size_t h = z.h ? z.h : 1, dd = z.d ? z.d : 1;
    cudaArray_t array;
    cudaError_t e = cudaMalloc3DArray(&array, &d, make_cudaExtent(z.w, z.h, z.d), z.flags | cudaArraySurfaceLoadStore);
    std::vector<uint8_t> bytes(z.w * h * dd * element);
    for (size_t i = 0; i < bytes.size(); i++) bytes[i] = i * 7 + (i >> 8) * 31 + 1;
    cudaMemcpy3DParms p = {};
    p.srcPtr = make_cudaPitchedPtr(bytes.data(), z.w * element, z.w, h);
    p.dstArray = array;
    p.extent = make_cudaExtent(z.w, h, dd);
    p.kind = cudaMemcpyHostToDevice;
    if (e == cudaSuccess) e = cudaMemcpy3D(&p);
    cudaResourceDesc res = {};
    res.resType = cudaResourceTypeArray;
    res.res.array.array = array;
    cudaSurfaceObject_t s = 0;
    if (e == cudaSuccess) e = cudaCreateSurfaceObject(&s, &res);
    cudaMemset(out, 0xee, NUMBER * 16);
    printf("%s bits %d channels %d type %d size %d %d %d flags %d object %llx", name, z.bits, z.channels, z.type, z.w, z.h, z.d, z.flags, (u64)s);
    if (e == cudaSuccess) { kernel<<<1, 1>>>(s, out); e = cudaGetLastError(); if (e == cudaSuccess) e = cudaDeviceSynchronize(); }
    if (e != cudaSuccess) { printf(" error %s\n", cudaGetErrorName(e)); cudaGetLastError(); return; }
    if (store) {
        cudaMemcpy3DParms b = {};
        b.dstPtr = make_cudaPitchedPtr(bytes.data(), z.w * element, z.w, h);
        b.srcArray = array;
        b.extent = p.extent;
        b.kind = cudaMemcpyDeviceToHost;
        cudaMemcpy3D(&b);
        printf(" bytes ");
        for (uint8_t v : bytes) printf("%02x", v);
        printf("\n");
    } else {
        uint32_t v[NUMBER * 4];
        cudaMemcpy(v, out, sizeof(v), cudaMemcpyDeviceToHost);
        printf(" words");
        for (uint32_t w : v) printf(" %x", w);
        printf("\n");
    }
    cudaDestroySurfaceObject(s);
    cudaFreeArray(array);
}

#if PART == 5
static void query(Shape z, int levels, int kind) {
    cudaChannelFormatDesc d = {z.bits, z.channels > 1 ? z.bits : 0, z.channels > 2 ? z.bits : 0, z.channels > 2 ? z.bits : 0,
        z.type == 0 ? cudaChannelFormatKindSigned : z.type == 1 ? cudaChannelFormatKindUnsigned : cudaChannelFormatKindFloat};
    cudaResourceDesc res = {}, sres = {};
    cudaArray_t array = 0;
    cudaMipmappedArray_t mip = 0;
    void* memory = 0;
    cudaSurfaceObject_t s = 0;
    if (kind == 0) {
        if (levels == 1) {
            printf("[%d]", cudaMalloc3DArray(&array, &d, make_cudaExtent(z.w, z.h, z.d), z.flags | cudaArraySurfaceLoadStore));
            res.resType = cudaResourceTypeArray;
            res.res.array.array = array;
        } else {
            printf("[%d]", cudaMallocMipmappedArray(&mip, &d, make_cudaExtent(z.w, z.h, z.d), levels, z.flags | cudaArraySurfaceLoadStore));
            res.resType = cudaResourceTypeMipmappedArray;
            res.res.mipmap.mipmap = mip;
            cudaGetMipmappedArrayLevel(&array, mip, 1);
        }
        sres.resType = cudaResourceTypeArray;
        sres.res.array.array = array;
        printf("[%d]", cudaCreateSurfaceObject(&s, &sres));
    } else {
        cudaMalloc(&memory, 1 << 20);
        res.resType = kind == 1 ? cudaResourceTypeLinear : cudaResourceTypePitch2D;
        if (kind == 1) res.res.linear = {memory, d, (size_t)z.w * z.bits / 8 * z.channels};
        else res.res.pitch2D = {memory, d, (size_t)z.w, (size_t)z.h, 1024};
        printf("[%d]", cudaCreateSurfaceObject(&s, &res));
        cudaGetLastError();
    }
    cudaTextureDesc td = {};
    td.normalizedCoords = levels > 1 || z.flags & cudaArrayCubemap;
    for (int i = 0; i < 3; i++) td.addressMode[i] = cudaAddressModeClamp;
    cudaTextureObject_t t = 0;
    printf("[%d] ", cudaCreateTextureObject(&t, &res, &td, 0));
    cudaMemset(out, 0xee, NUMBER * 16);
    if (s == 0) s = t;
    queries<<<1, 1>>>(t, s, out);
    cudaError_t e = cudaGetLastError();
    if (e == cudaSuccess) e = cudaDeviceSynchronize();
    uint32_t v[40];
    cudaMemcpy(v, out, sizeof(v), cudaMemcpyDeviceToHost);
    printf("query kind %d bits %d channels %d type %d size %d %d %d flags %d levels %d: %s", kind, z.bits, z.channels, z.type, z.w, z.h, z.d, z.flags, levels, cudaGetErrorName(e));
    for (int i = 0; i < 15; i++) printf(" %x", v[i]);
    level_queries<<<1, 1>>>(t, out);
    e = cudaGetLastError();
    if (e == cudaSuccess) e = cudaDeviceSynchronize();
    cudaMemcpy(v, out, sizeof(v), cudaMemcpyDeviceToHost);
    printf(" | %s", cudaGetErrorName(e));
    for (int i = 0; i < 24; i++) printf(" %x", v[i]);
    printf("\n");
}

#endif
// Errors of the calls, as the programs of others may meet them.
static void errors() {
    cudaArray_t array, plain;
    cudaChannelFormatDesc d = cudaCreateChannelDesc<float>(), i = cudaCreateChannelDesc<int>(), byte = cudaCreateChannelDesc<uchar4>();
    cudaMallocArray(&array, &d, 8, 8, cudaArraySurfaceLoadStore);
    cudaMallocArray(&plain, &i, 8, 8);
    void* memory;
    cudaMalloc(&memory, 1 << 16);
    auto texture = [&](const char* name, auto change) {
        cudaResourceDesc r = {};
        r.resType = cudaResourceTypeArray;
        r.res.array.array = array;
        cudaTextureDesc t = {};
        cudaResourceViewDesc v = {};
        change(r, t, v);
        cudaTextureObject_t o = 0x77;
        cudaError_t e = cudaCreateTextureObject(&o, &r, &t, v.format ? &v : 0);
        printf("create %s: %s %llx\n", name, cudaGetErrorName(e), (u64)o);
        cudaGetLastError();
    };
#define CHANGE [&](cudaResourceDesc& r, cudaTextureDesc& t, cudaResourceViewDesc& v)
    texture("plain", CHANGE {});
    texture("normalized read of float", CHANGE { t.readMode = cudaReadModeNormalizedFloat; });
    texture("linear filter of int", CHANGE { r.res.array.array = plain; t.filterMode = cudaFilterModeLinear; });
    texture("normalized read of int", CHANGE { r.res.array.array = plain; t.readMode = cudaReadModeNormalizedFloat; });
    texture("address mode 9", CHANGE { t.addressMode[0] = (cudaTextureAddressMode)9; });
    texture("filter mode 9", CHANGE { t.filterMode = (cudaTextureFilterMode)9; });
    texture("mip filter mode 9", CHANGE { t.mipmapFilterMode = (cudaTextureFilterMode)9; });
    texture("read mode 9", CHANGE { t.readMode = (cudaTextureReadMode)9; });
    texture("resource 9", CHANGE { r.resType = (cudaResourceType)9; });
    texture("null array", CHANGE { r.res.array.array = 0; });
    texture("anisotropy 99", CHANGE { t.maxAnisotropy = 99; });
    texture("wrap without normalized", CHANGE { t.addressMode[0] = cudaAddressModeWrap; });
    texture("linear null", CHANGE { r.resType = cudaResourceTypeLinear; r.res.linear = {0, d, 64}; });
    texture("linear misaligned", CHANGE { r.resType = cudaResourceTypeLinear; r.res.linear = {(char*)memory + 4, d, 64}; });
    texture("linear large", CHANGE { r.resType = cudaResourceTypeLinear; r.res.linear = {memory, d, (size_t)1 << 40}; });
    texture("linear size 0", CHANGE { r.resType = cudaResourceTypeLinear; r.res.linear = {memory, d, 0}; });
    texture("linear normalized", CHANGE { r.resType = cudaResourceTypeLinear; r.res.linear = {memory, d, 64}; t.normalizedCoords = 1; });
    texture("linear filtered", CHANGE { r.resType = cudaResourceTypeLinear; r.res.linear = {memory, d, 64}; t.filterMode = cudaFilterModeLinear; });
    texture("linear three channels", CHANGE { r.resType = cudaResourceTypeLinear; r.res.linear = {memory, {32, 32, 32, 0, cudaChannelFormatKindFloat}, 64}; });
    texture("pitch misaligned", CHANGE { r.resType = cudaResourceTypePitch2D; r.res.pitch2D = {memory, d, 8, 8, 36}; });
    texture("pitch ok", CHANGE { r.resType = cudaResourceTypePitch2D; r.res.pitch2D = {memory, d, 8, 8, 64}; });
    texture("pitch small", CHANGE { r.resType = cudaResourceTypePitch2D; r.res.pitch2D = {memory, d, 64, 8, 64}; });
    texture("pitch wide", CHANGE { r.resType = cudaResourceTypePitch2D; r.res.pitch2D = {memory, d, 1 << 20, 8, 1 << 23}; });
    texture("view", CHANGE { v.format = cudaResViewFormatFloat1; v.width = 8; v.height = 8; });
    texture("view of int", CHANGE { v.format = cudaResViewFormatSignedInt1; v.width = 8; v.height = 8; });
    texture("view of bytes", CHANGE { v.format = cudaResViewFormatUnsignedChar4; v.width = 8; v.height = 8; });
    texture("view of wrong size", CHANGE { v.format = cudaResViewFormatFloat1; v.width = 4; v.height = 8; });
    texture("border 1d", CHANGE { t.addressMode[0] = cudaAddressModeBorder; t.borderColor[0] = 2; });
    texture("srgb float", CHANGE { t.sRGB = 1; });
    cudaResourceDesc r = {};
    r.resType = cudaResourceTypeArray;
    cudaSurfaceObject_t s = 0x77;
    r.res.array.array = plain;
    printf("surface of plain array: %s %llx\n", cudaGetErrorName(cudaCreateSurfaceObject(&s, &r)), (u64)s);
    r.res.array.array = 0;
    printf("surface of null: %s\n", cudaGetErrorName(cudaCreateSurfaceObject(&s, &r)));
    r.resType = cudaResourceTypeLinear; r.res.linear = {memory, d, 64};
    printf("surface of linear: %s\n", cudaGetErrorName(cudaCreateSurfaceObject(&s, &r)));
    printf("destroy 0: %s\n", cudaGetErrorName(cudaDestroyTextureObject(0)));
    printf("destroy unknown: %s\n", cudaGetErrorName(cudaDestroyTextureObject(0x12345)));
    printf("destroy unknown surface: %s\n", cudaGetErrorName(cudaDestroySurfaceObject(0x12345)));
    printf("create null: %s\n", cudaGetErrorName(cudaCreateTextureObject(0, 0, 0, 0)));
    cudaTextureObject_t o;
    cudaTextureDesc t = {}, back = {};
    t.addressMode[0] = cudaAddressModeMirror; t.normalizedCoords = 1; t.maxMipmapLevelClamp = 3; t.maxAnisotropy = 4; t.borderColor[2] = 5;
    r = {}; r.resType = cudaResourceTypeArray; r.res.array.array = array;
    printf("create: %s\n", cudaGetErrorName(cudaCreateTextureObject(&o, &r, &t, 0)));
    cudaResourceViewDesc v; memset(&v, 0x55, sizeof(v));
    printf("texture description: %s", cudaGetErrorName(cudaGetTextureObjectTextureDesc(&back, o)));
    for (size_t k = 0; k < sizeof(back) / 4; k++) printf(" %x", ((unsigned*)&back)[k]);
    printf("\nview description: %s", cudaGetErrorName(cudaGetTextureObjectResourceViewDesc(&v, o)));
    for (size_t k = 0; k < sizeof(v) / 4; k++) printf(" %x", ((unsigned*)&v)[k]);
    cudaResourceDesc rb = {};
    printf("\nresource description: %s same %d\n", cudaGetErrorName(cudaGetTextureObjectResourceDesc(&rb, o)), rb.res.array.array == array);
    printf("resource of unknown: %s\n", cudaGetErrorName(cudaGetTextureObjectResourceDesc(&rb, 0x4444)));
}

int main(int count, char** words) {
    cudaMalloc(&out, 1 << 16);
    srand(7);
    for (int i = 0; i < NUMBER; i++) {
        // Bytes along x.
        host_places[i] = make_int4((rand() % 20 - 2) * 4, rand() % 8 - 1, rand() % 6 - 1, 0);
        if (i % 8 == 3) host_places[i].x += 2;
        if (i % 8 == 4) host_places[i].x += 1;
    }
    host_places[20] = make_int4(0x7ffffffc, 0, 0, 0);
    host_places[21] = make_int4(-4, -1, -1, 0);
    host_places[22] = make_int4(12, 2, 1, 0);
    host_places[23] = make_int4(16, 0x7fffffff, 0x7fffffff, 0);
    Shape d1 = {32, 1, 1, 16, 0, 0, 0}, d2 = {32, 1, 1, 16, 5, 0, 0}, d3 = {32, 1, 1, 16, 5, 3, 0};
    Shape a1 = {32, 1, 1, 16, 0, 3, cudaArrayLayered}, a2 = {32, 1, 1, 16, 5, 3, cudaArrayLayered};
    if (count > 1) {
        for (int i = 0; i < NUMBER; i++) host_places[i] = make_int4(i % 4 * 4, i % 5, i % 3, 0);
        int bad = atoi(words[1]);
        if (bad & 1) host_places[5].x = 64;
        if (bad & 2) host_places[5].y = 5;
        if (bad & 4) host_places[5].z = 3;
        if (bad & 8) host_places[5].x = 2;
        cudaMemcpyToSymbol(places, host_places, sizeof(host_places));
        printf("trap %d ", bad);
#if PART == 1
        if (bad & 32) one("load_a2d_trap", load_a2d_trap, a2, false);
        else if (bad & 128) { load_2d_trap<<<1, 1>>>(0x345, out); printf("%s ", cudaGetErrorName(cudaGetLastError())); printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize())); }
        else one("load_3d_trap", load_3d_trap, d3, false);
#elif PART == 2
        one("store_2d_trap", store_2d_trap, d2, true);
#endif
        return 0;
    }
    printf("places");
    for (auto p : host_places) printf(" %d %d %d", p.x, p.y, p.z);
    printf("\n");
    cudaMemcpyToSymbol(places, host_places, sizeof(host_places));
#define L(name, shape) one(#name, name, shape, false);
#define S(name, shape) one(#name, name, shape, true);
    Shape wide = {32, 4, 2, 16, 5, 0, 0}, narrow = {8, 1, 1, 64, 5, 0, 0}, half = {16, 2, 2, 16, 5, 0, 0};
    (void)wide; (void)narrow; (void)half;
#if PART == 1
    L(load_1d_clamp, d1) L(load_2d_clamp, d2) L(load_3d_clamp, d3) L(load_a1d_clamp, a1) L(load_a2d_clamp, a2)
    L(load_1d_zero, d1) L(load_2d_zero, d2) L(load_3d_zero, d3) L(load_a1d_zero, a1) L(load_a2d_zero, a2)
    L(load_b8, d2) L(load_b16, d2) L(load_b64, d2) L(load_v2b32, d2) L(load_v4b32, d2) L(load_v4b32_clamp, d2) L(load_v4b16, d2) L(load_v4b8, d2)
    L(load_2d_zero, wide) L(load_2d_zero, narrow) L(load_2d_clamp, narrow) L(load_2d_clamp, wide) L(load_v4b32, wide) L(load_v4b32_clamp, wide)
    L(load_b8, narrow) L(load_b16, half) L(load_b64, half) L(load_v4b8, narrow)
#elif PART == 2
    S(store_1d_clamp, d1) S(store_2d_clamp, d2) S(store_3d_clamp, d3) S(store_a1d_clamp, a1) S(store_a2d_clamp, a2)
    S(store_1d_zero, d1) S(store_2d_zero, d2) S(store_3d_zero, d3) S(store_a1d_zero, a1) S(store_a2d_zero, a2)
    S(store_b8, d2) S(store_b16, d2) S(store_v2b32, d2) S(store_v4b32, d2) S(store_v4b32_clamp, d2) S(store_v4b32, wide) S(store_v4b32_clamp, wide) S(store_b8, narrow)
#elif PART == 3
    Shape shapes[] = {{8, 4, 1, 8, 5, 0, 0}, {8, 4, 0, 8, 5, 0, 0}, {8, 1, 1, 8, 5, 0, 0}, {16, 2, 1, 8, 5, 0, 0}, {16, 4, 0, 8, 5, 0, 0}, {32, 1, 1, 8, 5, 0, 0},
        {32, 2, 0, 8, 5, 0, 0}, {32, 4, 1, 8, 5, 0, 0}, {16, 1, 2, 8, 5, 0, 0}, {16, 4, 2, 8, 5, 0, 0}, {32, 1, 2, 8, 5, 0, 0}, {32, 4, 2, 8, 5, 0, 0}};
    for (Shape z : shapes) { S(format_zero, z) S(format_clamp, z) S(format_small, z) }
    S(format_1d, d1) S(format_3d, d3)
#elif PART == 4
    S(reduce_add_u32_clamp, d2) S(reduce_add_u32_zero, d2) S(reduce_min_u32_clamp, d2) S(reduce_min_u32_zero, d2) S(reduce_max_u32_zero, d2)
    S(reduce_min_s32_zero, d2) S(reduce_max_s32_zero, d2) S(reduce_and_b32_zero, d2) S(reduce_or_b32_zero, d2) S(reduce_and_b32_clamp, d2)
    S(reduce_add_u64, d2) S(reduce_format, d2) S(reduce_1d, d1) S(reduce_3d, d3)
#else
    Shape asked[] = {d1, d2, d3, a1, a2, {8, 4, 1, 8, 8, 6, cudaArrayCubemap}, {8, 4, 1, 8, 8, 12, cudaArrayCubemap | cudaArrayLayered}};
    for (Shape z : asked) query(z, 1, 0);
    for (int bits = 8; bits <= 32; bits *= 2)
        for (int type = 0; type < 3; type++)
            for (int channels = 1; channels <= 4; channels *= 2)
                if (bits > 8 || type < 2) query({bits, channels, type, 8, 4, 0, 0}, 1, 0);
    query({32, 1, 2, 32, 20, 0, 0}, 5, 0);
    query({32, 1, 2, 32, 20, 8, 0}, 5, 0);
    query({32, 1, 2, 32, 20, 3, cudaArrayLayered}, 4, 0);
    query({32, 1, 2, 100, 0, 0, 0}, 1, 1);
    query({32, 1, 2, 48, 7, 0, 0}, 1, 2);
    errors();
#endif
}
