// Rates of accesses of one sector each at scattered places, by how many SMs make them: loads, stores of several widths,
// a load and a store in turn, atomics.
//
// Prints rows `what,MiB,blocks,cycles,per_cycle`: cycles of the slowest block, median of three launches.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#define CHECK(call) do { cudaError_t s_ = (call); if (s_ != cudaSuccess) { std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(s_)); std::exit(2); } } while (0)

constexpr int THREADS = 1024, ROUNDS = 8, MOST_BLOCKS = 264;
enum What { LOAD, STORE_BYTE, STORE_WORD, STORE_16, LOAD_STORE_SAME, LOAD_STORE_OTHER, ATOMIC };

template <What WHAT>
__global__ void scattered(unsigned char* bytes, unsigned mask, unsigned* out, long long* cycles) {
    unsigned first = (blockIdx.x * blockDim.x + threadIdx.x) * ROUNDS, sum = 0;
    long long begin = clock64();
    for (int round = 0; round < ROUNDS; round++) {
        unsigned place = ((first + round) * 2654435761u) & mask;
        auto value = static_cast<unsigned char>(round);
        if (WHAT == LOAD) sum += __ldcg(bytes + place);
        if (WHAT == STORE_BYTE) __stcg(bytes + place, value);
        if (WHAT == STORE_WORD) __stcg(reinterpret_cast<unsigned*>(bytes) + place / 4, unsigned(round));
        if (WHAT == STORE_16) __stcg(reinterpret_cast<uint4*>(bytes) + place / 16, make_uint4(round, round, round, round));
        if (WHAT == LOAD_STORE_SAME) {
            sum += __ldcg(bytes + place);
            if (sum != 0x7fffffff) __stcg(bytes + place, value);
        }
        if (WHAT == LOAD_STORE_OTHER) {
            sum += __ldcg(bytes + place);
            __stcg(bytes + ((place + 1310720) & mask), value);
        }
        if (WHAT == ATOMIC) atomicAdd(reinterpret_cast<unsigned*>(bytes) + place / 4, 1u);
    }
    if (sum == 0x12345) *out = sum;
    __syncthreads();
    if (threadIdx.x == 0) cycles[blockIdx.x] = clock64() - begin;
}

template <What WHAT>
void measure(const char* name, unsigned char* bytes, unsigned mebibytes, unsigned* out, long long* cycles) {
    for (int blocks : {1, 8, 16, 33, 66, 132, MOST_BLOCKS}) {
        std::vector<long long> slowest, each(blocks);
        for (int launch = 0; launch < 3; launch++) {
            scattered<WHAT><<<blocks, THREADS>>>(bytes, (mebibytes << 20) - 1, out, cycles);
            CHECK(cudaMemcpy(each.data(), cycles, blocks * sizeof each[0], cudaMemcpyDeviceToHost));
            slowest.push_back(*std::max_element(each.begin(), each.end()));
        }
        std::sort(slowest.begin(), slowest.end());
        double count = double(blocks) * THREADS * ROUNDS;
        std::printf("%s,%u,%d,%lld,%.3f\n", name, mebibytes, blocks, slowest[1], count / double(slowest[1]));
    }
}

int main() {
    unsigned char* bytes;
    unsigned* out;
    long long* cycles;
    CHECK(cudaMalloc(&bytes, 64 << 20));
    CHECK(cudaMalloc(&out, sizeof *out));
    CHECK(cudaMalloc(&cycles, MOST_BLOCKS * sizeof *cycles));
    std::printf("what,MiB,blocks,cycles,per_cycle\n");
    for (unsigned mebibytes : {4u, 16u}) {
        CHECK(cudaMemset(bytes, 0, mebibytes << 20));
        measure<LOAD>("load_byte", bytes, mebibytes, out, cycles);
        measure<STORE_BYTE>("store_byte", bytes, mebibytes, out, cycles);
        measure<STORE_WORD>("store_word", bytes, mebibytes, out, cycles);
        measure<STORE_16>("store_16", bytes, mebibytes, out, cycles);
        measure<LOAD_STORE_SAME>("load_store_same", bytes, mebibytes, out, cycles);
        measure<LOAD_STORE_OTHER>("load_store_other", bytes, mebibytes, out, cycles);
        measure<ATOMIC>("atomic", bytes, mebibytes, out, cycles);
    }
}
