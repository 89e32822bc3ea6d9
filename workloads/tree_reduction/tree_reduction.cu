// Sums by a tree in shared memory, launched again on the partial sums until one is left.
//
// Usage: tree_reduction [elements]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 256;

// One partial sum a block. Each thread first adds two elements, so that no thread starts idle.
template <typename T>
__global__ void reduce_blocks(const T* values, T* partial, int count) {
    __shared__ T tree[THREADS];
    int i = blockIdx.x * (2 * THREADS) + threadIdx.x;
    T sum = i < count ? values[i] : T(0);
    if (i + THREADS < count) sum += values[i + THREADS];
    tree[threadIdx.x] = sum;
    __syncthreads();
    for (int stride = THREADS / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) tree[threadIdx.x] += tree[threadIdx.x + stride];
        __syncthreads();
    }
    if (threadIdx.x == 0) partial[blockIdx.x] = tree[0];
}

template <typename T>
T reduce(const std::vector<T>& values) {
    int count = static_cast<int>(values.size());
    Buffer<T> first(values), second(blocks_for(count, 2 * THREADS));
    T* from = first;
    T* to = second;
    while (count > 1) {
        int blocks = blocks_for(count, 2 * THREADS);
        reduce_blocks<T><<<blocks, THREADS>>>(from, to, count);
        CHECK_LAUNCH();
        std::swap(from, to);
        count = blocks;
    }
    T result;
    CHECK(cudaMemcpy(&result, from, sizeof(T), cudaMemcpyDeviceToHost));
    return result;
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 131072);
    std::vector<float> reals = uniform_values(count, 0.0f, 1.0f, 1);
    std::vector<uint32_t> integers(count);
    Random random(2);
    for (uint32_t& value : integers) value = random.next();

    double wanted_real = 0.0;
    uint32_t wanted_integer = 0;
    for (int i = 0; i < count; i++) {
        wanted_real += reals[i];
        wanted_integer += integers[i];
    }
    double error = std::fabs(reduce(reals) - wanted_real) / std::fmax(1.0, wanted_real);
    uint32_t integer = reduce(integers);
    return verdict("tree_reduction", error < 1e-5 && integer == wanted_integer,
                   "%d elements, float error %.2e, integer sum %u (wanted %u)", count, error, integer, wanted_integer);
}
