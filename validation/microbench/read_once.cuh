#pragma once

// Reads memory past L1, once.
static __global__ void read_once(const float4* __restrict__ memory, float* out, size_t count) {
    float sum = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) {
        float4 v;
        asm volatile("ld.global.cg.v4.f32 {%0,%1,%2,%3},[%4];" : "=f"(v.x), "=f"(v.y), "=f"(v.z), "=f"(v.w) : "l"(memory + i));
        sum += v.x + v.y + v.z + v.w;
    }
    if (sum == 1.2345f) out[0] = sum;
}
