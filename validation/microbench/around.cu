// What L2 is asked around a kernel that reads or writes: by footprint, by number of SMs, by kind of access.
// Run under a profiler that empties caches before each launch; every launch prints its parameters.
#include "common.cuh"
static int launches = 0;
static void say(const std::string& what) {
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    std::printf("%d,%s\n", launches++, what.c_str());
}
__global__ void nothing() {}
__global__ void read_lines(const unsigned* in, size_t words, unsigned* out) {
    unsigned sum = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < words; i += size_t(gridDim.x) * blockDim.x) sum += __ldcg(in + i);
    if (sum == 123) out[0] = sum;
}
__global__ void write_lines(unsigned* out, size_t words) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < words; i += size_t(gridDim.x) * blockDim.x) out[i] = unsigned(i);
}
// One sector of every `apart` bytes.
__global__ void read_sectors(const char* in, size_t bytes, size_t apart, unsigned* out) {
    unsigned sum = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < bytes / apart; i += size_t(gridDim.x) * blockDim.x) sum += __ldcg(reinterpret_cast<const unsigned*>(in + i * apart));
    if (sum == 123) out[0] = sum;
}
// A word of every sector, the words of a sector by different blocks.
__global__ void write_parts(unsigned* out) {
    if (threadIdx.x == 0) out[blockIdx.x] = 1;
}
int main() {
    char* memory;
    CHECK(cudaMalloc(&memory, 256 << 20));
    CHECK(cudaMemset(memory, 0, 256 << 20));
    unsigned* out;
    CHECK(cudaMalloc(&out, 4096));
    nothing<<<1, 32>>>(), say("nothing blocks=1");
    nothing<<<132, 256>>>(), say("nothing blocks=132");
    for (int blocks : {1, 16, 132, 1056})
        for (size_t kib : {64, 256, 1024, 4096, 16384, 65536}) {
            read_lines<<<blocks, 256>>>(reinterpret_cast<unsigned*>(memory), kib << 8, out), say(text("read blocks=%d KiB=%zu", blocks, kib));
            if (blocks != 16) write_lines<<<blocks, 256>>>(reinterpret_cast<unsigned*>(memory), kib << 8), say(text("write blocks=%d KiB=%zu", blocks, kib));
        }
    for (size_t apart : {64, 128, 4096, 65536}) read_sectors<<<132, 256>>>(memory, 64 << 20, apart, out), say(text("sectors apart=%zu", apart));
    write_parts<<<65536, 32>>>(reinterpret_cast<unsigned*>(memory)), say("parts blocks=65536");
    return 0;
}
