// DRAM rows and banks: what a second miss costs that lies a distance away from the first.
//
// Each trial takes lines that no trial touched before, of a region far larger than the L2; a neighbour in the same
// 2 MiB page is read first, so that translations are present and the row of that neighbour is the one last open.
#include "common.cuh"

__global__ void second_miss(char* region, size_t region_bytes, size_t distance, int trials, long long* out) {
    long long alone = 0, after = 0, together = 0;
    uint64_t state = 88172645463325252ull + distance;
    for (int trial = 0; trial < trials; trial++) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        size_t at = state % (region_bytes - 2 * distance - 4096) / 4096 * 4096;
        char* first = region + at;
        char* second = first + distance;
        unsigned value;
        // Translations of both pages, by lines far away in the page.
        char* page_of_first = reinterpret_cast<char*>((reinterpret_cast<uint64_t>(first) & ~((2ull << 20) - 1)) + ((at >> 5 ^ 0x155555) & 0x1fff00));
        char* page_of_second = reinterpret_cast<char*>((reinterpret_cast<uint64_t>(second) & ~((2ull << 20) - 1)) + ((at >> 7 ^ 0x0aaaaa) & 0x1fff00));
        asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(value) : "l"(page_of_first) : "memory");
        asm volatile("{.reg .pred p; setp.eq.u32 p,%0,0xffffffff; @p trap;}" ::"r"(value) : "memory");
        asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(value) : "l"(page_of_second) : "memory");
        asm volatile("{.reg .pred p; setp.eq.u32 p,%0,0xffffffff; @p trap;}" ::"r"(value) : "memory");
        long long t0 = clock64();
        asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(value) : "l"(first) : "memory");
        asm volatile("{.reg .pred p; setp.eq.u32 p,%0,0xffffffff; @p trap;}" ::"r"(value) : "memory");
        long long t1 = clock64();
        asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(value) : "l"(second) : "memory");
        asm volatile("{.reg .pred p; setp.eq.u32 p,%0,0xffffffff; @p trap;}" ::"r"(value) : "memory");
        long long t2 = clock64();
        // Both at once, from another fresh pair.
        unsigned other;
        char* third = first + 2048;
        char* fourth = second + 2048;
        long long t3 = clock64();
        asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(value) : "l"(third) : "memory");
        asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(other) : "l"(fourth) : "memory");
        asm volatile("{.reg .pred p; setp.eq.u32 p,%0,0xffffffff; @p trap;}" ::"r"(value | other) : "memory");
        long long t4 = clock64();
        alone += t1 - t0, after += t2 - t1, together += t4 - t3;
    }
    out[0] = alone, out[1] = after, out[2] = together;
}

// Streams of reads, each a distance apart, to see channels and banks fight.
__global__ void strided_read(const char* base, size_t bytes, size_t stride, unsigned* sink) {
    size_t count = bytes / stride;
    unsigned sum = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
        unsigned value;
        asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(value) : "l"(base + i * stride));
        sum += value;
    }
    if (sum == 1) sink[0] = sum;
}

__global__ void read_while_writing(uint4* base, size_t count, int writes_of_8, unsigned* sink) {
    unsigned sum = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
        // Whole warps write or read, so that sectors are never mixed.
        if (int((i / 32) % 8) < writes_of_8) base[i] = make_uint4(1, 2, 3, 4);
        else sum += base[i].x;
    }
    if (sum == 1) sink[0] = sum;
}

int main() {
    warm_up();
    Clock clock;
    char* region;
    const size_t bytes = 32ull << 30;
    CHECK(cudaMalloc(&region, bytes));
    CHECK(cudaMemset(region, 0, bytes));
    for (size_t distance : {size_t(128), size_t(256), size_t(512), size_t(1024), size_t(4096), size_t(8192), size_t(16384),
                            size_t(32768), size_t(65536), size_t(131072), size_t(262144), size_t(524288), size_t(1) << 20,
                            size_t(2) << 20, size_t(4) << 20, size_t(16) << 20, size_t(64) << 20}) {
        const int trials = 2000;
        second_miss<<<1, 1>>>(region, bytes, distance, trials, clock.cycles);
        clock.read();
        long long sums[3];
        CHECK(cudaMemcpy(sums, clock.cycles, sizeof sums, cudaMemcpyDeviceToHost));
        row("dram_first_miss", text("distance=%zu", distance), double(sums[0]) / trials, "cycles");
        row("dram_second_miss", text("distance=%zu", distance), double(sums[1]) / trials, "cycles");
        row("dram_two_at_once", text("distance=%zu", distance), double(sums[2]) / trials, "cycles");
    }
    unsigned* sink;
    CHECK(cudaMalloc(&sink, 64));
    for (size_t stride : {32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536}) {
        const size_t reach = std::min(bytes, size_t(4) << 20 << 10);
        double time = milliseconds([&] { strided_read<<<132 * 4, 512>>>(region, reach, stride, sink); });
        row("dram_strided_sectors", text("stride=%zu", stride), double(reach / stride) * 32 / time / 1e6, "GB/s of sectors");
    }
    for (int writes = 0; writes <= 8; writes++) {
        const size_t count = (size_t(4) << 30) / 16;
        double time = milliseconds([&] { read_while_writing<<<132 * 4, 512>>>(reinterpret_cast<uint4*>(region), count, writes, sink); });
        row("dram_mixed", text("writes=%d of 8", writes), double(count) * 16 / time / 1e6, "GB/s");
    }
    return 0;
}
