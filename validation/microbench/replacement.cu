// What L1 keeps: how many loads of a chain hit, by footprint, order of the chain and carve-out.
#include "common.cuh"

constexpr int WORDS = 32;  // of a line
constexpr int ROUNDS = 6;  // the first two do not count

// One thread follows a chain; loads that take less than `near` cycles were in L1.
__global__ void follow(const unsigned* next, int lines, int near, long long* out) {
    unsigned at = 0;
    long long hits = 0;
    for (int i = 0; i < ROUNDS * lines; i++) {
        long long begin = clock64();
        asm volatile("ld.global.ca.u32 %0,[%1];" : "=r"(at) : "l"(next + at) : "memory");
        asm volatile("" ::"r"(at) : "memory");
        unsigned used = at + 1;
        asm volatile("add.u32 %0,%0,0;" : "+r"(used));
        long long end = clock64() + (used == 0x7fffffffu);
        if (i >= 2 * lines && end - begin < near) hits++;
    }
    out[0] = hits;
}

int main() {
    warm_up();
    Clock clock;
    unsigned* device;
    CHECK(cudaMalloc(&device, 1 << 20));
    for (int carveout : {0, 25, 50})
        for (int random = 0; random < 2; random++)
            for (int kib : {64, 96, 112, 128, 144, 160, 176, 192, 200, 208, 216, 224, 232, 240, 248, 256, 272, 288, 320, 384}) {
                int lines = kib * 8;
                std::vector<unsigned> next = cycle(lines, WORDS, random);
                CHECK(cudaMemcpy(device, next.data(), next.size() * 4, cudaMemcpyHostToDevice));
                CHECK(cudaFuncSetAttribute(follow, cudaFuncAttributePreferredSharedMemoryCarveout, carveout));
                follow<<<1, 1>>>(device, lines, 150, clock.cycles);
                CHECK(cudaGetLastError());
                row("l1_hits", text("%s KiB=%d carveout=%d", random ? "random" : "in turn", kib, carveout), double(clock.read()) / ((ROUNDS - 2.0) * lines), "share");
            }
    return 0;
}
