// Translation of device memory: chases with one line a page of 2 MiB, from one SM and from several; first touches.
//
// Prints rows `probe,parameters,value`, cycles a step.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#define CHECK(call) do { cudaError_t s_ = (call); if (s_ != cudaSuccess) { std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(s_)); std::exit(2); } } while (0)

// `turn` of an SM: -1 does nothing, others chase from start[turn]; two passes, the second is kept.
__global__ void chase(const uint64_t* starts, const int* turns, unsigned* out, int steps, int l1) {
    unsigned sm;
    asm volatile("mov.u32 %0,%%smid;" : "=r"(sm));
    int turn = turns[sm];
    if (turn < 0) return;
    uint64_t at = starts[turn];
    for (int pass = 0; pass < 2; pass++) {
        unsigned begin = clock();
        if (l1) for (int i = 0; i < steps; i++) asm volatile("ld.global.ca.u64 %0,[%0];" : "+l"(at));
        else for (int i = 0; i < steps; i++) asm volatile("ld.global.cg.u64 %0,[%0];" : "+l"(at));
        asm volatile("{.reg .pred p; setp.eq.u64 p,%0,1; @p trap;}" ::"l"(at) : "memory");
        out[turn * 2 + pass] = clock() - begin;
    }
}

// Every single step; whole warps, lane 0 counts.
__global__ void steps_of_chase(uint64_t start, unsigned* out, int steps) {
    uint64_t at = start;
    for (int i = 0; i < steps; i++) {
        unsigned begin = clock();
        asm volatile("ld.global.cg.u64 %0,[%0];" : "+l"(at) :: "memory");
        asm volatile("{.reg .pred p; setp.eq.u64 p,%0,1; @p trap;}" ::"l"(at) : "memory");
        out[i] = clock() - begin;
    }
}

__global__ void link(char* base, const uint64_t* offsets, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) *reinterpret_cast<uint64_t*>(base + offsets[i]) = reinterpret_cast<uint64_t>(base + offsets[(i + 1) % count]);
}

// Random sectors of `pages` pages, `distance` apart, 4 independent loads a thread at a time.
__global__ void random_reads(const char* base, float* out, uint64_t pages, uint64_t distance, unsigned span, int rounds) {
    uint64_t state = (blockIdx.x * blockDim.x + threadIdx.x + 1) * 0x9E3779B97F4A7C15ull;
    float sum = 0;
    for (int i = 0; i < rounds; i++) {
#pragma unroll
        for (int j = 0; j < 4; j++) {
            state = state * 6364136223846793005ull + 1442695040888963407ull;
            uint64_t page = (state >> 33) * pages >> 31;
            sum += *reinterpret_cast<const float*>(base + page * distance + (state >> 8 & (span - 1) & ~31u));
        }
    }
    if (sum == 1.2345f) out[0] = sum;
}

__global__ void where(int* cluster_of) {
    unsigned sm, cluster;
    asm volatile("mov.u32 %0,%%smid;" : "=r"(sm));
    asm volatile("mov.u32 %0,%%clusterid.x;" : "=r"(cluster));
    if (threadIdx.x == 0) cluster_of[sm] = cluster;
}

static char* base;
static uint64_t* offsets;
static unsigned* out;
static uint64_t* starts;
static int* turns;

static std::vector<uint64_t> linked(size_t first, int pages, size_t distance, int lines_apart, bool random) {
    std::vector<uint64_t> order(pages);
    for (int i = 0; i < pages; i++) order[i] = i;
    uint64_t state = 88172645463325252ull;
    for (int i = pages - 1; random && i > 0; i--) {
        state ^= state << 13, state ^= state >> 7, state ^= state << 17;
        std::swap(order[i], order[state % (i + 1)]);
    }
    for (uint64_t& page : order) page = first + page * distance + (page * lines_apart % 512) * 128;
    CHECK(cudaMemcpy(offsets, order.data(), order.size() * 8, cudaMemcpyHostToDevice));
    link<<<(pages + 255) / 256, 256>>>(base, offsets, pages);
    CHECK(cudaDeviceSynchronize());
    return order;
}

