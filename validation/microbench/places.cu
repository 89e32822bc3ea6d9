// Where SMs lie: which of them share a GPC (blocks of a cluster do), and how far each is from lines in either half of L2
// (an atomic is done where the line's home is).
#include "common.cuh"

constexpr int LINES = 16;

__global__ void from_one(unsigned chosen, unsigned* memory, unsigned* out) {
    if (sm() != chosen) return;
    for (int line = 0; line < LINES; line++) {
        unsigned least = ~0u;
        unsigned* where = memory + line * 1024;
        for (int i = 0; i < 6; i++) {
            long long begin = clock64();
            unsigned old = atomicAdd(where, 1);
            asm volatile("" ::"r"(old) : "memory");
            long long end = clock64() + (old == 0x7fffffff);
            least = min(least, unsigned(end - begin));
        }
        out[line] = least;
    }
}

__global__ void who(unsigned* out) {
    if (threadIdx.x == 0) out[blockIdx.x] = sm();
    long long begin = clock64();
    while (clock64() - begin < 20000) {}
}

int main() {
    warm_up();
    cudaDeviceProp device;
    CHECK(cudaGetDeviceProperties(&device, 0));
    int sms = device.multiProcessorCount;
    unsigned *memory, *out;
    CHECK(cudaMalloc(&memory, LINES * 4096));
    CHECK(cudaMemset(memory, 0, LINES * 4096));
    CHECK(cudaMalloc(&out, 1 << 16));
    // Blocks that need all of the shared memory have an SM each.
    int shared = int(device.sharedMemPerBlockOptin);
    CHECK(cudaFuncSetAttribute(from_one, cudaFuncAttributeMaxDynamicSharedMemorySize, shared));
    for (int one = 0; one < sms; one++) {
        from_one<<<sms, 1, shared>>>(one, memory, out);
        CHECK(cudaGetLastError());
        std::vector<unsigned> cycles(LINES);
        CHECK(cudaMemcpy(cycles.data(), out, LINES * 4, cudaMemcpyDeviceToHost));
        for (int line = 0; line < LINES; line++) row("atomic_from", text("sm=%d line=%d", one, line), cycles[line], "cycles");
    }
    std::vector<int> group(sms);
    for (int i = 0; i < sms; i++) group[i] = i;
    for (unsigned size : {16u, 8u, 4u, 2u})
        for (int repetition = 0; repetition < 8; repetition++) {
            unsigned clusters = sms / size;
            if (launch_clusters(who, clusters * size, size, 100 << 10, out) != cudaSuccess) {
                cudaGetLastError();
                continue;
            }
            CHECK(cudaDeviceSynchronize());
            std::vector<unsigned> where(clusters * size);
            CHECK(cudaMemcpy(where.data(), out, where.size() * 4, cudaMemcpyDeviceToHost));
            for (unsigned i = 0; i < where.size(); i++) {
                int a = group[where[i]], b = group[where[i / size * size]];
                for (int& one : group)
                    if (one == a) one = b;
            }
        }
    for (int i = 0; i < sms; i++) row("gpc_of", text("sm=%d", i), group[i], "first SM of it");
    // The SMs that the first blocks of a launch come to.
    for (int blocks : {4, 16, 64, 132}) {
        who<<<blocks, 32>>>(out);
        CHECK(cudaDeviceSynchronize());
        std::vector<unsigned> where(blocks);
        CHECK(cudaMemcpy(where.data(), out, where.size() * 4, cudaMemcpyDeviceToHost));
        for (int i = 0; i < blocks; i++) row("block_on", text("blocks=%d block=%d", blocks, i), where[i], "SM");
    }
    return 0;
}
