// How long the host takes for managed memory that nobody has touched, on a real machine.
//
//   nvcc -O2 -arch=sm_90 -o uvm_host uvm_host.cu && ./uvm_host 20 > uvm_host.csv

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <cuda_runtime.h>

#include "../microbench/common.cuh"

static double now_us() {
    auto now = std::chrono::steady_clock::now().time_since_epoch();
    return std::chrono::duration<double, std::micro>(now).count();
}

int main(int argc, char **argv) {
    int repetitions = argc > 1 ? std::atoi(argv[1]) : 1;
    const size_t KIB = 1024;
    CHECK(cudaFree(nullptr));
    std::printf("name,parameter,repetition,value,unit\n");
    for (int r = 0; r < repetitions; r++) {
        for (size_t kib : {4, 64, 256, 2048, 4096, 65536}) {
            char *memory;
            double start = now_us();
            CHECK(cudaMallocManaged(&memory, kib * KIB));
            double allocated = now_us();
            std::memset(memory, 1, kib * KIB);
            double written = now_us();
            std::memset(memory, 2, kib * KIB);
            double again = now_us();
            CHECK(cudaFree(memory));
            double freed = now_us();
            std::printf("allocate,%zu KiB,%d,%.3f,us\n", kib, r, allocated - start);
            std::printf("write_first,%zu KiB,%d,%.3f,us\n", kib, r, written - allocated);
            std::printf("write_again,%zu KiB,%d,%.3f,us\n", kib, r, again - written);
            std::printf("free,%zu KiB,%d,%.3f,us\n", kib, r, freed - again);
        }
        char *memory;
        CHECK(cudaMallocManaged(&memory, 2048 * KIB));
        volatile char *host = memory;
        for (size_t page = 0; page < 40; page++) {
            double before = now_us();
            host[page * 4096] = 1;
            std::printf("touch_first,page %zu,%d,%.3f,us\n", page, r, now_us() - before);
        }
        CHECK(cudaFree(memory));
    }
    return 0;
}
