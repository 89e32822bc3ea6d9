// Constant caches by index pattern: size and ways, misses beside each other, lanes with different addresses, operands.
//
// Prints rows `probe,parameters,value`, cycles.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#define CHECK(call) do { cudaError_t s_ = (call); if (s_ != cudaSuccess) { std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(s_)); std::exit(2); } } while (0)

constexpr int WORDS = 16384;
__constant__ unsigned table[WORDS];

static __device__ __forceinline__ unsigned read(unsigned at) { return *reinterpret_cast<const unsigned*>(reinterpret_cast<const char*>(table) + at); }

// A chase, every warp from its own start; the first (cold) and the second pass.
__global__ void chase(unsigned* out, int steps, unsigned apart) {
    unsigned at = threadIdx.x / 32 * apart;
    for (int pass = 0; pass < 3; pass++) {
        __syncthreads();
        unsigned begin = clock();
        for (int i = 0; i < steps; i++) at = read(at);
        __syncthreads();
        unsigned end = clock();
        if (threadIdx.x == 0) out[pass] = end - begin;
    }
    if (at == 1) out[5] = at;
}

// Every single step of the first pass of a chase.
__global__ void steps_of_chase(unsigned* out, int steps) {
    __shared__ unsigned times[1024];
    unsigned at = 0;
    for (int i = 0; i < steps; i++) {
        unsigned begin = clock();
        at = read(at);
        asm volatile("{.reg .pred p; setp.eq.u32 p,%0,1; @p trap;}" ::"r"(at) : "memory");
        times[i] = clock() - begin;
    }
    for (int i = 0; i < steps; i++) out[i] = times[i];
}

// Independent loads: COUNT at a time, addresses the same in all lanes, `stride` bytes apart over `bytes`.
__global__ void stream(unsigned* out, unsigned bytes, unsigned stride, unsigned apart, int rounds) {
    unsigned at = threadIdx.x / 32 * apart % bytes, sum = 0;
    for (int pass = 0; pass < 2; pass++) {
        __syncthreads();
        unsigned begin = clock();
#pragma unroll 1
        for (int i = 0; i < rounds; i++) {
            unsigned value[8];
#pragma unroll
            for (int j = 0; j < 8; j++) {
                value[j] = read(at);
                at = at + stride >= bytes ? 0 : at + stride;
            }
#pragma unroll
            for (int j = 0; j < 8; j++) sum += value[j];
        }
        __syncthreads();
        unsigned end = clock();
        if (threadIdx.x == 0) out[pass] = end - begin;
    }
    if (sum == 12345) out[5] = sum;
}

// Lanes with addresses of their own: random words of a table of `bytes`, `distinct` different ones in a warp.
__global__ void lanes(unsigned* out, unsigned bytes, int distinct, int rounds, int chained) {
    unsigned lane = threadIdx.x % distinct, state = lane * 2654435761u + threadIdx.x / 32 * 40503u + 12345u, sum = 0;
    for (int pass = 0; pass < 2; pass++) {
        __syncthreads();
        unsigned begin = clock();
#pragma unroll 1
        for (int i = 0; i < rounds; i++) {
            unsigned value[4];
#pragma unroll
            for (int j = 0; j < 4; j++) {
                state = state * 1664525u + 1013904223u;
                value[j] = read(state >> 8 & (bytes - 4));
                if (chained) state += value[j];
            }
#pragma unroll
            for (int j = 0; j < 4; j++) sum += value[j];
        }
        __syncthreads();
        unsigned end = clock();
        if (threadIdx.x == 0) out[pass] = end - begin;
    }
    if (sum == 12345) out[5] = sum;
}

// Constants as operands of arithmetic: WORDS_READ different words, `STEP` words apart, in a loop.
template <int FIRST, int COUNT, int STEP>
struct Operands {
    static __device__ __forceinline__ void run(float& x, float& y) {
#pragma unroll
        for (int i = 0; i < 128; i += 2) {
            x = fmaf(x, __uint_as_float(table[FIRST + i * STEP]), x);
            y = fmaf(y, __uint_as_float(table[FIRST + (i + 1) * STEP]), y);
        }
        Operands<FIRST + 128 * STEP, COUNT - 128, STEP>::run(x, y);
    }
};
template <int FIRST, int STEP>
struct Operands<FIRST, 0, STEP> {
    static __device__ __forceinline__ void run(float&, float&) {}
};
template <int COUNT, int STEP>
__global__ void operands(unsigned* out, int) {
    float x = threadIdx.x, y = x + 1;
#pragma unroll 1
    for (int pass = 0; pass < 4; pass++) {
        __syncthreads();
        unsigned begin = clock();
        Operands<0, COUNT, STEP>::run(x, y);
        __syncthreads();
        unsigned end = clock();
        if (threadIdx.x == 0) out[pass] = end - begin;
    }
    if (x + y == 123.0f) out[5] = 1;
}

