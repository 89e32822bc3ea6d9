// Several kernels at once, in streams of their own: one that computes, one that streams, one that gathers, one that
// counts; none fills the GPU alone.
//
// Usage: concurrent_kernels [words]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 128;
constexpr int ROUNDS = 24, BINS = 128;

__host__ __device__ inline unsigned mix(unsigned value) {
    for (int i = 0; i < ROUNDS; i++) value = (value << 5 | value >> 27) * 2654435761u + 0x7f4a7c15u;
    return value;
}

__global__ void compute(const unsigned* in, unsigned* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = mix(in[i]);
}
__global__ void stream(const unsigned* in, unsigned* out, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) out[i] = in[i] + 5u;
}
__global__ void gather(const unsigned* in, unsigned* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = in[in[i] % unsigned(count)] ^ in[(in[i] >> 8) % unsigned(count)];
}
__global__ void count_bins(const unsigned* in, unsigned* bins, int count) {
    __shared__ unsigned local[BINS];
    local[threadIdx.x] = 0;
    __syncthreads();
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) atomicAdd(&local[in[i] >> 25], 1u);
    __syncthreads();
    atomicAdd(&bins[threadIdx.x], local[threadIdx.x]);
}

int main(int argc, char** argv) {
    static_assert(BINS == THREADS, "a thread a bin");
    int count = argument(argc, argv, 1, 8192, 1 << 26);
    std::vector<unsigned> words(count);
    Random random(17);
    for (unsigned& word : words) word = random.next();
    Buffer<unsigned> in(words), computed(count), streamed(count), gathered(count), bins(BINS);
    bins.clear();
    CHECK(cudaDeviceSynchronize());
    cudaStream_t streams[4];
    for (cudaStream_t& one : streams) CHECK(cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking));
    int blocks = blocks_for(count, THREADS), few = std::min(blocks_for(count, THREADS * 8), 66);
    compute<<<blocks, THREADS, 0, streams[0]>>>(in, computed, count);
    stream<<<few, THREADS, 0, streams[1]>>>(in, streamed, count);
    gather<<<blocks, THREADS, 0, streams[2]>>>(in, gathered, count);
    count_bins<<<few, THREADS, 0, streams[3]>>>(in, bins, count);
    CHECK_LAUNCH();
    for (cudaStream_t one : streams) {
        CHECK(cudaStreamSynchronize(one));
        CHECK(cudaStreamDestroy(one));
    }
    std::vector<unsigned> wanted[4];
    for (std::vector<unsigned>& one : wanted) one.resize(count);
    wanted[3].assign(BINS, 0);
    for (int i = 0; i < count; i++) {
        wanted[0][i] = mix(words[i]);
        wanted[1][i] = words[i] + 5u;
        wanted[2][i] = words[words[i] % unsigned(count)] ^ words[(words[i] >> 8) % unsigned(count)];
        wanted[3][words[i] >> 25]++;
    }
    size_t wrong = mismatches(computed.read(), wanted[0]) + mismatches(streamed.read(), wanted[1]) +
                   mismatches(gathered.read(), wanted[2]) + mismatches(bins.read(), wanted[3]);
    return verdict("concurrent_kernels", wrong == 0, "%d words, %zu wrong", count, wrong);
}
