// Latency of every single load of the chases of core.cu, in its order, and what the writing of the chase leaves in L2.
//
// Prints `case,KIB,STRIDE,HOW,CG,LOADS,FIRST,SECOND` (mean cycles of a load in the first and the second half of the chase,
// some 28 of them for reading the clock) and writes every latency to chases.bin, 16 bits each, in the order of the chase.
// HOW: 0 copied from the host as in core.cu (8 B of each stride), 1 the same and then 512 MiB read, 2 written by a kernel,
// 3 the same and then 512 MiB read, 4 copied onto memory that a memset has filled just before.
#include "common.cuh"

template <int CACHE>
__global__ void chase(const uint64_t* start, unsigned short* out, int count) {
    uint64_t at = reinterpret_cast<uint64_t>(start);
    for (int i = 0; i < count; i++) {
        long long begin = clock64();
        if (CACHE == 0) asm volatile("ld.global.ca.u64 %0,[%0];" : "+l"(at)::"memory");
        else asm volatile("ld.global.cg.u64 %0,[%0];" : "+l"(at)::"memory");
        asm volatile("{.reg .pred p; setp.eq.u64 p,%0,1; @p trap;}" ::"l"(at) : "memory");
        out[i] = (unsigned short)min(clock64() - begin, 65535ll);
    }
}

__global__ void read_all(const float4* memory, float* out, size_t count) {
    float sum = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
        float4 value = memory[i];
        sum += value.x + value.y + value.z + value.w;
    }
    if (sum == 1.2345f) out[0] = sum;
}

__global__ void link(char* base, const uint64_t* next, size_t stride, size_t count) {
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x)
        *reinterpret_cast<uint64_t*>(base + i * stride) = next[i];
}

struct Case {
    size_t footprint, stride;
    int how, cg;
};

int main() {
    warm_up();
    unsigned short* latencies;
    float4* other;
    float* out;
    CHECK(cudaMalloc(&latencies, 80000));
    CHECK(cudaMalloc(&out, 64));
    std::vector<Case> cases;
    const size_t shapes[][2] = {{8 << 10, 128},       {32 << 10, 128},      {128 << 10, 128},      {192 << 10, 128},
                                {256 << 10, 128},     {1 << 20, 128},       {8 << 20, 128},        {20 << 20, 128},
                                {30 << 20, 128},      {40 << 20, 128},      {60 << 20, 128},       {128 << 20, 256},
                                {1ull << 30, 4096},   {4ull << 30, 65536},  {16ull << 30, 2 << 20}, {32ull << 30, 2 << 20}};
    for (auto& shape : shapes)
        for (int cg = 0; cg < 2; cg++) cases.push_back({shape[0], shape[1], 0, cg});
    for (size_t mebibytes : {8, 20, 30, 60, 128})
        for (int how : {1, 2, 3, 4, 0, 0}) cases.push_back({mebibytes << 20, mebibytes > 64 ? 256ul : 128ul, how, 1});
    for (int how : {1, 3, 2}) cases.push_back({4ull << 30, 65536, how, 1});
    cases.push_back({1ull << 30, 4096, 3, 1});
    FILE* file = fopen("chases.bin", "wb");
    std::vector<unsigned short> found(40000);
    for (Case one : cases) {
        char* base;
        CHECK(cudaMalloc(&base, one.footprint));
        size_t count = one.footprint / one.stride;
        std::vector<uint32_t> order(count);
        for (size_t i = 0; i < count; i++) order[i] = uint32_t(i);
        uint64_t state = 88172645463325252ull;
        for (size_t i = count - 1; i > 0; i--) {
            state ^= state << 13, state ^= state >> 7, state ^= state << 17;
            std::swap(order[i], order[state % (i + 1)]);
        }
        std::vector<uint64_t> next(count);
        for (size_t i = 0; i < count; i++) next[order[i]] = uint64_t(base) + size_t(order[(i + 1) % count]) * one.stride;
        if (one.how == 4) CHECK(cudaMemset(base, 0, one.footprint));
        if (one.how == 2 || one.how == 3) {
            uint64_t* links;
            CHECK(cudaMalloc(&links, count * 8));
            CHECK(cudaMemcpy(links, next.data(), count * 8, cudaMemcpyHostToDevice));
            link<<<132, 512>>>(base, links, one.stride, count);
            CHECK(cudaDeviceSynchronize());
            CHECK(cudaFree(links));
        } else {
            CHECK(cudaMemcpy2D(base, one.stride, next.data(), 8, 8, count, cudaMemcpyHostToDevice));
        }
        if (one.how == 1 || one.how == 3) {
            CHECK(cudaMalloc(&other, 512 << 20));
            read_all<<<528, 512>>>(other, out, (512 << 20) / 16);
            CHECK(cudaDeviceSynchronize());
            CHECK(cudaFree(other));
        }
        int loads = int(std::min<size_t>(count, 20000));
        if (one.cg) chase<1><<<1, 1>>>(reinterpret_cast<uint64_t*>(base), latencies, 2 * loads);
        else chase<0><<<1, 1>>>(reinterpret_cast<uint64_t*>(base), latencies, 2 * loads);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(found.data(), latencies, 4 * loads, cudaMemcpyDeviceToHost));
        fwrite(found.data(), 2, 2 * loads, file);
        double first = 0, second = 0;
        for (int i = 0; i < loads; i++) first += found[i], second += found[loads + i];
        std::printf("case,%zu,%zu,%d,%d,%d,%.2f,%.2f\n", one.footprint >> 10, one.stride, one.how, one.cg, loads, first / loads, second / loads);
        std::fflush(stdout);
        CHECK(cudaFree(base));
    }
    fclose(file);
}
