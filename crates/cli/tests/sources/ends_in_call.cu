// Two processes, one of which ends while one of its threads is inside a call that waits; the other goes on.
#include <cstdio>
#include <cuda_runtime.h>
#include <semaphore>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

__global__ void work(long long cycles, int* done) {
    for (long long begin = clock64(); clock64() - begin < cycles;) {}
    *done = 1;
}

// Ends as soon as the thread that waits for its kernel is inside its call.
static int child() {
    int *done, *first, *last;
    if (cudaMalloc(&done, sizeof(int))) return 2;
    work<<<1, 1>>>(1 << 20, done);
    std::binary_semaphore waits{0};
    std::thread([&] {
        if (cudaMalloc(&first, sizeof(int))) _exit(8);
        waits.release();
        cudaDeviceSynchronize();
        _exit(3);
    }).detach();
    waits.acquire();
    // Answered when all others are at rest: the thread is inside its call then.
    _exit(cudaMalloc(&last, sizeof(int)) ? 4 : 0);
}

int main() {
    pid_t other = fork();
    if (other == 0) return child();
    int *done, got = 0, status = 1;
    if (cudaMalloc(&done, sizeof(int))) return 5;
    work<<<1, 1>>>(1 << 16, done);
    if (cudaMemcpy(&got, done, sizeof(int), cudaMemcpyDeviceToHost)) return 6;
    if (waitpid(other, &status, 0) != other) return 7;
    bool pass = got == 1 && status == 0;
    printf("%s: kernel %d, other process %d\n", pass ? "PASS" : "FAIL", got, status);
    return pass ? 0 : 1;
}
