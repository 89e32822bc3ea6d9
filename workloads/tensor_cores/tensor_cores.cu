// Tensor cores, one warp a 16 x 8 (or 8 x 8) tile of C = A B, in every number format since Ampere: fragments are
// loaded from global memory as the PTX manual lays them out, so that each format's layout is checked.
//
// A is stored by rows, B by columns. Needs sm_80. Usage: tensor_cores [size, a multiple of 32]
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "../common/workload.cuh"

using namespace workload;

// Lane l of a fragment belongs to group l / 4, which is a row of A and C and a column of B, and is l % 4 in it.
struct Place {
    int group, within, row, column;
    __device__ Place(int tile_rows, int tile_columns)
        : group(threadIdx.x / 4), within(threadIdx.x % 4), row(blockIdx.y * tile_rows), column(blockIdx.x * tile_columns) {}
};

template <typename T>
__device__ unsigned word(const T* p) {
    return *reinterpret_cast<const unsigned*>(p);
}

template <typename T>
__device__ void store_tile(T* c, int n, const Place& at, const T sums[4]) {
    T* upper = c + (at.row + at.group) * n + at.column + at.within * 2;
    T* lower = upper + 8 * n;
    upper[0] = sums[0];
    upper[1] = sums[1];
    lower[0] = sums[2];
    lower[1] = sums[3];
}

// Sixteen-bit floats: 16 deep, two values a register.
template <bool brain>
__device__ void multiply_16(float c[4], const unsigned a[4], const unsigned b[2]) {
    if (brain)
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    else
        asm volatile(
            "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

template <typename T, bool brain>
__device__ void sixteen_bit_tile(const T* a, const T* b, float* c, int n) {
    Place at(16, 8);
    float sums[4] = {};
    for (int k = at.within * 2; k < n; k += 16) {
        const T* a_row = a + (at.row + at.group) * n + k;
        const T* b_column = b + (at.column + at.group) * n + k;
        unsigned left[4] = {word(a_row), word(a_row + 8 * n), word(a_row + 8), word(a_row + 8 * n + 8)};
        unsigned right[2] = {word(b_column), word(b_column + 8)};
        multiply_16<brain>(sums, left, right);
    }
    store_tile(c, n, at, sums);
}

__global__ void mma_fp16(const __half* a, const __half* b, float* c, int n) { sixteen_bit_tile<__half, false>(a, b, c, n); }

__global__ void mma_bf16(const __nv_bfloat16* a, const __nv_bfloat16* b, float* c, int n) {
    sixteen_bit_tile<__nv_bfloat16, true>(a, b, c, n);
}

// Half-precision sums: two a register.
__global__ void mma_fp16_sums(const __half* a, const __half* b, float* c, int n) {
    Place at(16, 8);
    unsigned sums[2] = {};
    for (int k = at.within * 2; k < n; k += 16) {
        const __half* a_row = a + (at.row + at.group) * n + k;
        const __half* b_column = b + (at.column + at.group) * n + k;
        asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1}, {%2,%3,%4,%5}, {%6,%7}, {%0,%1};"
                     : "+r"(sums[0]), "+r"(sums[1])
                     : "r"(word(a_row)), "r"(word(a_row + 8 * n)), "r"(word(a_row + 8)), "r"(word(a_row + 8 * n + 8)),
                       "r"(word(b_column)), "r"(word(b_column + 8)));
    }
    float2 upper = __half22float2(*reinterpret_cast<__half2*>(&sums[0]));
    float2 lower = __half22float2(*reinterpret_cast<__half2*>(&sums[1]));
    float out[4] = {upper.x, upper.y, lower.x, lower.y};
    store_tile(c, n, at, out);
}

// Single precision rounded to 19 bits: 8 deep, a value a register.
__global__ void mma_tf32(const float* a, const float* b, float* c, int n) {
    Place at(16, 8);
    float sums[4] = {};
    for (int k = at.within; k < n; k += 8) {
        const float* a_row = a + (at.row + at.group) * n + k;
        const float* b_column = b + (at.column + at.group) * n + k;
        float values[6] = {a_row[0], a_row[8 * n], a_row[4], a_row[8 * n + 4], b_column[0], b_column[4]};
        unsigned rounded[6];
        for (int i = 0; i < 6; i++) asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded[i]) : "f"(values[i]));
        asm volatile(
            "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+f"(sums[0]), "+f"(sums[1]), "+f"(sums[2]), "+f"(sums[3])
            : "r"(rounded[0]), "r"(rounded[1]), "r"(rounded[2]), "r"(rounded[3]), "r"(rounded[4]), "r"(rounded[5]));
    }
    store_tile(c, n, at, sums);
}

