// Adds two vectors of many elements, piece by piece, and checks every sum.
//
//   vector_add [ELEMENTS [PIECE [ROUNDS]]]      default 500000000 50000000 1
#include <vector>

#include "check.cuh"

__global__ void fill(float *a, float *b, long first, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        a[i] = (float)((first + i) % 1000);
        b[i] = (float)((first + i) % 777) * 0.5f;
    }
}

__global__ void vectorAdd(const float *a, const float *b, float *c, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        c[i] = a[i] + b[i];
}

int main(int argc, char **argv) {
    long elements = argc > 1 ? std::atol(argv[1]) : 500000000L;
    int piece = argc > 2 ? std::atoi(argv[2]) : 50000000;
    int rounds = argc > 3 ? std::atoi(argv[3]) : 1;
    float *a, *b, *c;
    CHECK(cudaMalloc(&a, piece * sizeof(float)));
    CHECK(cudaMalloc(&b, piece * sizeof(float)));
    CHECK(cudaMalloc(&c, piece * sizeof(float)));
    std::vector<float> sums(piece);
    double begun = seconds();
    for (int round = 0; round < rounds; round++)
        for (long first = 0; first < elements; first += piece) {
            int count = (int)(elements - first < piece ? elements - first : piece);
            int blocks = (count + 255) / 256;
            fill<<<blocks, 256>>>(a, b, first, count);
            vectorAdd<<<blocks, 256>>>(a, b, c, count);
            CHECK(cudaGetLastError());
            if (round == 0) {
                CHECK(cudaMemcpy(sums.data(), c, count * sizeof(float), cudaMemcpyDeviceToHost));
                for (int i = 0; i < count; i++) {
                    float wanted = (float)((first + i) % 1000) + (float)((first + i) % 777) * 0.5f;
                    if (sums[i] != wanted) {
                        std::fprintf(stderr, "element %ld is %g, not %g\n", first + i, sums[i], wanted);
                        return 1;
                    }
                }
            }
        }
    CHECK(cudaDeviceSynchronize());
    std::printf("vector_add %ld elements, %d rounds, %.6f s, verified\n", elements, rounds, seconds() - begun);
    return 0;
}
