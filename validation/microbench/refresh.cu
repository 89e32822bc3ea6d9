// How long loads from DRAM take one by one and many at once: the tail says how a channel is refreshed.
#include "common.cuh"

constexpr int BINS = 200, WIDTH = 10;
constexpr size_t PIECE = 16 << 20;

// One thread, one line after the other; each wait goes into a histogram.
__global__ void one_by_one(const char* memory, int loads, size_t apart, unsigned* histogram) {
    __shared__ unsigned bins[BINS];
    __shared__ volatile unsigned seen[32];
    for (int i = 0; i < BINS; i++) bins[i] = 0;
    // Every page has been met.
    unsigned at = 0;
    for (size_t i = 0; i < PIECE; i += 1 << 21) at += __ldcg(reinterpret_cast<const unsigned*>(memory + i));
    at = at == 0x12345678;
    for (int i = 1; i <= loads; i++) {
        const char* where = memory + i * apart + at;
        long long begin = clock64();
        unsigned value;
        asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(value) : "l"(where) : "memory");
        // What waits for the value also holds up the clock behind it.
        seen[0] = value;
        long long end = clock64();
        at = value == 0x12345678 ? 128 : 0;
        bins[min(int(end - begin) / WIDTH, BINS - 1)]++;
    }
    for (int i = 0; i < BINS; i++) atomicAdd(histogram + i, bins[i]);
}

// A block loads as many lines at once as it has threads, and waits for the slowest.
__global__ void at_once(const char* memory, int rounds, size_t apart, unsigned* histogram) {
    __shared__ volatile unsigned seen[32];
    unsigned at = 0;
    for (size_t i = 0; i < PIECE; i += 1 << 21) at += __ldcg(reinterpret_cast<const unsigned*>(memory + i));
    at = at == 0x12345678;
    for (int i = 0; i < rounds; i++) {
        const char* where = memory + ((size_t(i) * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x + 1) * apart + at;
        __syncthreads();
        long long begin = clock64();
        unsigned value;
        asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(value) : "l"(where) : "memory");
        seen[threadIdx.x % 32] = value;
        __syncthreads();
        long long end = clock64();
        at = value == 0x12345678 ? 128 : 0;
        if (threadIdx.x == 0) atomicAdd(histogram + min(int(end - begin) / WIDTH, BINS - 1), 1);
    }
}

static void tell(const std::string& what, unsigned* device) {
    std::vector<unsigned> bins(BINS);
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(bins.data(), device, BINS * 4, cudaMemcpyDeviceToHost));
    CHECK(cudaMemset(device, 0, BINS * 4));
    double all = 0, sum = 0;
    for (int i = 0; i < BINS; i++) all += bins[i], sum += bins[i] * (i + 0.5) * WIDTH;
    row("dram_wait", what + " mean", sum / all, "cycles");
    for (double share : {0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 0.999}) {
        double below = 0;
        int i = 0;
        while (i < BINS && (below += bins[i]) < share * all) i++;
        row("dram_wait", what + text(" share=%.3f", share), (i + 0.5) * WIDTH, "cycles");
    }
    if (what.find("one by one") == 0)
        for (int i = 0; i < BINS; i++)
            if (bins[i]) row("dram_wait", what + text(" from=%d", i * WIDTH), bins[i] / all, "share");
}

int main() {
    warm_up();
    char* memory;
    constexpr int PIECES = 96;
    CHECK(cudaMalloc(&memory, PIECE * (PIECES + 8)));
    unsigned* histogram;
    CHECK(cudaMalloc(&histogram, BINS * 4));
    CHECK(cudaMemset(histogram, 0, BINS * 4));
    int piece = 0;
    for (int i = 0; i < 6; i++) one_by_one<<<1, 1>>>(memory + PIECE * (piece++ % PIECES), 3000, 4224, histogram);
    tell("one by one", histogram);
    for (int blocks : {1, 64})
        for (int threads : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512}) {
            int rounds = std::min<size_t>(100, PIECE / 640 / blocks / threads);
            for (int i = 0; i < 3; i++) at_once<<<blocks, threads>>>(memory + PIECE * (piece++ % PIECES), rounds, 640, histogram);
            tell(text("at once blocks=%d loads=%d", blocks, threads), histogram);
        }
    return 0;
}
