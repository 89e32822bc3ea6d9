// What L2 and DRAM are asked while a kernel only waits: by how long it does, on how many SMs, and by the length of its code.
// Run under a profiler; every launch prints its parameters.
#include "common.cuh"

static int launches = 0;

static void say(const std::string& what) {
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    std::printf("%d,%s\n", launches++, what.c_str());
}

__global__ void wait_for(long long cycles) {
    long long begin = clock64();
    while (clock64() - begin < cycles) {}
}

// Straight code of `N` instructions.
template <int N>
__global__ void straight(unsigned a, unsigned* out) {
    unsigned x = threadIdx.x;
#pragma unroll
    for (int i = 0; i < N; i++) asm volatile("mad.lo.u32 %0,%0,%1,%1;" : "+r"(x) : "r"(a));
    if (x == 0x12345678) out[0] = x;
}

int main() {
    unsigned* out;
    CHECK(cudaMalloc(&out, 4096));
    for (int repetition = 0; repetition < 2; repetition++)
        for (int blocks : {1, 132})
            for (long long cycles : {1000, 8000, 16000, 24000, 32000, 48000, 64000, 96000, 128000, 256000, 1024000}) {
                wait_for<<<blocks, 32>>>(cycles), say(text("wait blocks=%d cycles=%lld", blocks, cycles));
            }
    for (int repetition = 0; repetition < 2; repetition++)
        for (int blocks : {1, 132}) {
            straight<64><<<blocks, 32>>>(3, out), say(text("straight blocks=%d instructions=64", blocks));
            straight<512><<<blocks, 32>>>(3, out), say(text("straight blocks=%d instructions=512", blocks));
            straight<2048><<<blocks, 32>>>(3, out), say(text("straight blocks=%d instructions=2048", blocks));
            straight<8192><<<blocks, 32>>>(3, out), say(text("straight blocks=%d instructions=8192", blocks));
        }
    return 0;
}
