// How evenly memory lies on slices of L2: one SM reads so many bytes once, from several places. Asked of the profiler:
//
//   ncu --metrics lts__t_requests_srcunit_tex.sum,lts__t_requests_srcunit_tex.max,lts__t_requests_srcunit_tex.min,dram__bytes_read.sum,dram__bytes_read.max,dram__bytes_read.min balance
//
// A launch for each of KIBS x PLACES, sizes outside.
#include "common.cuh"
#include "read_once.cuh"

constexpr int PLACES = 8;
constexpr size_t BETWEEN = size_t(256) << 20;
constexpr size_t KIBS[] = {1, 2, 4, 8, 16, 32, 64, 256, 1024, 2048, 4096, 8192, 16384, 24576, 32768, 49152, 65536, 131072};

int main() {
    char* memory;
    float* out;
    CHECK(cudaMalloc(&memory, BETWEEN * PLACES));
    CHECK(cudaMalloc(&out, 4));
    for (size_t kib : KIBS)
        for (int place = 0; place < PLACES; place++)
            read_once<<<1, 1024>>>(reinterpret_cast<float4*>(memory + place * BETWEEN), out, kib * 64);
    CHECK(cudaDeviceSynchronize());
    for (size_t kib : KIBS)
        for (int place = 0; place < PLACES; place++) std::printf("balance,%zu,%d\n", kib, place);
}
