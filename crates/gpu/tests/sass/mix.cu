// nvcc -cubin -arch=sm_90 -o mix.sm_90.cubin mix.cu
extern "C" __global__ void mix(const float* in, float* out, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    float x = in[i];
    for (int k = 0; k < i % 7; k++) x = x * 1.5f + k;
    out[i] = x > 3.0f ? x * x : x - 1.0f;
}
