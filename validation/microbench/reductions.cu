// Atomic operations on words that all SMs share, chosen at random among few or many: what a histogram does.
#include "common.cuh"

__device__ unsigned scramble(unsigned x) {
    x *= 2654435761u, x ^= x >> 15, x *= 2246822519u, x ^= x >> 13;
    return x;
}

// kind: 0 add without result, 1 add with result, 2 add of floats, 3 or, 4 max, 5 add of 64 bits
template <int KIND>
__global__ void count(char* memory, unsigned words, int apart, int steps, int alike) {
    unsigned thread = blockIdx.x * blockDim.x + threadIdx.x, sum = 0;
    for (int i = 0; i < steps; i++) {
        unsigned lane = alike ? thread / 32 : thread;
        size_t word = scramble(lane * 64 + i) % words;
        if (alike) word = (word & ~31u) + threadIdx.x % 32;
        char* at = memory + word * apart;
        if (KIND == 0) atomicAdd(reinterpret_cast<unsigned*>(at), 1u);
        if (KIND == 1) sum += atomicAdd(reinterpret_cast<unsigned*>(at), 1u);
        if (KIND == 2) atomicAdd(reinterpret_cast<float*>(at), 1.0f);
        if (KIND == 3) atomicOr(reinterpret_cast<unsigned*>(at), 1u);
        if (KIND == 4) atomicMax(reinterpret_cast<unsigned*>(at), 1u);
        if (KIND == 5) atomicAdd(reinterpret_cast<unsigned long long*>(at), 1ull);
    }
    if (sum == 0x12345678) memory[0] = 1;
}

template <int KIND>
void measure(const char* name, char* memory, std::vector<unsigned> sizes, int apart) {
    const int blocks = 264, threads = 256, steps = 32;
    for (unsigned words : sizes) {
        double time = milliseconds([&] { count<KIND><<<blocks, threads>>>(memory, words, apart, steps, 0); });
        row("scattered", text("%s words=%u apart=%d", name, words, apart), double(blocks) * threads * steps / time / 1e6, "Gatomic/s");
    }
    for (unsigned words : {32u, 1024u, 65536u, 1048576u}) {
        double time = milliseconds([&] { count<KIND><<<blocks, threads>>>(memory, words, apart, steps, 1); });
        row("scattered_rows", text("%s words=%u apart=%d", name, words, apart), double(blocks) * threads * steps / time / 1e6, "Gatomic/s");
    }
}

int main() {
    warm_up();
    char* memory;
    CHECK(cudaMalloc(&memory, 64 << 20));
    CHECK(cudaMemset(memory, 0, 64 << 20));
    std::vector<unsigned> all = {2, 8, 32, 64, 256, 1024, 4096, 16384, 65536, 1048576};
    measure<0>("add.u32", memory, all, 4);
    measure<0>("add.u32", memory, {8, 64, 256, 1024, 65536}, 32);
    measure<0>("add.u32", memory, {8, 64, 256, 1024, 65536}, 128);
    measure<1>("returned add.u32", memory, all, 4);
    measure<2>("add.f32", memory, {32, 256, 4096, 1048576}, 4);
    measure<3>("or.b32", memory, {32, 256, 4096, 1048576}, 4);
    measure<4>("max.u32", memory, {32, 256, 4096, 1048576}, 4);
    measure<5>("add.u64", memory, {32, 256, 4096, 1048576}, 8);
    return 0;
}
