// A kernel writes to memory of malloc that was registered. Listed in docs/status.toml: when this prints PASS, its line
// there goes.
#include <cstdio>
#include <cstdlib>

__global__ void write(int* words) { words[threadIdx.x] = static_cast<int>(threadIdx.x); }

int main() {
    int* words = static_cast<int*>(std::aligned_alloc(4096, 4096));
    int* device = nullptr;
    cudaError_t error = cudaHostRegister(words, 4096, cudaHostRegisterMapped);
    if (error == cudaSuccess) error = cudaHostGetDevicePointer(reinterpret_cast<void**>(&device), words, 0);
    if (error == cudaSuccess) {
        write<<<1, 32>>>(device);
        error = cudaDeviceSynchronize();
    }
    bool passed = error == cudaSuccess && words[31] == 31;
    std::printf("%s registered_memory: %s\n", passed ? "PASS" : "FAIL", cudaGetErrorString(error));
    return passed ? 0 : 1;
}
