// Two blocks of a cluster meet. Listed in docs/status.toml: when this prints PASS, its line there goes.
#include <cooperative_groups.h>
#include <cstdio>

__global__ void __cluster_dims__(2, 1, 1) meet(int* ranks) {
    auto cluster = cooperative_groups::this_cluster();
    cluster.sync();
    if (threadIdx.x == 0) ranks[blockIdx.x] = static_cast<int>(cluster.block_rank());
}

int main() {
    int* ranks = nullptr;
    cudaMalloc(&ranks, 2 * sizeof(int));
    meet<<<2, 32>>>(ranks);
    int found[2] = {-1, -1};
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaMemcpy(found, ranks, sizeof(found), cudaMemcpyDeviceToHost);
    bool passed = error == cudaSuccess && found[0] == 0 && found[1] == 1;
    std::printf("%s cluster: %s\n", passed ? "PASS" : "FAIL", cudaGetErrorString(error));
    return passed ? 0 : 1;
}
