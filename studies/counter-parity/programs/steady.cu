// The same kernel many times, timed on the host after a warm-up: what sampling costs.
//
//   steady ITERATIONS LAUNCHES [WARM_UP_SECONDS]
//
// Prints the seconds of the timed launches and the microseconds of one.
#include "check.cuh"

__global__ void steady(float *out, int iterations) {
    float x = threadIdx.x * 1e-3f;
    for (int i = 0; i < iterations; i++)
        x = fmaf(x, 0.999f, 0.001f);
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

int main(int argc, char **argv) {
    int iterations = argc > 1 ? std::atoi(argv[1]) : 30000;
    int launches = argc > 2 ? std::atoi(argv[2]) : 10000;
    double warm_up = argc > 3 ? std::atof(argv[3]) : 0.5;
    float *out;
    CHECK(cudaMalloc(&out, 132 * 128 * sizeof(float)));
    double begun = seconds();
    while (seconds() - begun < warm_up) {
        for (int i = 0; i < 100; i++)
            steady<<<132, 128>>>(out, iterations);
        CHECK(cudaDeviceSynchronize());
    }
    double start = seconds();
    for (int i = 0; i < launches; i++)
        steady<<<132, 128>>>(out, iterations);
    CHECK(cudaDeviceSynchronize());
    double elapsed = seconds() - start;
    CHECK(cudaGetLastError());
    std::printf("steady %d %d %.6f %.3f\n", iterations, launches, elapsed, elapsed / launches * 1e6);
    return 0;
}
