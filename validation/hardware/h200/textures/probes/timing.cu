// Latency and rate of texture and surface instructions on one SM, one line a case. Usage: timing
#include <cstdio>
#include <cstdint>
#include <vector>
#include <cuda_runtime.h>

enum { T1, T2, T3, F1, F2, G4, T2V4, SU, LDG, T2V2, SUST, L2M, A2, KINDS };
static const char* names[] = {"tex1d", "tex2d", "tex3d", "fetch1d", "fetch2d", "gather", "tex2d.v4", "suld2d", "ldg", "tex2d.v2", "sust2d", "level2d", "a2d"};

template <int K> __device__ float4 get(cudaTextureObject_t t, const float* m, float x, float y) {
    float4 r = {0, 0, 0, 0};
    if (K == T1) asm volatile("tex.1d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5}];" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "l"(t), "f"(x));
    if (K == T2 || K == T2V4 || K == T2V2) asm volatile("tex.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}];" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "l"(t), "f"(x), "f"(y));
    if (K == L2M) asm volatile("tex.level.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}], %7;" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "l"(t), "f"(x), "f"(y), "f"(0.0f));
    if (K == A2) asm volatile("tex.a2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6, %7, %7}];" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "l"(t), "r"(0), "f"(x), "f"(y));
    if (K == T3) asm volatile("tex.3d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6, %7, %7}];" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "l"(t), "f"(x), "f"(y), "f"(0.5f));
    if (K == F1) asm volatile("tex.1d.v4.f32.s32 {%0, %1, %2, %3}, [%4, {%5}];" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "l"(t), "r"(__float_as_int(x)));
    if (K == F2) asm volatile("tex.2d.v4.f32.s32 {%0, %1, %2, %3}, [%4, {%5, %6}];" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "l"(t), "r"(__float_as_int(x)), "r"(__float_as_int(y)));
    if (K == G4) asm volatile("tld4.r.2d.v4.f32.f32 {%0, %1, %2, %3}, [%4, {%5, %6}];" : "=f"(r.x), "=f"(r.y), "=f"(r.z), "=f"(r.w) : "l"(t), "f"(x), "f"(y));
    if (K == SU) asm volatile("suld.b.2d.b32.zero %0, [%1, {%2, %3}];" : "=f"(r.x) : "l"(t), "r"(__float_as_int(x)), "r"(__float_as_int(y)));
    if (K == SUST) asm volatile("sust.b.2d.b32.zero [%0, {%1, %2}], %3;" :: "l"(t), "r"(__float_as_int(x)), "r"(__float_as_int(y)), "f"(x));
    if (K == LDG) asm volatile("ld.global.ca.f32 %0, [%1];" : "=f"(r.x) : "l"(m + __float_as_int(x)));
    return r;
}
template <int K> __host__ __device__ constexpr bool integer() { return K == F1 || K == F2 || K == SU || K == LDG || K == SUST; }

// A chain: each answer is the next coordinate. All texels hold the coordinate itself.
template <int K> __global__ void chain(cudaTextureObject_t t, const float* m, float start, float y, long long* out) {
    float x = start;
    long long begin = 0, end = 0;
    for (int pass = 0; pass < 2; pass++) {
        begin = clock64();
#pragma unroll 1
        for (int i = 0; i < 64; i++) {
            x = get<K>(t, m, x, y).x;
            x = get<K>(t, m, x, y).x;
            x = get<K>(t, m, x, y).x;
            x = get<K>(t, m, x, y).x;
        }
        end = clock64();
    }
    out[0] = end - begin;
    out[1] = __float_as_int(x);
}

// A coordinate that no compiler knows to be the same as before: the step is 0.
template <int K> __device__ float bump(float x, float step) {
    return integer<K>() ? __int_as_float(__float_as_int(x) + __float_as_int(step)) : x + step;
}

