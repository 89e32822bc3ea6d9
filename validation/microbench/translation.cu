// Reach of the translation caches: a chase over pages, one line a page, at several distances between pages.
//
// Lines are spread over the sets of the caches, and few enough that data stays in the L2: what grows is translation.
#include "common.cuh"

__global__ void chase(const uint64_t* start, long long* out, int steps) {
    uint64_t at = reinterpret_cast<uint64_t>(start);
    for (int i = 0; i < steps; i++) asm volatile("ld.global.cg.u64 %0,[%0];" : "+l"(at));
    long long begin = clock64();
    for (int i = 0; i < steps; i++) asm volatile("ld.global.cg.u64 %0,[%0];" : "+l"(at));
    long long end = clock64();
    out[0] = end - begin;
    out[1] = static_cast<long long>(at);
}

// Links are written on the device: page order[i] names page order[i + 1].
__global__ void link(char* base, const uint64_t* offsets, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) *reinterpret_cast<uint64_t*>(base + offsets[i]) = reinterpret_cast<uint64_t>(base + offsets[(i + 1) % count]);
}

int main() {
    warm_up();
    Clock clock;
    const size_t total = 96ull << 30;
    char* base;
    CHECK(cudaMalloc(&base, total));
    uint64_t* offsets;
    CHECK(cudaMalloc(&offsets, 1 << 20));
    for (size_t distance : {size_t(64) << 10, size_t(2) << 20, size_t(16) << 20, size_t(32) << 20}) {
        for (int pages : {8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384}) {
            if (distance * pages > total) break;
            std::vector<uint64_t> order(pages);
            for (int i = 0; i < pages; i++) order[i] = i;
            uint64_t state = 88172645463325252ull;
            for (int i = pages - 1; i > 0; i--) {
                state ^= state << 13, state ^= state >> 7, state ^= state << 17;
                std::swap(order[i], order[state % (i + 1)]);
            }
            // A line inside the page that depends on the page, so that no set of a cache holds them all.
            for (uint64_t& page : order) page = page * distance + (page * 37 % 512) * 128;
            CHECK(cudaMemcpy(offsets, order.data(), order.size() * 8, cudaMemcpyHostToDevice));
            link<<<(pages + 255) / 256, 256>>>(base, offsets, pages);
            int steps = std::max(1024, std::min(pages, 8192));
            double cycles = clock.median_of(
                [&](long long* out) { chase<<<1, 1>>>(reinterpret_cast<uint64_t*>(base + order[0]), out, steps); });
            row("translation_latency", text("pages=%d distance=%zuKiB", pages, distance >> 10), cycles / steps, "cycles");
        }
    }
    return 0;
}