__global__ void read_all(const float4* memory, float* out, size_t count) {
    float sum = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) sum += memory[i].x;
    if (sum == 1.2345f) out[0] = sum;
}

static unsigned* out;
static std::vector<unsigned> got(int count) {
    std::vector<unsigned> values(count);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(values.data(), out, count * 4, cudaMemcpyDeviceToHost));
    return values;
}

static void links(int bytes, int stride) {
    std::vector<unsigned> words(WORDS, 0);
    int count = std::max(1, bytes / stride);
    for (int i = 0; i < count; i++) words[i * stride / 4] = unsigned((i + 1) % count) * stride;
    CHECK(cudaMemcpyToSymbol(table, words.data(), sizeof table));
}

template <int COUNT, int STEP>
static void measure_operands() {
    for (int warps : {1, 4, 16}) {
        operands<COUNT, STEP><<<1, warps * 32>>>(out, 0);
        auto values = got(4);
        for (int pass = 0; pass < 4; pass++) std::printf("operands,words=%d step=%d warps=%d pass=%d,%.2f\n", COUNT, STEP, warps, pass, double(values[pass]) / COUNT);
    }
}

int main() {
    CHECK(cudaMalloc(&out, 1 << 16));
    float4* large;
    CHECK(cudaMalloc(&large, 512u << 20));
    CHECK(cudaMemset(large, 0, 512u << 20));
    // Ways: how many lines of a stride stay.
    for (int stride : {32, 64, 128, 256, 512, 1024, 2048, 4096})
        for (int lines : {1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 28, 32, 33, 34, 36, 40, 48, 64, 128, 256, 512, 1024}) {
            if (lines * stride > 65536) break;
            links(lines * stride, stride);
            int steps = std::max(256, lines);
            chase<<<1, 32>>>(out, steps, 0);
            chase<<<1, 32>>>(out, steps, 0);
            std::printf("ways,stride=%d lines=%d,%.2f\n", stride, lines, double(got(3)[2]) / steps);
        }
    // First pass: from L2, from DRAM; every step.
    for (int cold : {0, 1})
        for (int stride : {64, 256}) {
            links(16384, stride);
            if (cold) read_all<<<1056, 256>>>(large, reinterpret_cast<float*>(out), (512u << 20) / 16);
            steps_of_chase<<<1, 32>>>(out, 16384 / stride);
            auto values = got(16384 / stride);
            for (size_t i = 0; i < values.size(); i++) std::printf("first pass,%s stride=%d step=%zu,%u\n", cold ? "l2cold" : "l2written", stride, i, values[i]);
        }
    // Misses of several warps beside each other.
    for (int bytes : {1024, 4096, 32768})
        for (int warps : {1, 2, 4, 8, 16, 32})
            for (int apart : {0, 64, 1024}) {
                if (apart * warps > bytes) continue;
                links(bytes, 64);
                chase<<<1, warps * 32>>>(out, 512, apart);
                auto values = got(3);
                std::printf("chases,bytes=%d warps=%d apart=%d,%.2f\n", bytes, warps, apart, double(values[2]) / 512);
            }
    // Independent loads.
    for (unsigned bytes : {4u, 256u, 1024u, 2048u, 3072u, 4096u, 16384u, 65536u})
        for (unsigned stride : {4u, 64u})
            for (int warps : {1, 4, 8, 32})
                for (unsigned apart : {0u, 320u}) {
                    if (stride > bytes) continue;
                    stream<<<1, warps * 32>>>(out, bytes, stride, apart, 128);
                    std::printf("stream,bytes=%u stride=%u warps=%d apart=%u,%.2f\n", bytes, stride, warps, apart, double(got(2)[1]) / (128 * 8 * warps));
                }
    // Lanes with addresses of their own.
    std::vector<unsigned> zero(WORDS, 0);
    CHECK(cudaMemcpyToSymbol(table, zero.data(), sizeof table));
    for (unsigned bytes : {64u, 256u, 1024u, 2048u, 4096u, 8192u, 65536u})
        for (int distinct : {1, 2, 4, 8, 16, 32})
            for (int warps : {1, 4, 16})
                for (int chained : {0, 1}) {
                    lanes<<<1, warps * 32>>>(out, bytes, distinct, 64, chained);
                    std::printf("lanes,bytes=%u distinct=%d warps=%d chained=%d,%.2f\n", bytes, distinct, warps, chained, double(got(2)[1]) / (64 * 4 * warps));
                }
    measure_operands<128, 1>();
    measure_operands<256, 1>();
    measure_operands<384, 1>();
    measure_operands<512, 1>();
    measure_operands<768, 1>();
    measure_operands<1024, 1>();
    measure_operands<2048, 1>();
    measure_operands<128, 16>();
    measure_operands<256, 16>();
    measure_operands<512, 16>();
    return 0;
}
