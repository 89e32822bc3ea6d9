// Kernels that do nothing, over grid, block, registers and shared memory: what a launch costs before any work.
//
// Run under the profiler, which counts the cycles of each launch (measure.py floors); alone it prints the time of
// launches back to back.
#include "common.cuh"

// The branch is never taken; it makes the compiler give every thread the registers that it would need.
template <int VALUES>
__global__ void nothing(const int* input, int* output, int never) {
    if (never == 0x5a5a5a5a) {
        int values[VALUES];
#pragma unroll
        for (int i = 0; i < VALUES; i++) values[i] = input[i * 37 + threadIdx.x];
        __syncthreads();
#pragma unroll
        for (int i = 0; i < VALUES; i++) output[i * 41 + threadIdx.x] = values[i] * values[(i + VALUES / 2) % VALUES];
    }
}

template <int VALUES>
void sweep(bool print) {
    cudaFuncAttributes attributes;
    CHECK(cudaFuncGetAttributes(&attributes, nothing<VALUES>));
    CHECK(cudaFuncSetAttribute(nothing<VALUES>, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024));
    for (int shared : {0, 32 * 1024, 100 * 1024, 227 * 1024}) {
        for (int threads : {32, 128, 512, 1024}) {
            if (attributes.numRegs * threads > 65536) continue;
            for (int blocks : {1, 132, 1056, 8448}) {
                // Registers and shared memory are varied one at a time.
                if (VALUES > 1 && (shared != 0 || blocks == 8448)) continue;
                auto launch = [&] { nothing<VALUES><<<blocks, threads, shared>>>(nullptr, nullptr, 0); };
                if (print) {
                    double time = milliseconds([&] {
                        for (int i = 0; i < 50; i++) launch();
                    });
                    row("empty_kernel", text("blocks=%d threads=%d registers=%d shared=%d", blocks, threads, attributes.numRegs, shared),
                        time * 20, "us/launch back to back");
                } else {
                    launch();
                    CHECK(cudaDeviceSynchronize());
                }
            }
        }
    }
}

int main(int argc, char**) {
    bool print = argc < 2;
    if (print) warm_up();
    sweep<1>(print);
    sweep<48>(print);
    sweep<110>(print);
    return 0;
}
