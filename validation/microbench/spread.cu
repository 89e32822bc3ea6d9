// How far apart the times of single loads lie: the same lines from several SMs, in L2 and in DRAM, and the slowest of
// several at once.
#include "common.cuh"

constexpr int LINES = 2048;

__device__ long long timed(const char* at) {
    unsigned value;
    long long begin = clock64();
    asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(value) : "l"(at) : "memory");
    asm volatile("{.reg .pred p; setp.eq.u32 p,%0,0xffffffff; @p trap;}" ::"r"(value) : "memory");
    return clock64() - begin;
}

// The time of each line, once for `rounds`; the last round counts.
__global__ void lines(const char* memory, size_t apart, unsigned chosen, int rounds, unsigned short* out) {
    if (sm() != chosen || threadIdx.x != 0) return;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < LINES; i++) {
            size_t line = (size_t(i) * 1237) % LINES;
            out[line] = (unsigned short)timed(memory + line * apart);
        }
}

// COUNT loads at once by one thread, the time until all are there.
template <int COUNT>
__global__ void at_once(const char* memory, size_t apart, int trials, int warm, long long* out) {
    long long sum = 0;
    for (int trial = 0; trial < trials; trial++) {
        const char* first = memory + size_t(trial) * COUNT * apart;
        for (int round = 0; round <= warm; round++) {
            unsigned values[COUNT], all = 0;
            // The page's translation first.
            timed(memory + (size_t(trial) * COUNT * apart & ~((size_t(1) << 21) - 1)));
            long long begin = clock64();
#pragma unroll
            for (int i = 0; i < COUNT; i++) asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(values[i]) : "l"(first + i * apart) : "memory");
#pragma unroll
            for (int i = 0; i < COUNT; i++) all |= values[i];
            asm volatile("{.reg .pred p; setp.eq.u32 p,%0,0xffffffff; @p trap;}" ::"r"(all) : "memory");
            if (round == warm) sum += clock64() - begin;
        }
    }
    out[0] = sum;
}

static void show(const char* name, const std::string& parameter, const unsigned short* device) {
    std::vector<unsigned short> times(LINES);
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(times.data(), device, LINES * 2, cudaMemcpyDeviceToHost));
    std::sort(times.begin(), times.end());
    double sum = 0;
    for (unsigned short time : times) sum += time;
    row(name, parameter + " mean", sum / LINES, "cycles");
    for (int part : {0, 1, 10, 25, 50, 75, 90, 99, 100})
        row(name, parameter + text(" share=%d%%", part), times[std::min(LINES - 1, LINES * part / 100)], "cycles");
}

int main() {
    warm_up();
    Clock clock;
    char* memory;
    const size_t bytes = 8ull << 30;
    CHECK(cudaMalloc(&memory, bytes));
    CHECK(cudaMemset(memory, 0, bytes));
    unsigned short* out;
    CHECK(cudaMalloc(&out, LINES * 2));
    for (unsigned chosen : {0u, 1u, 2u, 4u, 8u, 16u, 64u, 100u, 131u}) {
        lines<<<264, 32>>>(memory, 128, chosen, 3, out);
        show("l2_line_latency", text("sm=%u apart=128", chosen), out);
    }
    lines<<<264, 32>>>(memory + (1ull << 30), 128, 0, 1, out);
    show("dram_line_latency", "apart=128", out);
    lines<<<264, 32>>>(memory + (2ull << 30), 4096, 0, 1, out);
    show("dram_line_latency", "apart=4096", out);
    for (int warm = 0; warm < 2; warm++) {
        const char* where = warm ? "l2" : "dram";
        auto each = [&](int count, long long cycles, int trials) { row("at_once", text("%s loads=%d", where, count), double(cycles) / trials, "cycles"); };
        const int trials = 500;
        size_t apart = 4096 + 128;
        at_once<1><<<1, 1>>>(memory + (3ull << 30), apart, trials, warm, clock.cycles), each(1, clock.read(), trials);
        at_once<2><<<1, 1>>>(memory + (4ull << 30), apart, trials, warm, clock.cycles), each(2, clock.read(), trials);
        at_once<4><<<1, 1>>>(memory + (5ull << 30), apart, trials, warm, clock.cycles), each(4, clock.read(), trials);
        at_once<8><<<1, 1>>>(memory + (6ull << 30), apart, trials, warm, clock.cycles), each(8, clock.read(), trials);
        at_once<16><<<1, 1>>>(memory + (7ull << 30), apart, trials, warm, clock.cycles), each(16, clock.read(), trials);
    }
    return 0;
}
