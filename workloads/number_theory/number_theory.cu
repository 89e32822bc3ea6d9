// Whole numbers: powers modulo a number, greatest common divisors, a sieve in shared memory, and products of long numbers.
//
// Usage: number_theory [numbers]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 128;
constexpr int SEGMENT = 4096;  // numbers that a block sieves
constexpr int LIMBS = 8;
constexpr unsigned MODULUS = 4294967291u;

__host__ __device__ inline unsigned power(unsigned base, unsigned exponent) {
    unsigned long long result = 1, square = base;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1) result = result * square % MODULUS;
        square = square * square % MODULUS;
    }
    return unsigned(result);
}
__host__ __device__ inline unsigned divisor(unsigned a, unsigned b) {
    while (b) {
        unsigned rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}
__host__ __device__ inline void multiply(const unsigned* a, const unsigned* b, int stride, unsigned* out) {
    for (int i = 0; i < 2 * LIMBS; i++) out[i * stride] = 0;
    for (int i = 0; i < LIMBS; i++) {
        unsigned long long carry = 0;
        for (int k = 0; k < LIMBS; k++) {
            carry += (unsigned long long)a[i * stride] * b[k * stride] + out[(i + k) * stride];
            out[(i + k) * stride] = unsigned(carry);
            carry >>= 32;
        }
        out[(i + LIMBS) * stride] = unsigned(carry);
    }
}

__global__ void powers(const unsigned* numbers, int count, unsigned* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = power(numbers[i], numbers[i] >> 20 | 1u);
}
__global__ void divisors(const unsigned* numbers, int count, unsigned* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = divisor(numbers[i], numbers[(i + 1) % count] >> 4);
}
// How many numbers of the block's segment no small number divides.
__global__ void sieve(int* primes) {
    __shared__ unsigned char crossed[SEGMENT];
    __shared__ int left;
    unsigned low = blockIdx.x * SEGMENT;
    for (int k = threadIdx.x; k < SEGMENT; k += THREADS) crossed[k] = low + k < 2;
    if (threadIdx.x == 0) left = 0;
    __syncthreads();
    unsigned root = 1;
    while (root * root < low + SEGMENT) root++;
    for (unsigned factor = 2 + threadIdx.x; factor <= root; factor += THREADS) {
        unsigned first = max(factor * factor, (low + factor - 1) / factor * factor);
        for (unsigned k = first; k < low + SEGMENT; k += factor) crossed[k - low] = 1;
    }
    __syncthreads();
    int own = 0;
    for (int k = threadIdx.x; k < SEGMENT; k += THREADS) own += !crossed[k];
    atomicAdd(&left, own);
    __syncthreads();
    if (threadIdx.x == 0) primes[blockIdx.x] = left;
}
__global__ void long_products(const unsigned* a, const unsigned* b, int count, unsigned* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) multiply(a + i, b + i, count, out + i);
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 2048, 1 << 20), segments = std::max(1, count / 256), products = std::max(32, count / 4);
    Random random(29);
    std::vector<unsigned> numbers(count), a(size_t(products) * LIMBS), b(a.size());
    for (unsigned& number : numbers) number = random.next() | 1u;
    for (unsigned& limb : a) limb = random.next();
    for (unsigned& limb : b) limb = random.next();
    Buffer<unsigned> device(numbers), raised(count), common(count), left(a), right(b), product(a.size() * 2);
    Buffer<int> primes(segments);
    powers<<<blocks_for(count, THREADS), THREADS>>>(device, count, raised);
    divisors<<<blocks_for(count, THREADS), THREADS>>>(device, count, common);
    sieve<<<segments, THREADS>>>(primes);
    long_products<<<blocks_for(products, THREADS), THREADS>>>(left, right, products, product);
    CHECK_LAUNCH();
    std::vector<unsigned> wanted_powers(count), wanted_divisors(count), wanted_products(a.size() * 2);
    for (int i = 0; i < count; i++) {
        wanted_powers[i] = power(numbers[i], numbers[i] >> 20 | 1u);
        wanted_divisors[i] = divisor(numbers[i], numbers[(i + 1) % count] >> 4);
    }
    for (int i = 0; i < products; i++) multiply(&a[i], &b[i], products, &wanted_products[i]);
    std::vector<char> composite(size_t(segments) * SEGMENT, 0);
    std::vector<int> wanted_primes(segments, 0);
    for (size_t n = 2; n < composite.size(); n++) {
        if (composite[n]) continue;
        wanted_primes[n / SEGMENT]++;
        for (size_t k = n * n; k < composite.size(); k += n) composite[k] = 1;
    }
    size_t wrong = mismatches(raised.read(), wanted_powers) + mismatches(common.read(), wanted_divisors) +
                   mismatches(primes.read(), wanted_primes) + mismatches(product.read(), wanted_products);
    return verdict("number_theory", wrong == 0, "%d numbers, %zu wrong", count, wrong);
}
