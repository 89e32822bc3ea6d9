// What a load finds after memory was filled in several ways: a random chase over lines that nobody has read since.
#include "common.cuh"

#include <numeric>

__global__ void chase_and_note(const uint64_t* start, unsigned* times, int count, int past) {
    uint64_t at = reinterpret_cast<uint64_t>(start);
    for (int i = 0; i < count; i++) {
        long long begin = clock64();
        if (past) asm volatile("ld.global.cg.u64 %0,[%0];" : "+l"(at));
        else asm volatile("ld.global.ca.u64 %0,[%0];" : "+l"(at));
        // The clock is read when the load has come back: the trap cannot be passed before.
        long long end;
        asm volatile("{.reg .pred p; setp.eq.u64 p,%1,0; @p trap; mov.u64 %0,%%clock64;}" : "=l"(end) : "l"(at));
        times[i] = unsigned(end - begin);
    }
}

__global__ void write_links(char* memory, const uint64_t* links, size_t count, size_t apart) {
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x)
        *reinterpret_cast<uint64_t*>(memory + i * apart) = links[i];
}

__global__ void read_all(const uint4* memory, size_t count, unsigned* out) {
    unsigned sum = 0;
    for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) sum += memory[i].x;
    if (sum == 0x12345678) *out = sum;
}

enum Fill { COPY_2D, COPY_WHOLE, KERNEL, KERNEL_THEN_OTHERS, FILLS };
static const char* const NAMES[] = {"rows copied", "all copied", "written by a kernel", "written, then 512 MiB read"};

int main() {
    warm_up();
    const int loads = 4000;
    unsigned* times;
    uint64_t* links;
    char* other;
    CHECK(cudaMalloc(&times, 1 << 20));
    CHECK(cudaMalloc(&links, 8 << 20));
    CHECK(cudaMalloc(&other, 512 << 20));
    CHECK(cudaMemset(other, 0, 512 << 20));
    struct Case {
        size_t bytes, apart;
    };
    const Case cases[] = {{1 << 20, 128}, {8 << 20, 128}, {20 << 20, 128}, {30 << 20, 128}, {40 << 20, 128}, {60 << 20, 128}, {128 << 20, 256}, {1ull << 30, 4096}, {4ull << 30, 65536}};
    for (const Case& c : cases) {
        for (int fill = 0; fill < FILLS; fill++) {
            if (fill == COPY_WHOLE && c.bytes > (60 << 20)) continue;
            for (int fresh = 0; fresh < 2; fresh++) {
                size_t count = c.bytes / c.apart;
                char* memory;
                CHECK(cudaMalloc(&memory, c.bytes));
                for (int turn = 0; turn < 2 - fresh; turn++) {
                    // turn 1 of what is not fresh: the memory was filled and read before
                    std::vector<uint32_t> order(count);
                    std::iota(order.begin(), order.end(), 0u);
                    uint64_t s = 88172645463325252ull;
                    for (size_t i = count - 1; i > 0; i--) s ^= s << 13, s ^= s >> 7, s ^= s << 17, std::swap(order[i], order[s % (i + 1)]);
                    std::vector<uint64_t> next(count);
                    for (size_t i = 0; i < count; i++) next[order[i]] = reinterpret_cast<uint64_t>(memory) + size_t(order[(i + 1) % count]) * c.apart;
                    if (fill == COPY_2D) CHECK(cudaMemcpy2D(memory, c.apart, next.data(), 8, 8, count, cudaMemcpyHostToDevice));
                    if (fill == COPY_WHOLE) {
                        std::vector<uint64_t> whole(c.bytes / 8);
                        for (size_t i = 0; i < count; i++) whole[i * c.apart / 8] = next[i];
                        CHECK(cudaMemcpy(memory, whole.data(), c.bytes, cudaMemcpyHostToDevice));
                    }
                    if (fill >= KERNEL) {
                        CHECK(cudaMemcpy(links, next.data(), count * 8, cudaMemcpyHostToDevice));
                        write_links<<<1024, 256>>>(memory, links, count, c.apart);
                    }
                    if (fill == KERNEL_THEN_OTHERS) read_all<<<1024, 256>>>(reinterpret_cast<uint4*>(other), (512 << 20) / 16, times);
                    int steps = int(std::min<size_t>(count, loads));
                    chase_and_note<<<1, 1>>>(reinterpret_cast<uint64_t*>(memory), times, steps, turn);
                    CHECK(cudaDeviceSynchronize());
                    std::vector<unsigned> each(steps);
                    CHECK(cudaMemcpy(each.data(), times, steps * 4, cudaMemcpyDeviceToHost));
                    double mean = std::accumulate(each.begin(), each.end(), 0.0) / steps;
                    std::sort(each.begin(), each.end());
                    row("first_touch",
                        text("%s footprint=%zuKB stride=%zu %s p5=%u p25=%u p50=%u p75=%u p95=%u", NAMES[fill], c.bytes >> 10, c.apart,
                             fresh ? "allocated again" : turn ? "second time" : "first time", each[steps / 20], each[steps / 4],
                             each[steps / 2], each[steps * 3 / 4], each[steps * 19 / 20]),
                        mean, "cycles");
                }
                CHECK(cudaFree(memory));
            }
        }
    }
    return 0;
}
