// Which lines L1 keeps, and how large it is.
//
//   l1_places maps       how often each line of a chain was found, by footprint, order and carve-out
//   l1_places strides    how many lines of a stride are kept
//   l1_places carveouts  launches for `ncu --metrics launch__shared_mem_config_size`: the row that is printed for each
//                        says what the launch asks for
//   l1_places lanes      launches for `ncu --metrics l1tex__t_sectors_lookup_hit.sum`: chains followed by many lanes
#include <cstring>

#include "common.cuh"

constexpr int WORDS = 32;  // of a line
constexpr int NEAR = 150;  // cycles; what comes sooner was in L1

// One thread follows a chain for some rounds; of the last `counted` it counts how often each line was there.
__global__ void follow(const unsigned* next, int lines, int rounds, int counted, unsigned char* found) {
    unsigned at = 0;
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < lines; i++) {
            unsigned line = at / WORDS;
            long long begin = clock64();
            asm volatile("ld.global.ca.u32 %0,[%1];" : "=r"(at) : "l"(next + at) : "memory");
            unsigned used = at + 1;
            asm volatile("add.u32 %0,%0,0;" : "+r"(used));
            long long end = clock64() + (used == 0x7fffffffu);
            // The count lies beyond L1: it is kept past it.
            if (round >= rounds - counted && end - begin < NEAR)
                asm volatile("red.global.add.u32 [%0],%1;" ::"l"((unsigned*)(found) + line), "r"(1u) : "memory");
        }
}

// All lanes of all warps follow the same cycle, from different places; hits are counted by the profiler.
__global__ void follow_lanes(const unsigned* next, int lines, int lanes, int steps, unsigned* out) {
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    if (lane >= lanes) return;
    unsigned walkers = blockDim.x / 32 * lanes, index = warp * lanes + lane;
    unsigned at = (unsigned long long)(index) * lines / walkers * WORDS;
    for (int i = 0; i < steps; i++) asm volatile("ld.global.ca.u32 %0,[%1];" : "=r"(at) : "l"(next + at) : "memory");
    out[threadIdx.x] = at;
}

__global__ void narrow(unsigned* out) { if (out) *out = threadIdx.x; }

// Many registers: as many as 64 values that are all needed at the end.
__global__ void wide(unsigned* out) {
    unsigned value[96];
    for (int i = 0; i < 96; i++) value[i] = out ? ((volatile unsigned*)out)[i] : 0;
    unsigned sum = 0;
    for (int i = 0; i < 96; i++) sum = sum * 31 + value[95 - i];
    if (out) *out = sum;
}

static void prefer(const void* kernel, int percent) {
    CHECK(cudaFuncSetAttribute(kernel, cudaFuncAttributePreferredSharedMemoryCarveout, percent));
}

static void maps(unsigned* device, unsigned* found) {
    for (int carveout : {0, 25, 50, 75})
        for (int random = 0; random < 2; random++)
            for (int kib : {56, 60, 64, 72, 80, 112, 120, 124, 128, 136, 144, 160, 184, 188, 192, 200, 208, 216, 220, 224, 232, 240, 248, 256, 288}) {
                int lines = kib * 8, room = carveout == 0 ? 216 : carveout == 25 ? 184 : carveout == 50 ? 112 : 56;
                if (kib < room || kib > room * 3 / 2) continue;
                auto next = cycle(lines, WORDS, random);
                CHECK(cudaMemcpy(device, next.data(), next.size() * 4, cudaMemcpyHostToDevice));
                CHECK(cudaMemset(found, 0, 1 << 20));
                prefer((const void*)follow, carveout);
                follow<<<1, 1>>>(device, lines, 17, 9, (unsigned char*)found);
                std::vector<unsigned> counts(lines);
                CHECK(cudaMemcpy(counts.data(), found, lines * 4, cudaMemcpyDeviceToHost));
                std::string digits;
                double sum = 0;
                for (unsigned count : counts) digits += char('0' + std::min(count, 9u)), sum += count;
                std::printf("map,%s KiB=%d carveout=%d,%.4f,%s\n", random ? "random" : "in turn", kib, carveout, sum / (9.0 * lines), digits.c_str());
            }
}

