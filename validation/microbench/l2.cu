// The L2 as SMs see it: how far each line is from each SM (two halves), and what one line, or a few, can deliver.
#include "common.cuh"

constexpr int LINES = 512;

// One thread of one SM asks for each line `rounds` times and keeps the least time; other SMs leave at once.
__global__ void distance_to_lines(const char* base, int wanted_sm, int stride, unsigned* least) {
    unsigned sm;
    asm volatile("mov.u32 %0,%%smid;" : "=r"(sm));
    if (sm != unsigned(wanted_sm)) return;
    for (int line = 0; line < LINES; line++) {
        const char* at = base + size_t(line) * stride;
        unsigned best = ~0u;
        for (int round = 0; round < 6; round++) {
            unsigned value;
            long long begin = clock64();
            asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(value) : "l"(at) : "memory");
            asm volatile("{.reg .pred p; setp.eq.u32 p,%0,0xffffffff; @p trap;}" ::"r"(value) : "memory");
            long long end = clock64();
            best = min(best, unsigned(end - begin));
        }
        least[line] = best;
    }
}

// Every warp of every SM reads lines out of a small set, again and again.
__global__ void hammer(const char* base, int lines, int stride, int rounds, unsigned* sink) {
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, sum = 0;
#pragma unroll 4
    for (int i = 0; i < rounds; i++) {
        const char* at = base + size_t((warp + i) % lines) * stride + threadIdx.x % 32 * 4;
        unsigned value;
        asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(value) : "l"(at));
        sum += value;
    }
    if (sum == 1) sink[0] = sum;
}

int main() {
    warm_up();
    char* base;
    unsigned* least;
    const size_t bytes = 64 << 20;
    CHECK(cudaMalloc(&base, bytes));
    CHECK(cudaMemset(base, 0, bytes));
    CHECK(cudaMalloc(&least, LINES * sizeof(unsigned)));
    cudaDeviceProp card;
    CHECK(cudaGetDeviceProperties(&card, 0));
    std::vector<unsigned> first;
    for (int stride : {128, 4096}) {
        for (int sm = 0; sm < card.multiProcessorCount; sm++) {
            CHECK(cudaMemset(least, 0, LINES * sizeof(unsigned)));
            distance_to_lines<<<card.multiProcessorCount * 2, 1>>>(base, sm, stride, least);
            std::vector<unsigned> found(LINES);
            CHECK(cudaMemcpy(found.data(), least, LINES * sizeof(unsigned), cudaMemcpyDeviceToHost));
            std::vector<unsigned> sorted = found;
            std::sort(sorted.begin(), sorted.end());
            double mean = 0, near = 0;
            unsigned middle = (sorted[LINES / 10] + sorted[LINES * 9 / 10]) / 2;
            for (unsigned value : found) mean += double(value) / LINES, near += value < middle;
            row("l2_distance", text("sm=%d stride=%d least", sm, stride), sorted[0], "cycles");
            row("l2_distance", text("sm=%d stride=%d mean", sm, stride), mean, "cycles");
            row("l2_distance", text("sm=%d stride=%d most", sm, stride), sorted[LINES - 1], "cycles");
            row("l2_distance", text("sm=%d stride=%d near lines", sm, stride), near, "lines of 512");
            if (sm == 0 && stride == 128) {
                first = found;
                for (int line = 0; line < 128; line++) row("l2_line", text("sm=0 line=%d", line), found[line], "cycles");
            }
        }
    }
    for (int stride : {32, 128, 4096, 65536}) {
        for (int lines : {1, 2, 4, 8, 16, 32, 64, 128, 256, 512}) {
            if (size_t(lines) * stride > bytes) break;
            const int blocks = card.multiProcessorCount, threads = 1024, rounds = 256;
            double time = milliseconds([&] { hammer<<<blocks, threads>>>(base, lines, stride, rounds, least); });
            row("l2_few_lines", text("lines=%d stride=%d", lines, stride), double(blocks) * threads * rounds * 4 / time / 1e6, "GB/s");
        }
    }
    return 0;
}