int main() {
    CHECK(cudaMalloc(&offsets, 1 << 20));
    CHECK(cudaMalloc(&out, 1 << 20));
    CHECK(cudaMalloc(&starts, 132 * 8));
    CHECK(cudaMalloc(&turns, 132 * 4));
    size_t total = 132ull << 30;
    while (cudaMalloc(&base, total) != cudaSuccess) {
        cudaGetLastError();
        total -= 4ull << 30;
    }
    std::printf("memory,GiB,%zu\n", total >> 30);
    int* clusters;
    CHECK(cudaMalloc(&clusters, 132 * 4));
    CHECK(cudaMemset(clusters, 0xff, 132 * 4));
    CHECK(cudaFuncSetAttribute(where, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 16, attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(16 * 7), config.blockDim = dim3(1024), config.attrs = &attribute, config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, where, clusters));
    std::vector<int> gpc(132);
    CHECK(cudaMemcpy(gpc.data(), clusters, 132 * 4, cudaMemcpyDeviceToHost));
    int first = 0, same = -1, other = -1;
    while (first < 132 && gpc[first] < 0) first += 2;
    for (int i = 0; i < 132; i++) {
        if (gpc[i] < 0 || i / 2 == first / 2) continue;
        if (gpc[i] == gpc[first] && same < 0) same = i;
        if (gpc[i] != gpc[first] && other < 0) other = i;
    }
    // First touches: after memory was freed, translations are forgotten; every step, in order of addresses and not.
    for (size_t distance : {size_t(2) << 20, size_t(32) << 20, size_t(512) << 20})
        for (bool random : {false, true}) {
            int pages = int(std::min<size_t>(256, total / distance));
            auto order = linked(0, pages, distance, 37, random);
            char* freed;
            CHECK(cudaMalloc(&freed, 64 << 20));
            CHECK(cudaMemset(freed, 0, 64 << 20));
            CHECK(cudaFree(freed));
            for (int pass = 0; pass < 2; pass++) {
                steps_of_chase<<<1, 32>>>(reinterpret_cast<uint64_t>(base + order[0]), out, pages);
                std::vector<unsigned> times(pages);
                CHECK(cudaMemcpy(times.data(), out, pages * 4, cudaMemcpyDeviceToHost));
                for (int i = 0; i < pages; i++) std::printf("touch,distance=%zuMiB random=%d pass=%d step=%d,%u\n", distance >> 20, random, pass, i, times[i]);
            }
        }
    // One SM: reach and cost, past L1 (cg) and through it (ca).
    auto run = [&](const char* who, std::vector<int> sms, std::vector<uint64_t> from, int steps, int l1, const char* what) {
        std::vector<int> turn(132, -1);
        for (size_t i = 0; i < sms.size(); i++) turn[sms[i]] = int(i);
        for (uint64_t& at : from) at += reinterpret_cast<uint64_t>(base);
        CHECK(cudaMemcpy(turns, turn.data(), 132 * 4, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(starts, from.data(), from.size() * 8, cudaMemcpyHostToDevice));
        for (int repetition = 0; repetition < 2; repetition++) chase<<<132, 1>>>(starts, turns, out, steps, l1);
        std::vector<unsigned> times(sms.size() * 2);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(times.data(), out, times.size() * 4, cudaMemcpyDeviceToHost));
        double sum = 0;
        for (size_t i = 0; i < sms.size(); i++) sum += times[2 * i + 1];
        std::printf("chase,%s %s l1=%d,%.2f\n", what, who, l1, sum / sms.size() / steps);
    };
    char what[100];
    for (size_t distance : {size_t(2) << 20, size_t(8) << 20, size_t(32) << 20, size_t(64) << 20})
        for (int pages : {4, 8, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 320, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536}) {
            if (distance * pages > total) break;
            for (int l1 : {0, 1}) {
                if (l1 && pages > 1024) continue;
                auto order = linked(0, pages, distance, 37, true);
                std::snprintf(what, sizeof what, "distance=%zuMiB pages=%d", distance >> 20, pages);
                run("one SM", {first}, {order[0]}, std::max(512, std::min(pages, 8192)), l1, what);
            }
        }
    // Several SMs, each in pages of its own: do they share reach?
    for (int pages : {4, 8, 12, 16, 32, 64, 512, 1024})
        for (int who = 0; who < 4; who++) {
            std::vector<int> sms = who == 0 ? std::vector<int>{first} : who == 1 ? std::vector<int>{first, first + 1} : who == 2 ? std::vector<int>{first, same} : std::vector<int>{first, other};
            std::vector<uint64_t> from;
            for (size_t i = 0; i < sms.size(); i++) from.push_back(linked(i * (64ull << 30), pages, 32 << 20, 37 + int(i) * 2, true)[0]);
            std::snprintf(what, sizeof what, "distance=32MiB pages=%d each", pages);
            run(who == 0 ? "one SM" : who == 1 ? "two SMs of a TPC" : who == 2 ? "two SMs of a GPC" : "two GPCs", sms, from, 1024, 0, what);
        }
    // Every SM at random: reads a second over footprint, few sectors a page so that L2 holds them, or all of it.
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    for (unsigned span : {512u, 2u << 20})
        for (uint64_t pages : {8, 32, 128, 256, 512, 1024, 4096, 8192, 16384, 32768, 49152, 65536}) {
            if (pages * (2 << 20) > total) break;
            float best = 1e9f;
            for (int repetition = 0; repetition < 3; repetition++) {
                CHECK(cudaEventRecord(begin));
                random_reads<<<132 * 8, 256>>>(base, reinterpret_cast<float*>(out), pages, 2 << 20, span, 8);
                CHECK(cudaEventRecord(end));
                CHECK(cudaEventSynchronize(end));
                float time;
                CHECK(cudaEventElapsedTime(&time, begin, end));
                best = std::min(best, time);
            }
            std::printf("random,pages=%lu span=%u reads per ns,%.3f\n", (unsigned long)pages, span, 132.0 * 8 * 256 * 32 / (best * 1e6));
        }
    return 0;
}
