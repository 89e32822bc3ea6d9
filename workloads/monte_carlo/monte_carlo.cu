// Monte Carlo: points in a quarter circle, and random walks of a price, with a counter-based generator a thread.
//
// Usage: monte_carlo [threads] [samples a thread]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 128;
constexpr int STEPS = 8;

// Three rounds of a 32-bit mixing function over (thread, counter): no state in memory.
__host__ __device__ inline unsigned random_word(unsigned thread, unsigned counter) {
    unsigned x = thread * 0x9e3779b9u + counter * 0x85ebca6bu + 0x27d4eb2fu;
    for (int round = 0; round < 3; round++) {
        x ^= x >> 16;
        x *= 0x7feb352du;
        x ^= x >> 15;
        x *= 0x846ca68bu;
    }
    return x ^ (x >> 16);
}

__global__ void count_inside(unsigned long long* inside, int samples, int threads) {
    __shared__ unsigned block_inside;
    if (threadIdx.x == 0) block_inside = 0;
    __syncthreads();
    unsigned thread = blockIdx.x * THREADS + threadIdx.x;
    unsigned found = 0;
    if (thread < threads)
        for (int s = 0; s < samples; s++) {
            // 16-bit coordinates: the test is exact in integers.
            unsigned word = random_word(thread, s);
            unsigned x = word & 0xffffu, y = word >> 16;
            found += (unsigned long long)x * x + (unsigned long long)y * y < 0x100000000ull;
        }
    atomicAdd(&block_inside, found);
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(inside, (unsigned long long)block_inside);
}

// Sum of four uniforms stands for a normal deviate.
__host__ __device__ inline float walk(unsigned thread, int sample) {
    float price = 100.0f;
    for (int step = 0; step < STEPS; step++) {
        unsigned word = random_word(thread ^ 0x5bd1e995u, sample * STEPS + step);
        int sum = int(word & 0xff) + int(word >> 8 & 0xff) + int(word >> 16 & 0xff) + int(word >> 24) - 510;
        price = price + price * (float(sum) * 0.0001f);
    }
    return price;
}

__global__ void walk_prices(float* means, int samples, int threads) {
    int thread = blockIdx.x * THREADS + threadIdx.x;
    if (thread >= threads) return;
    float sum = 0.0f;
    for (int s = 0; s < samples; s++) sum += walk(thread, s);
    means[thread] = sum / samples;
}

int main(int argc, char** argv) {
    int threads = argument(argc, argv, 1, 2048, 1 << 24);
    int samples = argument(argc, argv, 2, 16, 1 << 16);
    unsigned long long wanted = 0;
    std::vector<float> wanted_means(threads);
    for (int t = 0; t < threads; t++) {
        float sum = 0.0f;
        for (int s = 0; s < samples; s++) {
            unsigned word = random_word(t, s);
            unsigned long long x = word & 0xffffu, y = word >> 16;
            wanted += x * x + y * y < 0x100000000ull;
            sum += walk(t, s);
        }
        wanted_means[t] = sum / samples;
    }
    Buffer<unsigned long long> inside(1);
    Buffer<float> means(threads);
    inside.clear();
    count_inside<<<blocks_for(threads, THREADS), THREADS>>>(inside, samples, threads);
    walk_prices<<<blocks_for(threads, THREADS), THREADS>>>(means, samples, threads);
    CHECK_LAUNCH();
    unsigned long long got = inside.read_one();
    double error = worst_error(means.read(), wanted_means);
    return verdict("monte_carlo", got == wanted && error < 1e-5, "%d threads, pi is about %.4f, worst error of prices %.2e",
                   threads, 4.0 * got / (double(threads) * samples), error);
}
