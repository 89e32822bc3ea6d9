// Records what texture and surface instructions answer on a GPU, one binary record a case.
//
// A record is 64 words of description (see `Case`), the bytes of the texels of all levels, the coordinates as
// floats, and the answers as words. Usage: record FILE
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cmath>
#include <vector>
#include <cuda_runtime.h>
#include <cuda_fp16.h>

#define CHECK(call) do { cudaError_t failed = (call); if (failed != cudaSuccess) { \
    printf("case %d: %s: %s\n", number, #call, cudaGetErrorName(failed)); cudaGetLastError(); return false; } } while (0)

enum Op {
    T1, T2, T3, F1, F2, F3, A1, A2, CUBE, ACUBE, L1, L2, L3, LA2, LCUBE, G1, G2, G3, R4, G4, B4, A4, H2, FA2, FL2, LA1, GA2,
    OPS
};

struct Case {
    int op, resource, bits, channels, type, width, height, depth, flags, levels;
    int address[3], filter, mip_filter, normalized, read_normalized, srgb, anisotropy;
    float bias, low, high, border[4];
    int data, samples;
};

static uint64_t seed;
static uint32_t rnd() { seed = seed * 6364136223846793005ull + 1442695040888963407ull; return uint32_t(seed >> 33); }
static float unit() { return (rnd() & 0xffffff) * (1.0f / 16777216.0f); }
static float step(float v, int by) { uint32_t b; memcpy(&b, &v, 4); if (v != 0) b += by; memcpy(&v, &b, 4); return v; }

static float coordinate(int kind, float edge) {
    static const float special[] = {0.0f, -0.0f, NAN, INFINITY, -INFINITY, 1e30f, -1e30f, 2147483648.0f, -2147483648.0f,
        1e-40f, -1e-40f, 65536.5f, -65536.5f, 8388607.5f, 16777215.0f, 1e-10f, -1e-10f, 32768.0f, 131072.25f, -131073.0f,
        4194304.25f, 1048576.125f, -0.001953125f, 0.001953125f, -0.49999997f, 0.49999997f, 1e10f, -1e10f, 262144.3f, -300000.7f};
    switch (kind & 7) {
    case 0: return (unit() * 3.0f - 1.0f) * edge;
    case 1: return unit() * edge;
    case 2: return (int)(rnd() % (int)(512 * (edge + 4))) * (1.0f / 512.0f) - 2.0f;
    case 3: return step((int)(rnd() % (int)(512 * (edge + 2))) * (1.0f / 512.0f) - 1.0f, int(rnd() % 5) - 2);
    case 4: return (int)(rnd() % (int)(1024 * edge)) * (1.0f / 1024.0f);
    case 5: return (int)(rnd() % (int)(16 * (edge + 8))) * (1.0f / 16.0f) - 4.0f;
    case 6: return step((int)(rnd() % (int)(2 * (edge + 2))) * 0.5f - 1.0f, int(rnd() % 7) - 3);
    default: return rnd() % 4 ? unit() * edge : special[rnd() % (sizeof(special) / sizeof(float))];
    }
}

__global__ void sample(int op, cudaTextureObject_t t, const float4* as, const float4* bs, const float4* cs, uint4* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float4 a = as[i], b = bs[i], c = cs[i];
    int ix = __float_as_int(a.x), iy = __float_as_int(a.y), iz = __float_as_int(a.z), layer = __float_as_int(a.w);
    uint4 r = make_uint4(0xdead, 0xdead, 0xdead, 0xdead);
#define TO "{%0, %1, %2, %3}, "
#define R "=r"(r.x), "=r"(r.y), "=r"(r.z), "=r"(r.w) : "l"(t)
    switch (op) {
    case T1: asm volatile("tex.1d.v4.u32.f32 " TO "[%4, {%5}];" : R, "f"(a.x)); break;
    case T2: asm volatile("tex.2d.v4.u32.f32 " TO "[%4, {%5, %6}];" : R, "f"(a.x), "f"(a.y)); break;
    case T3: asm volatile("tex.3d.v4.u32.f32 " TO "[%4, {%5, %6, %7, %7}];" : R, "f"(a.x), "f"(a.y), "f"(a.z)); break;
    case F1: asm volatile("tex.1d.v4.u32.s32 " TO "[%4, {%5}];" : R, "r"(ix)); break;
    case F2: asm volatile("tex.2d.v4.u32.s32 " TO "[%4, {%5, %6}];" : R, "r"(ix), "r"(iy)); break;
    case F3: asm volatile("tex.3d.v4.u32.s32 " TO "[%4, {%5, %6, %7, %7}];" : R, "r"(ix), "r"(iy), "r"(iz)); break;
    case A1: asm volatile("tex.a1d.v4.u32.f32 " TO "[%4, {%5, %6}];" : R, "r"(layer), "f"(a.x)); break;
    case A2: asm volatile("tex.a2d.v4.u32.f32 " TO "[%4, {%5, %6, %7, %7}];" : R, "r"(layer), "f"(a.x), "f"(a.y)); break;
    case FA2: asm volatile("tex.a2d.v4.u32.s32 " TO "[%4, {%5, %6, %7, %7}];" : R, "r"(layer), "r"(ix), "r"(iy)); break;
    case CUBE: asm volatile("tex.cube.v4.u32.f32 " TO "[%4, {%5, %6, %7, %7}];" : R, "f"(a.x), "f"(a.y), "f"(a.z)); break;
    case ACUBE: asm volatile("tex.acube.v4.u32.f32 " TO "[%4, {%5, %6, %7, %8}];" : R, "r"(layer), "f"(a.x), "f"(a.y), "f"(a.z)); break;
    case L1: asm volatile("tex.level.1d.v4.u32.f32 " TO "[%4, {%5}], %6;" : R, "f"(a.x), "f"(b.x)); break;
    case L2: asm volatile("tex.level.2d.v4.u32.f32 " TO "[%4, {%5, %6}], %7;" : R, "f"(a.x), "f"(a.y), "f"(b.x)); break;
    case L3: asm volatile("tex.level.3d.v4.u32.f32 " TO "[%4, {%5, %6, %7, %7}], %8;" : R, "f"(a.x), "f"(a.y), "f"(a.z), "f"(b.x)); break;
    case LA1: asm volatile("tex.level.a1d.v4.u32.f32 " TO "[%4, {%5, %6}], %7;" : R, "r"(layer), "f"(a.x), "f"(b.x)); break;
    case LA2: asm volatile("tex.level.a2d.v4.u32.f32 " TO "[%4, {%5, %6, %7, %7}], %8;" : R, "r"(layer), "f"(a.x), "f"(a.y), "f"(b.x)); break;
    case LCUBE: asm volatile("tex.level.cube.v4.u32.f32 " TO "[%4, {%5, %6, %7, %7}], %8;" : R, "f"(a.x), "f"(a.y), "f"(a.z), "f"(b.x)); break;
    case FL2: asm volatile("tex.level.2d.v4.u32.s32 " TO "[%4, {%5, %6}], %7;" : R, "r"(ix), "r"(iy), "r"(__float_as_int(b.x))); break;
    case G1: asm volatile("tex.grad.1d.v4.u32.f32 " TO "[%4, {%5}], {%6}, {%7};" : R, "f"(a.x), "f"(b.x), "f"(c.x)); break;
    case G2: asm volatile("tex.grad.2d.v4.u32.f32 " TO "[%4, {%5, %6}], {%7, %8}, {%9, %10};" : R, "f"(a.x), "f"(a.y), "f"(b.x), "f"(b.y), "f"(c.x), "f"(c.y)); break;
    case GA2: asm volatile("tex.grad.a2d.v4.u32.f32 " TO "[%4, {%5, %6, %7, %7}], {%8, %9}, {%10, %11};" : R, "r"(layer), "f"(a.x), "f"(a.y), "f"(b.x), "f"(b.y), "f"(c.x), "f"(c.y)); break;
    case G3: asm volatile("tex.grad.3d.v4.u32.f32 " TO "[%4, {%5, %6, %7, %7}], {%8, %9, %10, %10}, {%11, %12, %13, %13};" : R, "f"(a.x), "f"(a.y), "f"(a.z), "f"(b.x), "f"(b.y), "f"(b.z), "f"(c.x), "f"(c.y), "f"(c.z)); break;
    case R4: asm volatile("tld4.r.2d.v4.u32.f32 " TO "[%4, {%5, %6}];" : R, "f"(a.x), "f"(a.y)); break;
    case G4: asm volatile("tld4.g.2d.v4.u32.f32 " TO "[%4, {%5, %6}];" : R, "f"(a.x), "f"(a.y)); break;
    case B4: asm volatile("tld4.b.2d.v4.u32.f32 " TO "[%4, {%5, %6}];" : R, "f"(a.x), "f"(a.y)); break;
    case A4: asm volatile("tld4.a.2d.v4.u32.f32 " TO "[%4, {%5, %6}];" : R, "f"(a.x), "f"(a.y)); break;
    case H2: asm volatile("tex.2d.v2.f16x2.f32 {%0, %1}, [%2, {%3, %4}];" : "=r"(r.x), "=r"(r.y) : "l"(t), "f"(a.x), "f"(a.y)); break;
    }
    out[i] = r;
}

static void texels(const Case& c, std::vector<uint8_t>& bytes, size_t count) {
    int size = c.bits / 8;
    bytes.resize(count * c.channels * size);
    for (size_t i = 0; i < count * c.channels; i++) {
        uint8_t* at = &bytes[i * size];
        if (c.type != 2) {
            uint32_t v = rnd() ^ rnd() << 16;
            if (c.data == 1) v = i % 5 == 2 ? (c.bits == 8 ? 127 : 32767) : 0;
            memcpy(at, &v, size);
            continue;
        }
        float v = unit() * 4 - 2;
        if (c.data == 1) v = i % 5 == 2;
        if (c.data == 2) v = ldexpf(unit() - 0.5f, int(rnd() % 40) - 20);
        if (c.data == 3) {
            static const float odd[] = {NAN, INFINITY, -INFINITY, 1e-40f, -1e-40f, 0.0f, -0.0f, 3e38f, -3e38f, 1e-38f};
            v = rnd() % 3 ? unit() - 0.5f : odd[rnd() % 10];
        }
        if (c.data == 4) { uint32_t b = rnd() ^ rnd() << 16; memcpy(&v, &b, 4); }
        if (c.data == 5) v = (float)(int)(rnd() % 256);
        if (c.bits == 32) memcpy(at, &v, 4);
        else {
            __half h = __float2half(v);
            if (c.data == 4) { uint16_t b = rnd(); memcpy(&h, &b, 2); }
            memcpy(at, &h, 2);
        }
    }
}

static FILE* file;
static int number;

static bool run(Case c) {
    number++;
    seed = 1000 + number;
    cudaChannelFormatDesc d = {c.bits, c.channels > 1 ? c.bits : 0, c.channels > 2 ? c.bits : 0, c.channels > 2 ? c.bits : 0,
        c.type == 0 ? cudaChannelFormatKindSigned : c.type == 1 ? cudaChannelFormatKindUnsigned : cudaChannelFormatKindFloat};
    size_t element = c.bits / 8 * c.channels;
    std::vector<uint8_t> all;
    cudaResourceDesc res = {};
    cudaArray_t array = 0;
    cudaMipmappedArray_t mip = 0;
    void* memory = 0;
    cudaExtent extent = make_cudaExtent(c.width, c.height, c.depth);
    auto fill = [&](cudaArray_t to, size_t w, size_t h, size_t dd) -> bool {
        std::vector<uint8_t> bytes;
        texels(c, bytes, w * (h ? h : 1) * (dd ? dd : 1));
        all.insert(all.end(), bytes.begin(), bytes.end());
        cudaMemcpy3DParms p = {};
        p.srcPtr = make_cudaPitchedPtr(bytes.data(), w * element, w, h ? h : 1);
        p.dstArray = to;
        p.extent = make_cudaExtent(w, h ? h : 1, dd ? dd : 1);
        p.kind = cudaMemcpyHostToDevice;
        CHECK(cudaMemcpy3D(&p));
        return true;
    };
    if (c.resource == 0) {
        CHECK(cudaMalloc3DArray(&array, &d, extent, c.flags));
        if (!fill(array, c.width, c.height, c.depth)) return false;
        res.resType = cudaResourceTypeArray;
        res.res.array.array = array;
    } else if (c.resource == 1) {
        CHECK(cudaMallocMipmappedArray(&mip, &d, extent, c.levels, c.flags));
        for (int l = 0; l < c.levels; l++) {
            cudaArray_t at;
            CHECK(cudaGetMipmappedArrayLevel(&at, mip, l));
            cudaExtent e; unsigned f;
            CHECK(cudaArrayGetInfo(0, &e, &f, at));
            if (!fill(at, e.width, e.height, e.depth)) return false;
        }
        res.resType = cudaResourceTypeMipmappedArray;
        res.res.mipmap.mipmap = mip;
    } else {
        texels(c, all, (size_t)c.width * (c.height ? c.height : 1));
        size_t pitch = (c.width * element + 511) / 512 * 512;
        CHECK(cudaMalloc(&memory, pitch * (c.height ? c.height : 1) + 4096));
        CHECK(cudaMemset(memory, 0x5a, pitch * (c.height ? c.height : 1) + 4096));
        if (c.resource == 2) {
            CHECK(cudaMemcpy(memory, all.data(), all.size(), cudaMemcpyHostToDevice));
            res.resType = cudaResourceTypeLinear;
            res.res.linear = {memory, d, all.size()};
        } else {
            CHECK(cudaMemcpy2D(memory, pitch, all.data(), c.width * element, c.width * element, c.height, cudaMemcpyHostToDevice));
            res.resType = cudaResourceTypePitch2D;
            res.res.pitch2D = {memory, d, (size_t)c.width, (size_t)c.height, pitch};
        }
    }
    cudaTextureDesc td = {};
    for (int i = 0; i < 3; i++) td.addressMode[i] = (cudaTextureAddressMode)c.address[i];
    td.filterMode = (cudaTextureFilterMode)c.filter;
    td.readMode = (cudaTextureReadMode)c.read_normalized;
    td.sRGB = c.srgb;
    memcpy(td.borderColor, c.border, 16);
    td.normalizedCoords = c.normalized;
    td.maxAnisotropy = c.anisotropy;
    td.mipmapFilterMode = (cudaTextureFilterMode)c.mip_filter;
    td.mipmapLevelBias = c.bias;
    td.minMipmapLevelClamp = c.low;
    td.maxMipmapLevelClamp = c.high;
    cudaTextureObject_t t = 0;
    CHECK(cudaCreateTextureObject(&t, &res, &td, 0));
    int n = c.samples;
    std::vector<float4> a(n), b(n), cc(n);
    bool fetch = c.op == F1 || c.op == F2 || c.op == F3 || c.op == FA2 || c.op == FL2;
    bool cube = c.op == CUBE || c.op == ACUBE || c.op == LCUBE;
    for (int i = 0; i < n; i++) {
        float* v = &a[i].x;
        int sizes[3] = {c.width, c.height, c.depth};
        for (int k = 0; k < 3; k++) {
            int size = sizes[k] ? sizes[k] : 1;
            if (fetch) {
                int at = int(rnd() % (size + 8)) - 4;
                if (i % 32 == 31) at = rnd() ^ rnd() << 16;
                memcpy(&v[k], &at, 4);
            } else if (cube) {
                v[k] = unit() * 2 - 1;
                if (i % 4 == 1) v[k] = (int(rnd() % 65) - 32) / 16.0f;
                if (i % 64 == 33) v[k] = coordinate(7, 1);
            } else {
                v[k] = coordinate(rnd(), (float)size);
                if (c.normalized) v[k] /= (float)size;
                if (c.normalized && rnd() % 4 == 0) v[k] = (int)(rnd() % 1025) / 256.0f - 1.5f;
            }
        }
        int layer = c.depth ? int(rnd() % (c.depth + 4)) - 2 : 0;
        if (i % 50 == 49) layer = rnd() ^ rnd() << 16;
        memcpy(&v[3], &layer, 4);
        float* w = &b[i].x;
        float* x = &cc[i].x;
        for (int k = 0; k < 4; k++) { w[k] = 0; x[k] = 0; }
        if (c.op == L1 || c.op == L2 || c.op == L3 || c.op == LA1 || c.op == LA2 || c.op == LCUBE) {
            switch (rnd() % 5) {
            case 0: w[0] = unit() * 8 - 2; break;
            case 1: w[0] = (int(rnd() % 4096) - 512) / 512.0f; break;
            case 2: w[0] = step((int(rnd() % 4096) - 512) / 512.0f, int(rnd() % 5) - 2); break;
            case 3: w[0] = (int(rnd() % 32) - 4) / 4.0f; break;
            default: w[0] = rnd() % 3 ? unit() * 4 : coordinate(7, 4);
            }
        } else if (c.op == FL2) {
            int l = int(rnd() % 8) - 2;
            memcpy(w, &l, 4);
        } else if (c.op == G1 || c.op == G2 || c.op == G3 || c.op == GA2) {
            for (int k = 0; k < 3; k++) {
                w[k] = (unit() - 0.5f) * exp2f(int(rnd() % 8) - 3);
                x[k] = (unit() - 0.5f) * exp2f(int(rnd() % 8) - 3);
                if (i % 3 == 0) { w[k] = exp2f(int(rnd() % 8) - 5); x[k] = 0; }
                if (i % 3 == 1 && k) { w[k] = 0; x[k] = 0; }
                if (c.normalized) { w[k] /= 16; x[k] /= 16; }
            }
        }
    }
    float4 *da, *db, *dc;
    uint4* out;
    CHECK(cudaMalloc(&da, n * 16)); CHECK(cudaMalloc(&db, n * 16)); CHECK(cudaMalloc(&dc, n * 16)); CHECK(cudaMalloc(&out, n * 16));
    CHECK(cudaMemcpy(da, a.data(), n * 16, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(db, b.data(), n * 16, cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(dc, cc.data(), n * 16, cudaMemcpyHostToDevice));
    sample<<<(n + 127) / 128, 128>>>(c.op, t, da, db, dc, out, n);
    CHECK(cudaDeviceSynchronize());
    std::vector<uint4> answers(n);
    CHECK(cudaMemcpy(answers.data(), out, n * 16, cudaMemcpyDeviceToHost));
    uint32_t head[64] = {0x43584554};
    head[1] = all.size();
    memcpy(head + 2, &c, sizeof(c));
    static_assert(sizeof(c) <= 62 * 4, "a case fits its words");
    bool more = c.op >= L1 && c.op <= G3 || c.op == FL2 || c.op == LA1 || c.op == GA2;
    head[60] = more;
    head[61] = number;
    fwrite(head, 4, 64, file);
    all.resize((all.size() + 3) / 4 * 4);
    fwrite(all.data(), 1, all.size(), file);
    fwrite(a.data(), 16, n, file);
    if (more) { fwrite(b.data(), 16, n, file); fwrite(cc.data(), 16, n, file); }
    fwrite(answers.data(), 16, n, file);
    if (number < 40) printf("case %d object %llx\n", number, (unsigned long long)t);
    cudaDestroyTextureObject(t);
    if (array) cudaFreeArray(array);
    if (mip) cudaFreeMipmappedArray(mip);
    if (memory) cudaFree(memory);
    cudaFree(da); cudaFree(db); cudaFree(dc); cudaFree(out);
    return true;
}

static Case base(int op, int bits, int channels, int type, int w, int h, int d) {
    Case c = {};
    c.op = op; c.bits = bits; c.channels = channels; c.type = type;
    c.width = w; c.height = h; c.depth = d; c.levels = 1;
    for (int i = 0; i < 3; i++) c.address[i] = cudaAddressModeClamp;
    c.samples = 512;
    c.border[0] = 0.25f; c.border[1] = -3.5f; c.border[2] = 1000.0f; c.border[3] = 0.7f;
    return c;
}

static Case sized(int op, int bits, int channels, int type, int dims) {
    return base(op, bits, channels, type, 13, dims > 1 ? 7 : 0, dims > 2 ? 5 : 0);
}

int main(int count, char** words) {
    file = fopen(count > 1 ? words[1] : "records.bin", "wb");
    const int plain[] = {T1, T2, T3}, fetch[] = {F1, F2, F3};
    struct { int bits, type; } filtered[] = {{8, 1}, {8, 0}, {16, 1}, {16, 0}, {16, 2}, {32, 2}};
    // Arithmetic of the filter.
    for (int dims = 1; dims <= 3; dims++)
        for (auto f : filtered)
            for (int channels = 1; channels <= 4; channels *= 2) {
                Case c = sized(plain[dims - 1], f.bits, channels, f.type, dims);
                c.filter = 1; c.read_normalized = f.type != 2;
                c.samples = channels == 1 ? 2048 : 256;
                run(c);
            }
    for (int dims = 1; dims <= 3; dims++)
        for (int data = 1; data <= 5; data++)
            for (int bits = 16; bits <= 32; bits *= 2) {
                Case c = sized(plain[dims - 1], bits, 1, 2, dims);
                c.filter = 1; c.data = data; c.samples = 2048;
                run(c);
            }
    for (int dims = 1; dims <= 3; dims++)
        for (auto f : filtered) {
            if (f.type == 2) continue;
            Case c = sized(plain[dims - 1], f.bits, 1, f.type, dims);
            c.filter = 1; c.read_normalized = 1; c.data = 1;
            run(c);
        }
    // Address modes.
    for (int large = 0; large < 2; large++)
        for (int dims = 1; dims <= 3; dims++)
            for (int normalized = 0; normalized < 2; normalized++)
                for (int filter = 0; filter < 2; filter++)
                    for (int mode = 0; mode < 4; mode++) {
                        if (!normalized && (mode == 0 || mode == 2) && (large || dims > 1)) continue;
                        Case c = sized(plain[dims - 1], 32, 1, 2, dims);
                        if (large) { c.width = 16; if (dims > 1) c.height = 8; if (dims > 2) c.depth = 4; }
                        for (int i = 0; i < 3; i++) c.address[i] = mode;
                        c.normalized = normalized; c.filter = filter;
                        c.samples = dims == 1 ? 1024 : 512;
                        run(c);
                    }
    for (int filter = 0; filter < 2; filter++) {
        Case c = sized(T3, 32, 1, 2, 3);
        c.address[0] = 0; c.address[1] = 2; c.address[2] = 3; c.normalized = 1; c.filter = filter;
        run(c);
        c = base(T2, 32, 1, 2, 1000, 3, 0);
        c.normalized = 1; c.filter = filter; c.address[0] = 0; c.address[1] = 2;
        run(c);
        c = base(T1, 32, 1, 2, 16384, 0, 0);
        c.normalized = 1; c.filter = filter; c.address[0] = 0;
        run(c);
        c = base(T1, 32, 1, 2, 1, 0, 0);
        c.normalized = 1; c.filter = filter; c.address[0] = 2;
        run(c);
        c = base(T2, 32, 1, 2, 20000, 2, 0);
        c.filter = filter;
        run(c);
    }
    // Formats.
    for (int bits = 8; bits <= 32; bits *= 2)
        for (int type = 0; type < 3; type++)
            for (int channels = 1; channels <= 4; channels *= 2)
                for (int normalized = 0; normalized < 2; normalized++) {
                    if (type == 2 && (bits == 8 || normalized) || bits == 32 && normalized) continue;
                    Case c = sized(T2, bits, channels, type, 2);
                    c.read_normalized = normalized; c.samples = 128; c.data = 4;
                    for (int i = 0; i < 3; i++) c.address[i] = cudaAddressModeBorder;
                    run(c);
                }
    for (int filter = 0; filter < 2; filter++)
        for (int channels = 1; channels <= 4; channels *= 2) {
            Case c = base(T2, 8, channels, 1, 64, 16, 0);
            c.srgb = 1; c.read_normalized = 1; c.filter = filter; c.samples = 1024;
            run(c);
        }
    for (int bits = 8; bits <= 16; bits *= 2) {
        Case c = base(T1, bits, 1, 1, bits == 8 ? 256 : 16384, 0, 0);
        c.read_normalized = 1; c.samples = 2048;
        run(c);
        c.type = 0;
        run(c);
    }
    for (int filter = 0; filter < 2; filter++)
        for (int bits = 8; bits <= 32; bits *= 2) {
            Case c = sized(H2, bits, 4, bits == 8 ? 1 : 2, 2);
            c.read_normalized = bits == 8; c.filter = filter; c.samples = 1024;
            run(c);
        }
    // Integer coordinates.
    for (int dims = 1; dims <= 3; dims++)
        for (int mode = 1; mode <= 3; mode += 2)
            for (int filter = 0; filter < 2; filter++) {
                Case c = sized(fetch[dims - 1], 32, 1, 2, dims);
                for (int i = 0; i < 3; i++) c.address[i] = mode;
                c.samples = 256; c.filter = filter;
                run(c);
            }
    for (int bits = 8; bits <= 32; bits *= 2)
        for (int type = 0; type < 3; type++)
            for (int channels = 1; channels <= 4; channels *= 2) {
                if (type == 2 && bits == 8) continue;
                Case c = sized(F1, bits, channels, type, 1);
                c.resource = 2; c.width = 100; c.samples = 128;
                c.read_normalized = type != 2 && bits < 32 && channels == 2;
                run(c);
            }
    for (int op : {T2, F2})
        for (int filter = 0; filter < 2; filter++)
            for (int normalized = 0; normalized < 2; normalized++)
                for (int mode = 0; mode < 4; mode++) {
                    if (!normalized && mode % 2 == 0 || op == F2 && (normalized || filter)) continue;
                    Case c = sized(op, 32, mode == 1 ? 4 : 1, 2, 2);
                    c.resource = 3; c.width = 48; c.filter = filter; c.normalized = normalized; c.samples = 256;
                    for (int i = 0; i < 3; i++) c.address[i] = mode;
                    run(c);
                }
    // Layers and cubes.
    for (int filter = 0; filter < 2; filter++)
        for (int normalized = 0; normalized < 2; normalized++) {
            Case c = base(A1, 32, 1, 2, 13, 0, 5);
            c.flags = cudaArrayLayered; c.filter = filter; c.normalized = normalized;
            run(c);
            c = base(A2, 32, 2, 2, 13, 7, 5);
            c.flags = cudaArrayLayered; c.filter = filter; c.normalized = normalized; c.address[0] = c.address[1] = normalized ? 0 : 3;
            run(c);
            if (!normalized && !filter) { c.op = FA2; run(c); }
            if (!normalized) continue;
            c = base(CUBE, 32, 1, 2, 8, 8, 6);
            c.flags = cudaArrayCubemap; c.filter = filter; c.normalized = 1; c.samples = 2048;
            run(c);
            c = base(ACUBE, 32, 1, 2, 8, 8, 18);
            c.flags = cudaArrayCubemap | cudaArrayLayered; c.filter = filter; c.normalized = 1; c.samples = 1024;
            run(c);
        }
    // Mipmaps.
    const int levels[] = {L1, L2, L3, LA1, LA2, LCUBE};
    for (int k = 0; k < 6; k++)
        for (int filter = 0; filter < 2; filter++)
            for (int mip = 0; mip < 2; mip++) {
                int dims = k < 3 ? k + 1 : k == 3 ? 1 : 2;
                Case c = base(levels[k], 32, 1, 2, 32, dims > 1 ? 16 : 0, k == 2 ? 8 : 0);
                c.resource = 1; c.levels = 5; c.normalized = 1; c.filter = filter; c.mip_filter = mip; c.high = 10;
                if (k == 3 || k == 4) { c.flags = cudaArrayLayered; c.depth = 3; }
                if (k == 5) { c.flags = cudaArrayCubemap; c.width = c.height = 16; c.depth = 6; c.levels = 4; }
                for (int i = 0; i < 3; i++) c.address[i] = filter ? 0 : 1;
                c.samples = k == 0 && mip ? 2048 : 512;
                run(c);
            }
    for (int mip = 0; mip < 2; mip++)
        for (int variant = 0; variant < 6; variant++) {
            Case c = base(variant < 4 ? L1 : T1, 32, 1, 2, 32, 0, 0);
            c.resource = 1; c.levels = 6; c.normalized = 1; c.filter = 0; c.mip_filter = mip; c.high = 10;
            if (variant == 0) c.bias = 0.7f;
            if (variant == 1) c.bias = -1.3f;
            if (variant == 2) c.low = 1.25f, c.high = 3.6f;
            if (variant == 3) c.bias = 0.3f, c.low = 0.1f, c.high = 2.0f;
            if (variant == 4) c.low = 1.0f;
            if (variant == 5) c.bias = 2.0f;
            run(c);
        }
    for (int variant = 0; variant < 4; variant++) {
        Case c = base(variant == 3 ? FL2 : L2, 32, 1, 2, 29, 19, 0);
        c.resource = 1; c.levels = 5; c.normalized = variant < 3; c.filter = variant == 1; c.mip_filter = 1; c.high = variant == 2 ? 0.0f : 10.0f;
        run(c);
    }
    const int grads[] = {G1, G2, G3, GA2};
    for (int k = 0; k < 4; k++)
        for (int filter = 0; filter < 2; filter++)
            for (int aniso = 0; aniso < 2; aniso++) {
                if (aniso && k != 1) continue;
                Case c = base(grads[k], 32, 1, 2, 32, k ? 16 : 0, k == 2 ? 8 : k == 3 ? 3 : 0);
                c.resource = 1; c.levels = 5; c.normalized = 1; c.filter = filter; c.mip_filter = filter; c.high = 10;
                if (k == 3) c.flags = cudaArrayLayered;
                if (aniso) c.anisotropy = 8;
                c.samples = 1024;
                run(c);
            }
    // Gathers.
    for (int op = R4; op <= A4; op++)
        for (int mode = 0; mode < 4; mode++)
            for (int normalized = 0; normalized < 2; normalized++) {
                if (!normalized && mode % 2 == 0) continue;
                Case c = sized(op, mode == 1 ? 8 : 32, op == R4 && mode == 3 ? 1 : 4, mode == 1 ? 1 : 2, 2);
                c.flags = cudaArrayTextureGather; c.normalized = normalized; c.read_normalized = mode == 1 && op == G4;
                for (int i = 0; i < 3; i++) c.address[i] = mode;
                c.samples = 256; c.filter = mode & 1 && normalized && c.type == 2;
                run(c);
            }
    fclose(file);
    printf("%d cases\n", number);
}