// All warps fetch without waiting. A warp covers 32 texels of a row, or a tile of 8 by 4.
template <int K> __global__ void __launch_bounds__(1024) flood(cudaTextureObject_t t, const float* m, int tile, float shift, float step, long long* out, float* sink) {
    int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    float fx = tile ? lane % 8 + warp % 4 * 8 : lane, fy = tile ? lane / 8 + warp / 4 % 4 * 4 : warp % 16;
    float scale = integer<K>() ? 0 : 1;
    float x = scale ? fx + shift : __int_as_float((int)fx * (K == SU || K == SUST ? 4 : 1)), y = scale ? fy + shift : __int_as_float((int)fy);
    float sum = 0;
    long long begin = 0, end = 0;
    for (int pass = 0; pass < 2; pass++) {
        __syncthreads();
        begin = clock64();
#pragma unroll 1
        for (int i = 0; i < 32; i++) {
            float4 a = get<K>(t, m, x, y);
            x = bump<K>(x, step);
            float4 b = get<K>(t, m, x, y);
            y = bump<K>(y, step);
            float4 c = get<K>(t, m, x, y);
            x = bump<K>(x, step);
            float4 d = get<K>(t, m, x, y);
            y = bump<K>(y, step);
            sum += a.x + b.x + c.x + d.x;
            if (K == T2V4) sum += a.y + b.y + c.y + d.y + a.z + b.z + c.z + d.z + a.w + b.w + c.w + d.w;
            if (K == T2V2) sum += a.y + b.y + c.y + d.y;
            if (K == G4) sum += a.y + b.y + c.y + d.y + a.z + b.z + c.z + d.z + a.w + b.w + c.w + d.w;
        }
        __syncthreads();
        end = clock64();
    }
    if (threadIdx.x == 0) out[0] = end - begin;
    sink[threadIdx.x] = sum;
}

static long long *clocks, host[2];
static float* sink;

struct Texture { cudaTextureObject_t object; };

static cudaTextureObject_t make(int kind, int bits, int channels, int type, int filter, float value, int resource, float** memory) {
    cudaChannelFormatDesc d = {bits, channels > 1 ? bits : 0, channels > 2 ? bits : 0, channels > 2 ? bits : 0,
        type == 1 ? cudaChannelFormatKindUnsigned : cudaChannelFormatKindFloat};
    int w = 64, h = kind == T1 || kind == F1 || resource == 2 ? 0 : 32, depth = kind == T3 ? 4 : kind == A2 ? 2 : 0;
    size_t element = bits / 8 * channels;
    std::vector<uint8_t> bytes(w * (h ? h : 1) * (depth ? depth : 1) * element, 0);
    if (bits == 32) for (size_t i = 0; i < bytes.size() / 4; i++) ((float*)bytes.data())[i] = value;
    cudaResourceDesc r = {};
    cudaMalloc(memory, 1 << 16);
    cudaMemcpy(*memory, bytes.data(), bytes.size(), cudaMemcpyHostToDevice);
    cudaMipmappedArray_t mip;
    if (resource == 2) {
        r.resType = cudaResourceTypeLinear;
        r.res.linear = {*memory, d, bytes.size()};
    } else {
        cudaArray_t a;
        unsigned flags = kind == G4 ? cudaArrayTextureGather : kind == A2 ? cudaArrayLayered : kind == SU || kind == SUST ? cudaArraySurfaceLoadStore : 0;
        if (kind == L2M) {
            cudaMallocMipmappedArray(&mip, &d, make_cudaExtent(w, h, 0), 3, 0);
            cudaGetMipmappedArrayLevel(&a, mip, 0);
        } else cudaMalloc3DArray(&a, &d, make_cudaExtent(w, h, depth), flags);
        cudaMemcpy3DParms p = {};
        p.srcPtr = make_cudaPitchedPtr(bytes.data(), w * element, w, h ? h : 1);
        p.dstArray = a;
        p.extent = make_cudaExtent(w, h ? h : 1, depth ? depth : 1);
        p.kind = cudaMemcpyHostToDevice;
        cudaMemcpy3D(&p);
        r.resType = kind == L2M ? cudaResourceTypeMipmappedArray : cudaResourceTypeArray;
        if (kind == L2M) r.res.mipmap.mipmap = mip; else r.res.array.array = a;
    }
    cudaTextureObject_t t = 0;
    if (kind == SU || kind == SUST) { cudaCreateSurfaceObject(&t, &r); return t; }
    cudaTextureDesc td = {};
    for (int i = 0; i < 3; i++) td.addressMode[i] = cudaAddressModeClamp;
    td.filterMode = filter ? cudaFilterModeLinear : cudaFilterModePoint;
    td.readMode = type == 1 ? cudaReadModeNormalizedFloat : cudaReadModeElementType;
    td.normalizedCoords = kind == L2M;
    td.maxMipmapLevelClamp = 3;
    cudaCreateTextureObject(&t, &r, &td, 0);
    return t;
}

