// Reads of the same lines by several SMs: which of them reach L2 as one, and for how long.
//
// Run under a profiler that counts sectors of L1 and L2, without emptying caches. Every launch prints
// `launch,kernel,parameter`.
#include "common.cuh"

static int launches = 0;

static void say(const char* kernel, const std::string& parameter) {
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    std::printf("%d,%s,%s\n", launches++, kernel, parameter.c_str());
    std::fflush(stdout);
}

// SMs of the mask read the same lines, each warp a line at a time; those after the first begin later.
__global__ void read_same(const float* in, float* out, unsigned long long low, unsigned long long high, unsigned last, int lines, long long delay, unsigned* gate) {
    unsigned number = sm();
    bool chosen = number < 64 ? low >> number & 1 : number < 128 ? high >> (number - 64) & 1 : last >> (number - 128) & 1;
    if (!chosen) return;
    // All begin at the same time of the GPU's own clock, a little later than now.
    unsigned long long begin, now;
    asm volatile("mov.u64 %0,%%globaltimer;" : "=l"(now));
    begin = (now / 8192 + 2) * 8192;
    do asm volatile("mov.u64 %0,%%globaltimer;" : "=l"(now));
    while (now < begin);
    unsigned first = low ? __ffsll(low) - 1 : 64;
    if (number != first) {
        long long start = clock64();
        while (clock64() - start < delay) {}
    }
    float sum = 0;
    for (int i = 0; i < lines; i++) {
        float value;
        asm volatile("ld.global.cg.f32 %0,[%1];" : "=f"(value) : "l"(in + i * 32 + threadIdx.x));
        sum += value;
        if (sum == 123.0f) break;
    }
    if (sum == 123.0f) out[0] = sum;
}

static void run(float* in, float* out, std::vector<int> sms, long long delay, const char* what) {
    unsigned long long low = 0, high = 0;
    unsigned last = 0;
    for (int number : sms) {
        if (number < 64) low |= 1ull << number;
        else if (number < 128) high |= 1ull << (number - 64);
        else last |= 1u << (number - 128);
    }
    read_same<<<132, 32>>>(in, out, low, high, last, 256, delay, nullptr);
    say("read_same", what);
}

int main() {
    float *in, *out;
    CHECK(cudaMalloc(&in, 1 << 20));
    CHECK(cudaMemset(in, 0, 1 << 20));
    CHECK(cudaMalloc(&out, 4096));
    run(in, out, {0}, 0, "sms=0");
    for (int other : {1, 2, 3, 4, 6, 8, 10, 12, 14, 16, 17, 18, 20, 24, 32, 33, 34, 36, 48, 64, 66, 80, 96, 112, 128, 131}) run(in, out, {0, other}, 0, text("sms=0,%d", other).c_str());
    std::vector<int> all, even;
    for (int i = 0; i < 132; i++) all.push_back(i);
    for (int i = 0; i < 132; i += 2) even.push_back(i);
    run(in, out, all, 0, "all");
    run(in, out, even, 0, "even");
    for (long long delay : {20, 50, 100, 150, 200, 250, 300, 400, 600, 1000}) run(in, out, {0, 1}, delay, text("sms=0,1 delay=%lld", delay).c_str());
    for (long long delay : {20, 100, 200, 300, 600}) run(in, out, {0, 16}, delay, text("sms=0,16 delay=%lld", delay).c_str());
    for (long long delay : {20, 100, 200, 300, 600}) run(in, out, {0, 2}, delay, text("sms=0,2 delay=%lld", delay).c_str());
    return 0;
}
