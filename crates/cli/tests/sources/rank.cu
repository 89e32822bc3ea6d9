// One of several programs that know nothing of each other and share a GPU.
//
// Usage: rank NUMBER [SIGNAL]       with a signal it ends itself before it is done
#include <csignal>
#include <cstdlib>
#include <cuda_runtime.h>

__global__ void work(int* words, int rank) {
    int index = blockIdx.x * blockDim.x + threadIdx.x, sum = index;
    for (int round = 0; round < 40 * (rank + 1); round++) sum = sum * 3 + round;
    words[index] = sum;
}

int main(int argc, char** argv) {
    int rank = atoi(argv[1]);
    // They are not ready at the same time.
    volatile double spent = 1;
    for (long step = 0; step < rank * 5000000L; step++) spent = spent * 1.0000001;
    int* words;
    if (cudaMalloc(&words, (rank + 1) << 12)) return 2;
    for (int launch = 0; launch < 5; launch++) {
        work<<<rank + 1, 256>>>(words, rank);
        if (launch % (rank + 1) == 0 && cudaDeviceSynchronize()) return 3;
    }
    if (argc > 2) raise(atoi(argv[2]));
    return cudaDeviceSynchronize() || cudaFree(words) ? 4 : 0;
}
