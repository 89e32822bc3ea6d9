// What two events around a kernel show beside the kernel itself.
//
// Each kernel is timed between two events behind a kernel that keeps the queue full (`full`) or behind a short one, while
// the host still prepares what follows (`behind a short one`); `inside` is the time from the first block's start to the
// last block's end on the clock that all SMs share (32 ns). Rows `several` have more than one kernel between the events.
#include "common.cuh"

__device__ unsigned long long nanoseconds() {
    unsigned long long now;
    asm volatile("mov.u64 %0,%%globaltimer;" : "=l"(now));
    return now;
}

__global__ void empty() {}

// Spends so many cycles in every block, and writes down when it did.
__global__ void wait(long long cycles, unsigned long long* times) {
    unsigned long long begin = nanoseconds();
    long long start = clock64();
    while (clock64() - start < cycles) {}
    if (threadIdx.x == 0) times[blockIdx.x * 2] = begin, times[blockIdx.x * 2 + 1] = nanoseconds();
}

// Every thread writes so many words of its own.
__global__ void write(unsigned* words, int count) {
    for (int i = 0; i < count; i++) words[(size_t(i) * gridDim.x + blockIdx.x) * blockDim.x + threadIdx.x] = i;
}

struct Bench {
    cudaEvent_t begin, end;
    Bench() {
        CHECK(cudaEventCreate(&begin));
        CHECK(cudaEventCreate(&end));
    }
    // Microseconds between two events around `work`, seven times after one that does not count.
    void measure(const char* name, const std::string& parameter, bool full, const std::function<void()>& work, const std::function<void()>& after = [] {}) {
        std::string list;
        for (int repetition = 0; repetition <= 7; repetition++) {
            if (full) spin<<<1, 1>>>(200000);
            else empty<<<1, 32>>>();
            float time = elapsed(begin, end, work);
            if (repetition > 0) list += text(" %.3f", time * 1e3);
        }
        std::printf("%s,%s,%s,%s\n", name, parameter.c_str(), full ? "full" : "behind a short one", list.c_str() + 1);
        after();
        std::fflush(stdout);
    }
};

int main() {
    warm_up();
    unsigned long long* times;
    unsigned* words;
    CHECK(cudaMalloc(&times, 1 << 20));
    CHECK(cudaMalloc(&words, 256 << 20));
    Bench bench;
    for (bool full : {true, false}) {
        bench.measure("nothing", "", full, [] {});
        for (int blocks : {1, 132, 264, 528, 1056, 8448})
            for (int threads : {32, 512}) bench.measure("empty", text("blocks=%d threads=%d", blocks, threads), full, [&] { empty<<<blocks, threads>>>(); });
        for (int count : {1, 2, 3, 5, 10}) bench.measure("several", text("kernels=%d", count), full, [&] {
            for (int i = 0; i < count; i++) empty<<<132, 512>>>();
        });
        for (int blocks : {1, 132, 528})
            for (long long cycles : {100, 2000, 10000, 40000}) {
                std::string parameter = text("blocks=%d cycles=%lld", blocks, cycles);
                bench.measure("wait", parameter, full, [&] { wait<<<blocks, 512>>>(cycles, times); }, [&] {
                    std::vector<unsigned long long> all(blocks * 2);
                    CHECK(cudaMemcpy(all.data(), times, all.size() * 8, cudaMemcpyDeviceToHost));
                    unsigned long long first = ~0ull, last = 0;
                    for (int block = 0; block < blocks; block++) first = std::min(first, all[block * 2]), last = std::max(last, all[block * 2 + 1]);
                    std::printf("inside,%s,,%.3f\n", parameter.c_str(), double(last - first) / 1e3);
                });
            }
        for (int count : {1, 4, 16, 64}) bench.measure("write", text("blocks=528 words=%d", count), full, [&] { write<<<528, 512>>>(words, count); });
    }
}
