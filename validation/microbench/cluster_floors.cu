// How fast clusters start and end: kernels that do nothing, and that meet once, over cluster, grid and block.
//
// For a profiler, which times each launch; prints the launches in order as `kernel,cluster,blocks,threads`.
#include <cooperative_groups.h>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>
#define CHECK(call) do { cudaError_t s_ = (call); if (s_ != cudaSuccess) { std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(s_)); std::exit(2); } } while (0)

__global__ void nothing(int* out) {
    if (out) *out = 1;
}

__global__ void meet(int* out) {
    cooperative_groups::this_cluster().sync();
    if (out) *out = 1;
}

int main() {
    for (bool meets : {false, true})
        for (int threads : {32, 128, 512})
            for (int blocks : {128, 1056, 4224})
                for (int cluster : {1, 2, 4, 8}) {
                    cudaLaunchConfig_t config = {};
                    cudaLaunchAttribute attribute = {};
                    attribute.id = cudaLaunchAttributeClusterDimension;
                    attribute.val.clusterDim.x = cluster;
                    attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
                    config.gridDim = blocks;
                    config.blockDim = threads;
                    config.attrs = &attribute;
                    config.numAttrs = 1;
                    CHECK(cudaLaunchKernelEx(&config, meets ? meet : nothing, static_cast<int*>(nullptr)));
                    CHECK(cudaDeviceSynchronize());
                    std::printf("%s,%d,%d,%d\n", meets ? "meet" : "nothing", cluster, blocks, threads);
                }
}
