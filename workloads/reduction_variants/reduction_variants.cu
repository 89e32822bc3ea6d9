// Sums of integers, four ways: interleaved addressing with divergence, shuffles, one atomic a warp, and one pass in
// which the last block to finish adds up the others' results.
//
// Usage: reduction_variants [elements]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 256;
constexpr unsigned FULL = 0xffffffffu;

__device__ unsigned sum_over_warp(unsigned value) {
    for (int distance = 16; distance > 0; distance /= 2) value += __shfl_down_sync(FULL, value, distance);
    return value;
}

__device__ unsigned sum_over_block(unsigned value) {
    __shared__ unsigned warps[THREADS / 32];
    value = sum_over_warp(value);
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = value;
    __syncthreads();
    value = threadIdx.x < THREADS / 32 ? warps[threadIdx.x] : 0;
    return threadIdx.x < 32 ? sum_over_warp(value) : 0;
}

__global__ void reduce_interleaved(const unsigned* values, unsigned* result, int count) {
    __shared__ unsigned tree[THREADS];
    int i = blockIdx.x * THREADS + threadIdx.x;
    tree[threadIdx.x] = i < count ? values[i] : 0;
    __syncthreads();
    for (int stride = 1; stride < THREADS; stride *= 2) {
        if (threadIdx.x % (2 * stride) == 0) tree[threadIdx.x] += tree[threadIdx.x + stride];
        __syncthreads();
    }
    if (threadIdx.x == 0) atomicAdd(result, tree[0]);
}

__global__ void reduce_shuffle(const unsigned* values, unsigned* result, int count) {
    unsigned sum = 0;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) sum += values[i];
    sum = sum_over_block(sum);
    if (threadIdx.x == 0) atomicAdd(result, sum);
}

__global__ void reduce_warp_atomics(const uint4* values, unsigned* result, int quads) {
    unsigned sum = 0;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < quads; i += gridDim.x * THREADS) {
        uint4 v = values[i];
        sum += v.x + v.y + v.z + v.w;
    }
    sum = sum_over_warp(sum);
    if (threadIdx.x % 32 == 0) atomicAdd(result, sum);
}

__global__ void reduce_last_block(const unsigned* values, unsigned* partial, unsigned* arrived, unsigned* result,
                                  int count) {
    __shared__ bool last;
    unsigned sum = 0;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) sum += values[i];
    sum = sum_over_block(sum);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = sum;
        __threadfence();
        last = atomicInc(arrived, gridDim.x - 1) == gridDim.x - 1;
    }
    __syncthreads();
    if (!last) return;
    __threadfence();
    sum = 0;
    for (int i = threadIdx.x; i < gridDim.x; i += THREADS) sum += partial[i];
    __syncthreads();
    sum = sum_over_block(sum);
    if (threadIdx.x == 0) *result = sum;
}

int main(int argc, char** argv) {
    int count = (argument(argc, argv, 1, 65536) + 3) / 4 * 4;
    std::vector<unsigned> values(count);
    Random random(1);
    unsigned wanted = 0;
    for (unsigned& value : values) wanted += value = random.next();

    Buffer<unsigned> device_values(values), results(4), partial(64), arrived(1);
    results.clear();
    arrived.clear();
    reduce_interleaved<<<blocks_for(count, THREADS), THREADS>>>(device_values, results.get(), count);
    reduce_shuffle<<<64, THREADS>>>(device_values, results.get() + 1, count);
    reduce_warp_atomics<<<32, THREADS>>>(reinterpret_cast<uint4*>(device_values.get()), results.get() + 2, count / 4);
    reduce_last_block<<<64, THREADS>>>(device_values, partial, arrived, results.get() + 3, count);
    CHECK_LAUNCH();
    std::vector<unsigned> got = results.read();
    int wrong = 0;
    for (unsigned result : got) wrong += result != wanted;
    return verdict("reduction_variants", wrong == 0, "%d elements, sums %u %u %u %u (wanted %u)", count, got[0], got[1],
                   got[2], got[3], wanted);
}