template <int K> static void latency(int channels, int filter, int resource) {
    float* memory;
    float value = integer<K>() ? 0.0f : K == L2M ? 0.5f / 64 : 2.5f;
    cudaTextureObject_t t = make(K, 32, channels, 2, filter, value, resource, &memory);
    chain<K><<<1, 1>>>(t, memory, value, integer<K>() ? 0.0f : 2.5f, clocks);
    cudaError_t e = cudaDeviceSynchronize();
    cudaMemcpy(host, clocks, 16, cudaMemcpyDeviceToHost);
    printf("latency %s channels %d filter %d resource %d: %.2f cycles %s\n", names[K], channels, filter, resource, host[0] / 256.0, cudaGetErrorName(e));
}

template <int K> static void rate(int bits, int channels, int type, int filter, int resource) {
    for (int tile = 0; tile < 2; tile++)
        for (int threads = 128; threads <= 1024; threads *= 8) {
            float* memory;
            cudaTextureObject_t t = make(K, bits, channels, type, filter, 0.0f, resource, &memory);
            flood<K><<<1, threads>>>(t, memory, tile, filter ? 0.75f : 0.5f, 0.0f, clocks, sink);
            cudaError_t e = cudaDeviceSynchronize();
            cudaMemcpy(host, clocks, 16, cudaMemcpyDeviceToHost);
            printf("rate %s bits %d channels %d filter %d resource %d tile %d threads %d: %.3f cycles a warp instruction %s\n", names[K], bits, channels, filter, resource, tile,
                threads, host[0] / (128.0 * threads / 32), cudaGetErrorName(e));
        }
}

int main() {
    cudaMalloc(&clocks, 64);
    cudaMalloc(&sink, 1 << 16);
    for (int filter = 0; filter < 2; filter++) {
        latency<T1>(1, filter, 0); latency<T2>(1, filter, 0); latency<T3>(1, filter, 0); latency<T2V4>(4, filter, 0); latency<L2M>(1, filter, 0); latency<A2>(1, filter, 0);
        latency<G4>(1, filter, 0);
    }
    latency<F1>(1, 0, 2); latency<F1>(4, 0, 2); latency<F1>(1, 0, 0); latency<F2>(1, 0, 0); latency<SU>(1, 0, 0); latency<LDG>(1, 0, 2);
    for (int filter = 0; filter < 2; filter++) {
        rate<T1>(32, 1, 2, filter, 0); rate<T2>(32, 1, 2, filter, 0); rate<T3>(32, 1, 2, filter, 0); rate<T2V2>(32, 2, 2, filter, 0); rate<T2V4>(32, 4, 2, filter, 0);
        rate<T2>(32, 4, 2, filter, 0);
        rate<T2V4>(8, 4, 1, filter, 0); rate<T2>(8, 1, 1, filter, 0); rate<T2V4>(16, 4, 2, filter, 0); rate<T2>(16, 1, 2, filter, 0); rate<T2V2>(16, 2, 2, filter, 0); rate<A2>(32, 1, 2, filter, 0);
        rate<G4>(32, 1, 2, filter, 0); rate<G4>(8, 1, 1, filter, 0);
    }
    rate<F1>(32, 1, 2, 0, 2); rate<F1>(32, 4, 2, 0, 2); rate<F2>(32, 1, 2, 0, 0); rate<SU>(32, 1, 2, 0, 0); rate<SUST>(32, 1, 2, 0, 0); rate<LDG>(32, 1, 2, 0, 2);
}
