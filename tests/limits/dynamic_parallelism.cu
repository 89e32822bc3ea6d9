// A kernel launches a kernel. Listed in docs/status.toml: when this prints PASS, its line there goes.
#include <cstdio>

__global__ void child(int* word) { *word = 7; }

__global__ void parent(int* word) { child<<<1, 1>>>(word); }

int main() {
    int* word = nullptr;
    cudaMalloc(&word, sizeof(int));
    parent<<<1, 1>>>(word);
    int found = 0;
    cudaError_t error = cudaGetLastError();
    if (error == cudaSuccess) error = cudaMemcpy(&found, word, sizeof(int), cudaMemcpyDeviceToHost);
    bool passed = error == cudaSuccess && found == 7;
    std::printf("%s dynamic_parallelism: %s\n", passed ? "PASS" : "FAIL", cudaGetErrorString(error));
    return passed ? 0 : 1;
}
