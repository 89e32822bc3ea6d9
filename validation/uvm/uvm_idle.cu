// What a far fault costs when the host's side of it was idle before, on a real GPU.
//
//   nvcc -O2 -arch=sm_90 -o uvm_idle uvm_idle.cu && ./uvm_idle 20 > uvm_idle.csv

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <cuda_runtime.h>

#include "../microbench/common.cuh"

const size_t KIB = 1024, MIB = 1024 * KIB;

static __device__ uint64_t now() {
    uint64_t time;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(time)::"memory");
    return time;
}

// One thread touches addresses that are `stride` apart, and waits before each.
__global__ void touch_with_pauses(char *base, size_t stride, int count, uint64_t pause, bool write,
                                  uint64_t *took) {
    for (int i = 0; i < count; i++) {
        uint64_t begin = now();
        while (now() - begin < pause)
            ;
        volatile int *at = reinterpret_cast<volatile int *>(base + i * stride);
        uint64_t before = now();
        if (write) {
            *at = i;
            __threadfence_system();
        } else if (*at == 123456789) {
            took[0] = 0;
        }
        took[i] = now() - before;
    }
}

static uint64_t *took;
static uint64_t times[64];

static void fetch(int count) {
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpy(times, took, count * sizeof(uint64_t), cudaMemcpyDeviceToHost));
}

static void pauses(int repetition, size_t stride, const char *what) {
    for (uint64_t microseconds : {0, 5, 10, 20, 50, 100, 200, 500, 1000}) {
        char *memory;
        CHECK(cudaMallocManaged(&memory, 16 * stride));
        std::memset(memory, 1, 16 * stride);
        touch_with_pauses<<<1, 1>>>(memory, stride, 8, microseconds * 1000, false, took);
        fetch(8);
        for (int i = 0; i < 8; i++)
            std::printf("%s,after %d us (touch %d),%d,%llu,ns\n", what, (int)microseconds, i,
                        repetition, (unsigned long long)times[i]);
        CHECK(cudaFree(memory));
    }
}

// Host and device touch one page in turn.
static void to_and_fro(int repetition, size_t bytes, bool write, int wait, const char *what) {
    char *memory;
    CHECK(cudaMallocManaged(&memory, bytes));
    volatile int *own = reinterpret_cast<volatile int *>(memory);
    for (int turn = 0; turn < 12; turn++) {
        auto before = std::chrono::steady_clock::now();
        *own = turn;
        auto after = std::chrono::steady_clock::now();
        if (wait > 0)
            std::this_thread::sleep_for(std::chrono::microseconds(wait));
        touch_with_pauses<<<1, 1>>>(memory, 0, 1, 0, write, took);
        fetch(1);
        double host = std::chrono::duration<double, std::nano>(after - before).count();
        std::printf("%s device,turn %d,%d,%llu,ns\n", what, turn, repetition,
                    (unsigned long long)times[0]);
        std::printf("%s host,turn %d,%d,%.0f,ns\n", what, turn, repetition, host);
    }
    CHECK(cudaFree(memory));
}

// One kernel touches several allocations.
__global__ void touch_allocations(char **memory, int count, uint64_t *took) {
    for (int i = 0; i < count; i++) {
        uint64_t before = now();
        if (*reinterpret_cast<volatile int *>(memory[i]) == 123456789)
            took[0] = 0;
        took[i] = now() - before;
    }
}

static void allocations(int repetition, size_t bytes, const char *what) {
    char *memory[8], **list;
    CHECK(cudaMalloc(&list, sizeof memory));
    for (char *&one : memory) {
        CHECK(cudaMallocManaged(&one, bytes));
        std::memset(one, 1, bytes);
    }
    CHECK(cudaMemcpy(list, memory, sizeof memory, cudaMemcpyHostToDevice));
    touch_allocations<<<1, 1>>>(list, 8, took);
    fetch(8);
    for (int i = 0; i < 8; i++)
        std::printf("%s,allocation %d,%d,%llu,ns\n", what, i, repetition,
                    (unsigned long long)times[i]);
    for (int i = 1; i < 8 && repetition == 0; i++)
        std::printf("%s distance,allocation %d,%d,%lld,bytes\n", what, i, repetition,
                    (long long)(memory[i] - memory[i - 1]));
    for (char *one : memory)
        CHECK(cudaFree(one));
    CHECK(cudaFree(list));
}

int main(int argc, char **argv) {
    int repetitions = argc > 1 ? std::atoi(argv[1]) : 1;
    CHECK(cudaMalloc(&took, sizeof times));
    std::printf("name,parameter,repetition,value,unit\n");
    for (int r = 0; r < repetitions; r++) {
        pauses(r, 64 * KIB, "next block");
        pauses(r, 2 * MIB, "next region");
        to_and_fro(r, 4 * KIB, true, 0, "write to and fro");
        to_and_fro(r, 4 * KIB, false, 0, "read to and fro");
        to_and_fro(r, 4 * KIB, true, 2000, "write to and fro and 2 ms apart");
        to_and_fro(r, 2 * MIB, true, 0, "write 2 MiB to and fro");
        allocations(r, 4 * KIB, "allocations of 4 KiB");
        allocations(r, 256 * KIB, "allocations of 256 KiB");
        allocations(r, 4 * MIB, "allocations of 4 MiB");
    }
    return 0;
}