static void strides(unsigned* device, unsigned* found) {
    prefer((const void*)follow, 0);
    for (unsigned stride = 1; stride <= 4096; stride *= 2) {
        std::string shares;
        for (int lines : {32, 48, 64, 96, 128, 192, 224, 256, 384, 448, 512, 768, 896, 1024, 1536, 1792, 1920}) {
            if (size_t(lines) * stride > (64u << 20) / 128) break;
            auto next = cycle(lines, WORDS, false, stride);
            CHECK(cudaMemcpy(device, next.data(), next.size() * 4, cudaMemcpyHostToDevice));
            CHECK(cudaMemset(found, 0, 64 << 20 >> 5));
            follow<<<1, 1>>>(device, lines, 10, 4, (unsigned char*)found);
            std::vector<unsigned> counts(size_t(lines) * stride);
            CHECK(cudaMemcpy(counts.data(), found, counts.size() * 4, cudaMemcpyDeviceToHost));
            double sum = 0;
            for (unsigned count : counts) sum += count;
            shares += text(" %d:%.3f", lines, sum / (4.0 * lines));
        }
        std::printf("stride,%u lines,%s\n", stride, shares.c_str());
        std::fflush(stdout);
    }
}

static void carveouts() {
    int number = 0;
    CHECK(cudaFuncSetAttribute(narrow, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 << 10));
    CHECK(cudaFuncSetAttribute(wide, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 << 10));
    for (int kernel = 0; kernel < 2; kernel++)
        for (int percent : {-1, 0, 1, 25, 50, 100})
            for (int own : {0, 16, 1024, 4096, 10240, 20480, 49152, 102400})
                for (int threads : {1, 64, 128, 256, 512, 1024}) {
                    if (kernel == 1 && (percent > 0 || threads > 512)) continue;
                    if (percent > 0 && threads != 64 && threads != 256) continue;
                    for (int blocks : {1, 5000}) {
                        if (blocks > 1 && (percent != -1 || threads != 256)) continue;
                        auto function = kernel ? wide : narrow;
                        prefer((const void*)function, percent);
                        function<<<blocks, threads, own>>>(nullptr);
                        CHECK(cudaGetLastError());
                        std::printf("launch,%d,%s percent=%d own=%d threads=%d blocks=%d\n", number++, kernel ? "wide" : "narrow", percent, own, threads, blocks);
                    }
                }
    CHECK(cudaDeviceSynchronize());
}

static void lanes(unsigned* device, unsigned* out) {
    int number = 0;
    for (int kib : {64, 128, 192, 208, 224, 232, 240, 256, 288, 320, 512}) {
        auto next = cycle(kib * 8, WORDS, true);
        CHECK(cudaMemcpy(device, next.data(), next.size() * 4, cudaMemcpyHostToDevice));
        for (int warps : {1, 4, 16})
            for (int count : {1, 8, 32}) {
                int steps = std::max(1, 10 * kib * 8 / (warps * count));
                follow_lanes<<<1, warps * 32>>>(device, kib * 8, count, steps, out);
                CHECK(cudaDeviceSynchronize());
                std::printf("lanes,%d,KiB=%d warps=%d lanes=%d steps=%d\n", number++, kib, warps, count, steps);
            }
    }
}

int main(int count, char** arguments) {
    const char* part = count > 1 ? arguments[1] : "maps";
    unsigned *device, *found;
    CHECK(cudaMalloc(&device, 64 << 20));
    CHECK(cudaMalloc(&found, 64 << 20 >> 5));
    if (!std::strcmp(part, "maps")) maps(device, found);
    if (!std::strcmp(part, "strides")) strides(device, found);
    if (!std::strcmp(part, "carveouts")) carveouts();
    if (!std::strcmp(part, "lanes")) lanes(device, found);
    return 0;
}
