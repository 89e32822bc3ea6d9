// Which SM gets which block: grids of many sizes, twice each, all blocks of which stay until all have begun (or 40 us).
//
//   placement
//
// Prints `BLOCKS THREADS SHARED TRY:` and the SM of each block, in order.
#include "common.cuh"

__global__ void note(int* sms, unsigned cycles) {
    long long begin = clock64();
    if (threadIdx.x == 0) sms[blockIdx.x] = sm();
    while (clock64() - begin < cycles) {}
}

int main() {
    int* sms;
    const int most = 132 * 32 * 2;
    CHECK(cudaMalloc(&sms, most * 4));
    CHECK(cudaFuncSetAttribute(note, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
    std::vector<int> places(most);
    auto measure = [&](int blocks, int threads, int shared, int attempt, unsigned cycles) {
        note<<<blocks, threads, shared << 10>>>(sms, cycles);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(places.data(), sms, blocks * 4, cudaMemcpyDeviceToHost));
        std::printf("%d %d %d %d:", blocks, threads, shared, attempt);
        for (int block = 0; block < blocks; block++) std::printf(" %d", places[block]);
        std::printf("\n");
    };
    for (int threads : {512, 32, 128, 256, 1024})
        for (int blocks : {1, 1, 2, 3, 4, 6, 8, 9, 10, 12, 15, 16, 17, 20, 24, 25, 32, 33, 40, 48, 56, 64, 66, 72, 80, 96, 100, 110, 120, 127, 128, 130, 131, 132, 132, 133, 134, 136, 140, 144, 148, 160, 180, 200, 220, 240, 256, 260, 264, 264, 265, 280, 300, 330, 350, 396, 400, 450, 500, 512, 528, 528, 600, 700, 1000, 1056, 1056})
            if (blocks <= 132 * std::min(32, 2048 / threads))
                for (int attempt = 0; attempt < 2; attempt++) measure(blocks, threads, 0, attempt, 60000);
    for (int shared : {50, 100, 200})
        for (int blocks : {1, 4, 16, 33, 66, 100, 131, 132, 140, 200, 264, 300, 528, 1056})
            for (int attempt = 0; attempt < 2; attempt++) measure(blocks, 128, shared, attempt, 60000);
    // More blocks than there is room for, of equal length.
    for (int threads : {512, 1024, 256})
        for (int blocks : {1056, 2112, 4000}) measure(blocks, threads, 0, 0, 20000);
}
