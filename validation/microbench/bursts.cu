// Loads that many warps make at once, from DRAM and from L2, and functions of single precision one after the other.
#include "common.cuh"

// Every warp reads its own row, LINES lines at a time, and waits for all of them before the next.
template <int LINES>
__global__ void rows(const char* memory, size_t row_bytes, int batches, unsigned* out, unsigned* times) {
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    const char* at = memory + warp * row_bytes + lane * 4;
    long long total = 0;
    for (int batch = 0; batch < batches; batch++) {
        unsigned values[LINES], all = 0;
        long long begin = clock64();
#pragma unroll
        for (int i = 0; i < LINES; i++) asm volatile("ld.global.ca.u32 %0,[%1];" : "=r"(values[i]) : "l"(at + (size_t(batch) * LINES + i) * 128) : "memory");
#pragma unroll
        for (int i = 0; i < LINES; i++) all |= values[i];
        asm volatile("{.reg .pred p; setp.eq.u32 p,%0,0xffffffff; @p trap;}" ::"r"(all) : "memory");
        total += clock64() - begin;
    }
    if (lane == 0) times[warp] = unsigned(total / batches);
    if (total == 1) out[0] = 1;
}

__global__ void read_all(const uint4* memory, size_t count, unsigned* out) {
    unsigned sum = 0;
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) sum += memory[i].x;
    if (sum == 0x12345678) *out = sum;
}

static char *memory, *other;
static unsigned *out, *times;

template <int LINES>
void measure(int blocks, int threads, size_t row_bytes, bool cold) {
    int warps = blocks * threads / 32, batches = int(row_bytes / 128 / LINES);
    std::vector<double> means;
    for (int repetition = 0; repetition < 4; repetition++) {
        if (cold) read_all<<<1024, 256>>>(reinterpret_cast<uint4*>(other), (512 << 20) / 16, out);
        rows<LINES><<<blocks, threads>>>(memory, row_bytes, batches, out, times);
        std::vector<unsigned> each(warps);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(each.data(), times, warps * 4, cudaMemcpyDeviceToHost));
        double sum = 0;
        for (unsigned time : each) sum += time;
        if (repetition > 0) means.push_back(sum / warps);
    }
    row("rows", text("%s lines=%d blocks=%d threads=%d row=%zu", cold ? "dram" : "l2", LINES, blocks, threads, row_bytes), median(means), "cycles/batch");
}

constexpr int CHAIN = 256;
#define CHAIN_KERNEL(name, body)                                   \
    __global__ void name(long long* result, float a) {             \
        float x = a + threadIdx.x;                                 \
        for (int round = 0; round < 2; round++) {                  \
            long long begin = clock64();                           \
            for (int i = 0; i < CHAIN; i++) { body; }              \
            long long end = clock64();                             \
            if (threadIdx.x == 0) result[0] = end - begin;         \
        }                                                          \
        if (x == 123.456f) result[1] = 1;                          \
    }
CHAIN_KERNEL(divide, x = a / x + a)
CHAIN_KERNEL(reciprocal, x = 1.0f / x + a)
CHAIN_KERNEL(square_root, x = sqrtf(x) + a)
CHAIN_KERNEL(inverse_root, x = rsqrtf(x) + a)
CHAIN_KERNEL(exponential, x = expf(x - 3.0f * a))
CHAIN_KERNEL(fast_exponential, x = __expf(x - 3.0f * a))
CHAIN_KERNEL(fast_divide, x = __fdividef(a, x) + a)
CHAIN_KERNEL(logarithm, x = logf(x + 2.0f * a))
CHAIN_KERNEL(exchange_and_add, x += __shfl_xor_sync(~0u, x, 1))
CHAIN_KERNEL(exchange_three, float y = __shfl_xor_sync(~0u, x, 1); float z = __shfl_xor_sync(~0u, x + a, 2); float w = __shfl_xor_sync(~0u, x - a, 4); x += y + z * w)
CHAIN_KERNEL(vote_and_add, x += __any_sync(~0u, x > a) ? a : -a)

int main() {
    warm_up();
    CHECK(cudaMalloc(&memory, 256 << 20));
    CHECK(cudaMemset(memory, 0, 256 << 20));
    CHECK(cudaMalloc(&other, 512 << 20));
    CHECK(cudaMemset(other, 0, 512 << 20));
    CHECK(cudaMalloc(&out, 4096));
    CHECK(cudaMalloc(&times, 1 << 20));
    for (bool cold : {true, false})
        for (int blocks : {1, 16, 132}) {
            measure<1>(blocks, 128, 4096, cold);
            measure<4>(blocks, 128, 4096, cold);
            measure<16>(blocks, 128, 4096, cold);
            measure<1>(blocks, 128, 16384, cold);
            measure<16>(blocks, 128, 16384, cold);
            measure<4>(blocks, 512, 4096, cold);
            measure<4>(blocks, 512, 8192 + 128, cold);
        }
    Clock clock;
    struct Case {
        const char* name;
        void (*kernel)(long long*, float);
    };
    const Case cases[] = {{"divide and add", divide},           {"reciprocal and add", reciprocal}, {"square root and add", square_root},
                          {"inverse root and add", inverse_root}, {"exponential", exponential},       {"fast exponential", fast_exponential},
                          {"fast divide and add", fast_divide}, {"logarithm", logarithm},           {"exchange and add", exchange_and_add},
                          {"exchange three", exchange_three},   {"vote and add", vote_and_add}};
    for (const Case& c : cases)
        for (int threads : {32, 256, 1024}) {
            double cycles = clock.median_of([&](long long* result) { c.kernel<<<1, threads>>>(result, 1.5f); });
            row("single", text("%s threads=%d", c.name, threads), cycles / CHAIN, "cycles");
        }
    return 0;
}
