// What the loader's tests read: one kernel of each kind of thing that a cubin can hold.
//
//   nvcc -cubin -arch=sm_80 -o sample.sm_80.cubin sample.cu          (CUDA 13.3; sm_90 likewise)
//   nvcc -ptx -arch=compute_75 …, `.version` lowered to 8.8, `.target` to sm_70,
//   then ptxas 12.9 -arch=sm_70                                       (the older header dialect)
//   nvcc -fatbin -arch=sm_80 --compress-mode=size | speed             (zstd | LZ4)

#include <cstdio>

struct Settings {
    double scale;
    short shift;
    float* values;
};

__constant__ int table[5] = {2, 3, 5, 7, 11};
__device__ int counters[4] = {1, 2, 3, 4};
__device__ float scratch[64];

__device__ int twice(int x) { return x + x; }
__device__ int negated(int x) { return -x; }
__device__ int (*const operations[2])(int) = {twice, negated};

extern "C" __global__ void __launch_bounds__(96) everything(Settings settings, char mode, int* out)
{
    __shared__ int tile[32];
    int lane = threadIdx.x & 31;
    tile[lane] = table[lane % 5] + counters[lane & 3];
    __syncthreads();
    scratch[lane] = settings.values[lane] * float(settings.scale);
    int value = operations[mode & 1](tile[31 - lane]) >> settings.shift;
    if (value == 12345)
        printf("%d at %d\n", value, lane);
    out[lane] = value;
}

extern "C" __global__ void nothing() {}
