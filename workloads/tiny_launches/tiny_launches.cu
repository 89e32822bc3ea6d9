// Many launches that do almost nothing: empty kernels, one warp, and one block that each depend on the launch before.
//
// Usage: tiny_launches [launches]
#include "../common/workload.cuh"

using namespace workload;

__global__ void do_nothing() {}

__global__ void one_warp(unsigned* state) { state[threadIdx.x] = state[threadIdx.x] * 1664525u + 1013904223u; }

__global__ void one_block(unsigned* state, unsigned step) {
    unsigned neighbour = state[(threadIdx.x + 1) % blockDim.x];
    __syncthreads();
    state[threadIdx.x] = neighbour ^ (state[threadIdx.x] + step);
}

int main(int argc, char** argv) {
    int launches = argument(argc, argv, 1, 40, 1 << 20);
    std::vector<unsigned> warp(32), block(128);
    for (size_t i = 0; i < warp.size(); i++) warp[i] = unsigned(i);
    for (size_t i = 0; i < block.size(); i++) block[i] = unsigned(i * i);
    Buffer<unsigned> device_warp(warp), device_block(block);
    for (int i = 0; i < launches; i++) {
        do_nothing<<<1, 1>>>();
        one_warp<<<1, 32>>>(device_warp);
        one_block<<<1, 128>>>(device_block, i);
        CHECK_LAUNCH();
        for (unsigned& value : warp) value = value * 1664525u + 1013904223u;
        std::vector<unsigned> before = block;
        for (size_t t = 0; t < block.size(); t++) block[t] = before[(t + 1) % block.size()] ^ (before[t] + unsigned(i));
    }
    size_t wrong = mismatches(device_warp.read(), warp) + mismatches(device_block.read(), block);
    return verdict("tiny_launches", wrong == 0, "%d launches of three kernels, %zu words wrong", launches, wrong);
}
