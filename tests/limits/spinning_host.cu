// The host waits for a kernel by reading memory in a loop, without a CUDA call. Listed in docs/status.toml: when the run
// is no longer marked as not reproducible, its line there goes.
#include <cstdio>

__global__ void raise(volatile int* flag) { *flag = 1; }

int main() {
    int* flag = nullptr;
    cudaHostAlloc(&flag, sizeof(int), cudaHostAllocMapped);
    *flag = 0;
    raise<<<1, 1>>>(flag);
    while (*static_cast<volatile int*>(flag) == 0) {
    }
    std::printf("PASS spinning_host\n");
    return 0;
}
