// Checksums over all inputs of the special function unit, and of what PTX builds on it.
//
//   nvcc -O2 -std=c++17 -gencode arch=compute_90a,code=sm_90a special_functions.cu -o special_functions
//   ./special_functions FOLDER
//
// writes `FOLDER/NAME.sums` for every function: one 64-bit sum, little end first, for each 2^20 inputs (2^10 for those
// of 16 bits) of (result + 1) x (an odd weight mixed from the input).
//
// PTX has no sine of turns: `ptxas` multiplies the angle by 1 / 2 pi (0x3e22f983) before `MUFU.SIN`. Compiled with
// `-DTURNS -Xfatbin=-compress=false`, the program has only the two functions of angles; replace the bytes 83 f9 22 3e
// by 00 00 80 3f (one) in the executable, see by `cuobjdump -sass` that `FMUL.RZ` has it, and run it for
// `mufu_sin.sums` and `mufu_cos.sums`.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#define CHECK(call)                                                                     \
    do {                                                                                \
        cudaError_t error = (call);                                                     \
        if (error != cudaSuccess) {                                                     \
            fprintf(stderr, "%s: %s\n", #call, cudaGetErrorString(error));              \
            exit(1);                                                                    \
        }                                                                               \
    } while (0)

// Operands of binary functions and doubles: the number of the input, mixed (splitmix64).
__device__ uint64_t mixed(uint32_t input) {
    uint64_t z = input + 0x9e3779b97f4a7c15ull;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

#define SINGLE(NAME, PTX)                                                               \
    struct NAME {                                                                       \
        static constexpr int block = 20;                                                \
        static __device__ uint32_t at(uint32_t input) {                                 \
            float result;                                                               \
            asm volatile(PTX " %0,%1;" : "=f"(result) : "f"(__uint_as_float(input)));   \
            return __float_as_uint(result);                                             \
        }                                                                               \
    };
#define QUOTIENT(NAME, PTX)                                                             \
    struct NAME {                                                                       \
        static constexpr int block = 20;                                                \
        static __device__ uint32_t at(uint32_t input) {                                 \
            uint64_t pair = mixed(input);                                               \
            float result, a = __uint_as_float(pair), b = __uint_as_float(pair >> 32);   \
            asm volatile(PTX " %0,%1,%2;" : "=f"(result) : "f"(a), "f"(b));             \
            return __float_as_uint(result);                                             \
        }                                                                               \
    };
#define UPPER_WORD(NAME, PTX)                                                           \
    struct NAME {                                                                       \
        static constexpr int block = 20;                                                \
        static __device__ uint32_t at(uint32_t input) {                                 \
            double result, a = __longlong_as_double((uint64_t)input << 32);             \
            asm volatile(PTX " %0,%1;" : "=d"(result) : "d"(a));                        \
            uint64_t bits = __double_as_longlong(result);                               \
            return (uint32_t)(bits >> 32) ^ (uint32_t)bits;                             \
        }                                                                               \
    };
#define SMALL(NAME, PTX)                                                                \
    struct NAME {                                                                       \
        static constexpr int block = 10;                                                \
        static __device__ uint32_t at(uint32_t input) {                                 \
            unsigned short result;                                                      \
            asm volatile(PTX " %0,%1;" : "=h"(result) : "h"((unsigned short)input));    \
            return result;                                                              \
        }                                                                               \
    };

#ifdef TURNS
SINGLE(mufu_sin, "sin.approx.f32")
SINGLE(mufu_cos, "cos.approx.f32")
#define FUNCTIONS(X) X(mufu_sin) X(mufu_cos)
#else
SINGLE(mufu_rcp, "rcp.approx.ftz.f32")
SINGLE(mufu_rsq, "rsqrt.approx.ftz.f32")
SINGLE(mufu_sqrt, "sqrt.approx.ftz.f32")
SINGLE(mufu_ex2, "ex2.approx.ftz.f32")
SINGLE(mufu_lg2, "lg2.approx.ftz.f32")
SINGLE(mufu_tanh, "tanh.approx.f32")
UPPER_WORD(mufu_rcp64h, "rcp.approx.ftz.f64")
UPPER_WORD(mufu_rsq64h, "rsqrt.approx.ftz.f64")
SMALL(mufu_ex2_f16, "ex2.approx.f16")
SMALL(mufu_ex2_bf16, "ex2.approx.ftz.bf16")
SMALL(mufu_tanh_f16, "tanh.approx.f16")
SMALL(mufu_tanh_bf16, "tanh.approx.bf16")
SINGLE(rcp_approx, "rcp.approx.f32")
SINGLE(rsqrt_approx, "rsqrt.approx.f32")
SINGLE(sqrt_approx, "sqrt.approx.f32")
SINGLE(ex2_approx, "ex2.approx.f32")
SINGLE(lg2_approx, "lg2.approx.f32")
SINGLE(sin_approx, "sin.approx.f32")
SINGLE(cos_approx, "cos.approx.f32")
QUOTIENT(div_approx, "div.approx.f32")
QUOTIENT(div_approx_ftz, "div.approx.ftz.f32")
QUOTIENT(div_full, "div.full.f32")
QUOTIENT(div_full_ftz, "div.full.ftz.f32")
// A positive double; both words of the result folded into one.
struct rsqrt_approx_f64 {
    static constexpr int block = 20;
    static __device__ uint32_t at(uint32_t input) {
        double result, a = __longlong_as_double(mixed(input) & ~(1ull << 63));
        asm volatile("rsqrt.approx.f64 %0,%1;" : "=d"(result) : "d"(a));
        uint64_t bits = __double_as_longlong(result);
        return (uint32_t)(bits >> 32) * 0x9e3779b1u ^ (uint32_t)bits;
    }
};
#define FUNCTIONS(X)                                                                                          \
    X(mufu_rcp) X(mufu_rsq) X(mufu_sqrt) X(mufu_ex2) X(mufu_lg2) X(mufu_tanh) X(mufu_rcp64h) X(mufu_rsq64h)   \
    X(mufu_ex2_f16) X(mufu_ex2_bf16) X(mufu_tanh_f16) X(mufu_tanh_bf16) X(rcp_approx) X(rsqrt_approx)         \
    X(sqrt_approx) X(ex2_approx) X(lg2_approx) X(sin_approx) X(cos_approx) X(div_approx) X(div_approx_ftz)    \
    X(div_full) X(div_full_ftz) X(rsqrt_approx_f64)
#endif

template <class Function>
__global__ void sum_blocks(unsigned long long* sums) {
    uint32_t first = blockIdx.x << Function::block;
    uint64_t sum = 0;
    for (uint32_t n = threadIdx.x; n < 1u << Function::block; n += blockDim.x) {
        uint32_t input = first + n;
        uint64_t weight = input * 0x9e3779b97f4a7c15ull;
        weight = (weight ^ weight >> 32) | 1;
        sum += ((uint64_t)Function::at(input) + 1) * weight;
    }
    atomicAdd(&sums[blockIdx.x], (unsigned long long)sum);
}

template <class Function>
void record(const std::string& path) {
    int blocks = Function::block == 20 ? 4096 : 64;
    unsigned long long* device;
    CHECK(cudaMalloc(&device, 8 * blocks));
    CHECK(cudaMemset(device, 0, 8 * blocks));
    sum_blocks<Function><<<blocks, 256>>>(device);
    std::vector<unsigned long long> sums(blocks);
    CHECK(cudaMemcpy(sums.data(), device, 8 * blocks, cudaMemcpyDeviceToHost));
    CHECK(cudaFree(device));
    FILE* file = fopen(path.c_str(), "wb");
    if (!file || fwrite(sums.data(), 8, blocks, file) != (size_t)blocks || fclose(file)) {
        fprintf(stderr, "cannot write %s\n", path.c_str());
        exit(1);
    }
}

int main(int count, char** arguments) {
    std::string folder = count > 1 ? arguments[1] : ".";
#define RECORD(NAME) record<NAME>(folder + "/" #NAME ".sums");
    FUNCTIONS(RECORD)
    return 0;
}
