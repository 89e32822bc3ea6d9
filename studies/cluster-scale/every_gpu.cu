// Every GPU of the node multiplies matrices of its own, all at the same time: what a simulation costs for each GPU more.
//
// Usage: every_gpu [size [launches [pinned]]]      lockstep run --gpus N
//
// With `pinned` it first takes a page of host memory that every GPU reaches, as programs with communication do.
#include "../../workloads/common/workload.cuh"

using namespace workload;

constexpr int TILE = 16;

__global__ void multiply(const float* a, const float* b, float* c, int n) {
    __shared__ float tile_a[TILE][TILE], tile_b[TILE][TILE];
    int column = blockIdx.x * TILE + threadIdx.x, row = blockIdx.y * TILE + threadIdx.y;
    float sum = 0.0f;
    for (int start = 0; start < n; start += TILE) {
        tile_a[threadIdx.y][threadIdx.x] = a[row * n + start + threadIdx.x];
        tile_b[threadIdx.y][threadIdx.x] = b[(start + threadIdx.y) * n + column];
        __syncthreads();
        for (int k = 0; k < TILE; k++) sum += tile_a[threadIdx.y][k] * tile_b[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

int main(int argc, char** argv) {
    int n = argument(argc, argv, 1, 256, 8192) / TILE * TILE;
    int launches = argument(argc, argv, 2, 4);
    size_t bytes = size_t(n) * n * sizeof(float);
    int gpus = 0;
    CHECK(cudaGetDeviceCount(&gpus));
    void* page = nullptr;
    if (argc > 3) CHECK(cudaHostAlloc(&page, 4096, cudaHostAllocPortable | cudaHostAllocMapped));

    // Sums of ones are exact: every element is the size.
    std::vector<float> ones(size_t(n) * n, 1.0f), got(size_t(n) * n);
    std::vector<float*> operands(gpus), products(gpus);
    for (int gpu = 0; gpu < gpus; gpu++) {
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaMalloc(&operands[gpu], bytes));
        CHECK(cudaMalloc(&products[gpu], bytes));
        CHECK(cudaMemcpy(operands[gpu], ones.data(), bytes, cudaMemcpyHostToDevice));
    }
    // The first launch on a GPU takes the host longer than a kernel of this takes: after it they overlap.
    for (int gpu = 0; gpu < gpus; gpu++) {
        CHECK(cudaSetDevice(gpu));
        multiply<<<1, dim3(TILE, TILE)>>>(operands[gpu], operands[gpu], products[gpu], TILE);
        CHECK_LAUNCH();
    }
    for (int gpu = 0; gpu < gpus; gpu++) {
        CHECK(cudaSetDevice(gpu));
        for (int launch = 0; launch < launches; launch++) {
            multiply<<<dim3(n / TILE, n / TILE), dim3(TILE, TILE)>>>(operands[gpu], operands[gpu], products[gpu], n);
            CHECK_LAUNCH();
        }
    }
    size_t wrong = 0;
    for (int gpu = 0; gpu < gpus; gpu++) {
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(got.data(), products[gpu], bytes, cudaMemcpyDeviceToHost));
        for (float value : got) wrong += value != static_cast<float>(n);
    }
    return verdict("every_gpu", wrong == 0, "%d launches on each of %d GPUs, %zu wrong", launches, gpus, wrong);
}
