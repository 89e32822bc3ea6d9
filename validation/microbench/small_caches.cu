// The constant caches and the instruction caches: time of one step against the bytes that are visited in turn.
#include "common.cuh"

constexpr int WORDS = 16384;  // the whole bank of 64 KiB
__constant__ unsigned table[WORDS];

// Visits `count` words `stride` bytes apart, each naming the next, twice; the second time counts.
__global__ void chase_constants(long long* out, int steps) {
    unsigned at = 0;
    const char* base = reinterpret_cast<const char*>(table);
    for (int i = 0; i < steps; i++) at = *reinterpret_cast<const unsigned*>(base + at);
    long long begin = clock64();
    for (int i = 0; i < steps; i++) at = *reinterpret_cast<const unsigned*>(base + at);
    long long end = clock64();
    out[0] = end - begin;
    if (at == 1) out[1] = at;
}

// Different constants in the lanes of one warp are read one after the other. Each address depends on the word before,
// which is zero, so that no load can be left out.
__global__ void spread_constants(long long* out, int distinct) {
    unsigned own = (threadIdx.x % distinct) * 4, at = own;
    const char* base = reinterpret_cast<const char*>(table);
    for (int round = 0; round < 2; round++) {
        long long begin = clock64();
#pragma unroll 16
        for (int i = 0; i < 256; i++) at = own + *reinterpret_cast<const unsigned*>(base + at);
        long long end = clock64();
        if (threadIdx.x == 0) out[0] = end - begin;
    }
    if (at == 1) out[1] = at;
}

// Straight code of N instructions of 16 bytes in a loop.
template <int N>
__global__ void straight_code(long long* out, int rounds, int seed) {
    int a = seed, b = seed + 1;
    long long begin = 0;
    for (int round = 0; round <= rounds; round++) {
        if (round == 1) begin = clock64();  // the first round brings the code in
#pragma unroll
        for (int i = 0; i < N / 2; i++) {
            asm volatile("mad.lo.s32 %0,%0,%2,%2; mad.lo.s32 %1,%1,%2,%2;" : "+r"(a), "+r"(b) : "r"(seed));
        }
    }
    long long end = clock64();
    if (threadIdx.x == 0 && blockIdx.x == 0) out[0] = end - begin;
    if (a + b == 123456789) out[1] = a;
}

template <int N>
void code(const Clock& clock) {
    const int rounds = N > 4096 ? 8 : 32;
    for (int threads : {32, 128}) {
        double cycles = clock.median_of([&](long long* out) { straight_code<N><<<1, threads>>>(out, rounds, 3); });
        row("instruction_fetch", text("code=%dKiB threads=%d", N * 16 / 1024, threads), cycles / rounds / N, "cycles/inst");
    }
    double all = clock.median_of([&](long long* out) { straight_code<N><<<132, 32>>>(out, rounds, 3); });
    row("instruction_fetch", text("code=%dKiB threads=32 on every SM", N * 16 / 1024), all / rounds / N, "cycles/inst");
}

int main() {
    warm_up();
    Clock clock;
    for (int stride : {64, 256}) {
        for (int bytes : {512, 1024, 1536, 2048, 3072, 4096, 8192, 16384, 24576, 32768, 40960, 49152, 65536}) {
            int count = std::max(1, bytes / stride);
            std::vector<unsigned> words(WORDS, 0);
            for (int i = 0; i < count; i++) words[i * stride / 4] = unsigned((i + 1) % count) * stride;
            CHECK(cudaMemcpyToSymbol(table, words.data(), sizeof table));
            int steps = std::max(512, count);
            double cycles = clock.median_of([&](long long* out) { chase_constants<<<1, 1>>>(out, steps); });
            row("constant_latency", text("footprint=%dB stride=%d", bytes, stride), cycles / steps, "cycles");
        }
    }
    std::vector<unsigned> zero(WORDS, 0);
    CHECK(cudaMemcpyToSymbol(table, zero.data(), sizeof table));
    for (int distinct : {1, 2, 4, 8, 16, 32}) {
        double cycles = clock.median_of([&](long long* out) { spread_constants<<<1, 32>>>(out, distinct); });
        row("constant_spread", text("addresses=%d", distinct), cycles / 256, "cycles/inst");
    }
    code<512>(clock);
    code<1024>(clock);
    code<1536>(clock);
    code<2048>(clock);
    code<3072>(clock);
    code<4096>(clock);
    code<6144>(clock);
    code<8192>(clock);
    code<12288>(clock);
    code<16384>(clock);
    return 0;
}
