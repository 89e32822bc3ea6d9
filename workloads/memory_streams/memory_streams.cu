// Four streams through memory (copy, scale, add, triad), with 4-byte and 16-byte accesses.
//
// Usage: memory_streams [elements, a multiple of 4]
#include "../common/workload.cuh"

using namespace workload;

__global__ void stream_copy(const float* a, float* c, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) c[i] = a[i];
}
__global__ void stream_scale(float* b, const float* c, float factor, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) b[i] = factor * c[i];
}
__global__ void stream_add(const float4* a, const float4* b, float4* c, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float4 x = a[i], y = b[i];
        c[i] = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
    }
}
__global__ void stream_triad(float4* a, const float4* b, const float4* c, float factor, int n) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
        float4 x = b[i], y = c[i];
        a[i] = make_float4(x.x + factor * y.x, x.y + factor * y.y, x.z + factor * y.z, x.w + factor * y.w);
    }
}

int main(int argc, char** argv) {
    int n = argument(argc, argv, 1, 131072) / 4 * 4;
    if (n == 0) n = 4;
    std::vector<float> a(n), b(n), c(n);
    // Small multiples of powers of two, so that every operation is exact.
    Random random(1);
    for (float& value : a) value = random.below(4096) * 0.25f;
    Buffer<float> device_a(a), device_b(n), device_c(n);
    int blocks = std::min(blocks_for(n, 256 * 4), 1056);
    float4* a4 = reinterpret_cast<float4*>(device_a.get());
    float4* b4 = reinterpret_cast<float4*>(device_b.get());
    float4* c4 = reinterpret_cast<float4*>(device_c.get());
    stream_copy<<<blocks, 256>>>(device_a, device_c, n);
    stream_scale<<<blocks, 256>>>(device_b, device_c, 3.0f, n);
    stream_add<<<blocks, 256>>>(a4, b4, c4, n / 4);
    stream_triad<<<blocks, 256>>>(a4, b4, c4, 0.5f, n / 4);
    CHECK_LAUNCH();
    for (int i = 0; i < n; i++) {
        b[i] = 3.0f * a[i];
        c[i] = a[i] + b[i];
        a[i] = b[i] + 0.5f * c[i];
    }
    size_t wrong = mismatches(device_a.read(), a) + mismatches(device_b.read(), b) + mismatches(device_c.read(), c);
    return verdict("memory_streams", wrong == 0, "%d elements, %zu wrong", n, wrong);
}
