// Reductions of which each block has a word of its own, by how far words are apart and where they begin: how evenly memory
// is spread over what performs them.
//
// Prints `reduction_places,blocks=.. apart=.. lanes=..,MICROSECONDS at each beginning`: 256 threads a block, 64 reductions a
// thread, from 32 beginnings 1 MiB and 68 KiB apart; `lanes` of a warp want the word, each of the others stays out.
#include "common.cuh"

// `nothing` is 0: a compiler that knows that all lanes want one word adds them up before.
__global__ void reduce(char* memory, int apart, int count, int lanes, int nothing) {
    unsigned* word = reinterpret_cast<unsigned*>(memory + size_t(blockIdx.x) * apart + threadIdx.x * size_t(nothing));
    if (int(threadIdx.x % 32) < lanes)
        for (int i = 0; i < count; i++) atomicAdd(word, 1u);
}

int main() {
    warm_up();
    char* memory;
    CHECK(cudaMalloc(&memory, 64 << 20));
    CHECK(cudaMemset(memory, 0, 64 << 20));
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    auto measure = [&](int blocks, int apart, int lanes, int count) {
        std::printf("reduction_places,blocks=%d apart=%d lanes=%d,", blocks, apart, lanes);
        for (int place = 0; place < 32; place++) {
            float best = 1e9;
            for (int attempt = 0; attempt < 3; attempt++) {
                spin<<<1, 1>>>(40000);
                CHECK(cudaEventRecord(begin));
                reduce<<<blocks, 256>>>(memory + size_t(place) * ((1 << 20) + (68 << 10)), apart, count, lanes, 0);
                CHECK(cudaEventRecord(end));
                CHECK(cudaEventSynchronize(end));
                float time;
                CHECK(cudaEventElapsedTime(&time, begin, end));
                best = std::min(best, time);
            }
            std::printf(" %.2f", best * 1e3);
        }
        std::printf("\n");
        std::fflush(stdout);
    };
    for (int blocks : {1, 2, 4, 8, 16, 32, 64, 132, 264}) measure(blocks, 128, 32, 64);
    for (int apart : {4, 32, 64, 256, 512, 1024, 4096, 65536})
        for (int blocks : {2, 8, 33, 264}) {
            if (size_t(apart) * blocks > 16 << 20) continue;
            measure(blocks, apart, 32, 64);
        }
    for (int lanes : {1, 2, 8}) measure(264, 128, lanes, 64);
    for (int lanes : {1, 2, 8}) measure(2, 128, lanes, 64);
}
