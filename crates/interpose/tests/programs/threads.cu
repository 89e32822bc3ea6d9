// Several host threads, a call from an exit handler, and a child process.
#include "check.h"
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

static void at_exit()
{
    void *pointer = NULL;
    cudaError_t status = cudaMalloc(&pointer, 77);
    printf("at exit: %d\n", status);
}

static thread_local struct Late {
    void *pointer = NULL;
    ~Late() { cudaFree(pointer); }
} late;

int main()
{
    atexit(at_exit);
    EXPECT(system("true") == 0);
    std::vector<std::thread> threads;
    for (int thread = 0; thread < 8; thread++)
        threads.emplace_back([thread] {
            int values[256], back[256];
            for (int round = 0; round < 20; round++) {
                int *device;
                SUCCEEDS(cudaMalloc(&device, sizeof values));
                for (int index = 0; index < 256; index++)
                    values[index] = thread * 1000 + round + index;
                cudaStream_t stream;
                SUCCEEDS(cudaStreamCreate(&stream));
                SUCCEEDS(cudaMemcpyAsync(device, values, sizeof values, cudaMemcpyHostToDevice, stream));
                SUCCEEDS(cudaMemcpyAsync(back, device, sizeof values, cudaMemcpyDeviceToHost, stream));
                SUCCEEDS(cudaStreamSynchronize(stream));
                for (int index = 0; index < 256; index++)
                    EXPECT(back[index] == values[index]);
                SUCCEEDS(cudaStreamDestroy(stream));
                SUCCEEDS(cudaFree(device));
            }
            SUCCEEDS(cudaMalloc(&late.pointer, 8));
            EXPECT(cudaFree((void *)0x10) == cudaErrorInvalidValue);
            EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
        });
    for (std::thread &thread : threads)
        thread.join();
    EXPECT(cudaGetLastError() == cudaSuccess); // Errors belong to their threads.
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        void *pointer;
        _exit(cudaMalloc(&pointer, 8) == cudaErrorInitializationError ? 0 : 9);
    }
    int status;
    EXPECT(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
    printf("threads done\n");
    return 5;
}
