// How evenly memory lies on slices of L2: one SM reads so many bytes once, from several places. Asked of the profiler:
//
//   ncu --metrics lts__t_requests_srcunit_tex.sum,lts__t_requests_srcunit_tex.max,lts__t_requests_srcunit_tex.min,dram__bytes_read.sum,dram__bytes_read.max,dram__bytes_read.min balance
//
// A launch for each of KIBS x PLACES, sizes outside.
#include "common.cuh"

constexpr int PLACES = 8;
constexpr size_t BETWEEN = size_t(256) << 20;
constexpr size_t KIBS[] = {1, 2, 4, 8, 16, 32, 64, 256, 1024, 2048, 4096, 8192, 16384, 24576, 32768, 49152, 65536, 131072};

__global__ void read(const float4* __restrict__ memory, float* out, size_t count) {
    float sum = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
        float4 v;
        asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3},[%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(memory + i));
        sum += v.x + v.y + v.z + v.w;
    }
    if (sum == 1.2345f) out[0] = sum;
}

int main() {
    char* memory;
    float* out;
    CHECK(cudaMalloc(&memory, BETWEEN * PLACES));
    CHECK(cudaMalloc(&out, 4));
    for (size_t kib : KIBS)
        for (int place = 0; place < PLACES; place++)
            read<<<1, 1024>>>(reinterpret_cast<float4*>(memory + place * BETWEEN), out, kib * 64);
    CHECK(cudaDeviceSynchronize());
    for (size_t kib : KIBS)
        for (int place = 0; place < PLACES; place++) std::printf("balance,%zu,%d\n", kib, place);
}
