// Threads that ask for kernels nobody has asked for, at the same time: what is known of them is kept in one place, which
// each locks while it asks. Between two kernels each allocates, so that the order of calls shows in the addresses.
#include <cstdio>
#include <cuda_runtime.h>
#include <thread>
#include <utility>
#include <vector>

constexpr int THREADS = 4, KERNELS = 48;

template <int NUMBER> __global__ void work(int* out) { *out = NUMBER; }

template <int... NUMBERS> static const void* kernel(int number, std::integer_sequence<int, NUMBERS...>) {
    static const void* all[] = {reinterpret_cast<const void*>(work<NUMBERS>)...};
    return all[number];
}

int main() {
    if (cudaFree(nullptr)) return 2;
    static size_t order[THREADS][KERNELS];
    std::vector<std::thread> threads;
    for (int thread = 0; thread < THREADS; thread++) {
        threads.emplace_back([thread] {
            for (int round = 0; round < KERNELS; round++) {
                int number = (round + thread * KERNELS / THREADS) % KERNELS;
                cudaFuncAttributes known;
                const void* code = kernel(number, std::make_integer_sequence<int, KERNELS>());
                void* address = nullptr;
                if (cudaFuncGetAttributes(&known, code) || cudaFuncSetCacheConfig(code, cudaFuncCachePreferL1) ||
                    cudaMalloc(&address, 64))
                    return;
                order[thread][round] = size_t(address);
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    bool pass = true;
    size_t mixed = 0;
    for (auto& one : order) {
        for (size_t address : one) {
            pass &= address != 0;
            mixed = mixed * 31 + address;
        }
    }
    printf("%s %zx\n", pass ? "PASS" : "FAIL", mixed);
    return pass ? 0 : 1;
}