// Bytes: 32 deep, four values a register, exact sums.
__global__ void mma_int8(const signed char* a, const signed char* b, int* c, int n) {
    Place at(16, 8);
    int sums[4] = {};
    for (int k = at.within * 4; k < n; k += 32) {
        const signed char* a_row = a + (at.row + at.group) * n + k;
        const signed char* b_column = b + (at.column + at.group) * n + k;
        asm volatile(
            "mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
            : "+r"(sums[0]), "+r"(sums[1]), "+r"(sums[2]), "+r"(sums[3])
            : "r"(word(a_row)), "r"(word(a_row + 8 * n)), "r"(word(a_row + 16)), "r"(word(a_row + 8 * n + 16)),
              "r"(word(b_column)), "r"(word(b_column + 16)));
    }
    store_tile(c, n, at, sums);
}

// Double precision: 8 x 8 tiles, 4 deep.
__global__ void mma_fp64(const double* a, const double* b, double* c, int n) {
    Place at(8, 8);
    double sums[2] = {};
    for (int k = at.within; k < n; k += 4)
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
                     : "+d"(sums[0]), "+d"(sums[1])
                     : "d"(a[(at.row + at.group) * n + k]), "d"(b[(at.column + at.group) * n + k]));
    c[(at.row + at.group) * n + at.column + at.within * 2] = sums[0];
    c[(at.row + at.group) * n + at.column + at.within * 2 + 1] = sums[1];
}

// C = A B with A by rows and B by columns, from the values as the device sees them.
template <typename T, typename Value>
std::vector<double> product(const std::vector<T>& a, const std::vector<T>& b, int n, Value value) {
    std::vector<double> c(size_t(n) * n);
    for (int row = 0; row < n; row++)
        for (int column = 0; column < n; column++) {
            double sum = 0.0;
            for (int k = 0; k < n; k++) sum += value(a[size_t(row) * n + k]) * value(b[size_t(column) * n + k]);
            c[size_t(row) * n + column] = sum;
        }
    return c;
}

template <typename T, typename C, typename Kernel, typename Value>
double check(Kernel kernel, const std::vector<T>& a, const std::vector<T>& b, int n, int tile_rows, Value value) {
    Buffer<T> device_a(a), device_b(b);
    Buffer<C> device_c(size_t(n) * n);
    device_c.clear();
    kernel<<<dim3(n / 8, n / tile_rows), 32>>>(device_a, device_b, device_c, n);
    CHECK_LAUNCH();
    return worst_error(device_c.read(), product(a, b, n, value));
}

int main(int argc, char** argv) {
    int n = argument(argc, argv, 1, 64, 4096);
    if (n % 32 != 0) {
        std::fprintf(stderr, "tensor_cores: size %d is not a multiple of 32\n", n);
        return 2;
    }
    size_t count = size_t(n) * n;
    std::vector<float> a = uniform_values(count, -1.0f, 1.0f, 1), b = uniform_values(count, -1.0f, 1.0f, 2);
    std::vector<__half> half_a(count), half_b(count);
    std::vector<__nv_bfloat16> brain_a(count), brain_b(count);
    std::vector<signed char> byte_a(count), byte_b(count);
    std::vector<double> double_a(a.begin(), a.end()), double_b(b.begin(), b.end());
    for (size_t i = 0; i < count; i++) {
        half_a[i] = __float2half(a[i]);
        half_b[i] = __float2half(b[i]);
        brain_a[i] = __float2bfloat16(a[i]);
        brain_b[i] = __float2bfloat16(b[i]);
        byte_a[i] = static_cast<signed char>(a[i] * 127.0f);
        byte_b[i] = static_cast<signed char>(b[i] * 127.0f);
    }
    auto of_half = [](__half v) { return double(__half2float(v)); };
    auto of_brain = [](__nv_bfloat16 v) { return double(__bfloat162float(v)); };
    auto of_number = [](auto v) { return double(v); };
    double fp16 = check<__half, float>(mma_fp16, half_a, half_b, n, 16, of_half);
    double bf16 = check<__nv_bfloat16, float>(mma_bf16, brain_a, brain_b, n, 16, of_brain);
    double fp16_sums = check<__half, float>(mma_fp16_sums, half_a, half_b, n, 16, of_half);
    double tf32 = check<float, float>(mma_tf32, a, b, n, 16, of_number);
    double int8 = check<signed char, int>(mma_int8, byte_a, byte_b, n, 16, of_number);
    double fp64 = check<double, double>(mma_fp64, double_a, double_b, n, 8, of_number);
    bool passed = fp16 < 1e-5 * n && bf16 < 1e-5 * n && fp16_sums < 1e-3 * n && tf32 < 1e-4 * n && int8 == 0.0 &&
                  fp64 < 1e-12;
    return verdict("tensor_cores", passed,
                   "%d x %d, worst error %.1e fp16, %.1e bf16, %.1e fp16 sums, %.1e tf32, %.1e int8, %.1e fp64", n, n, fp16,
                   bf16, fp16_sums, tf32, int8, fp64);
}
