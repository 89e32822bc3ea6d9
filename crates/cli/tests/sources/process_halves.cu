// Two processes fill the halves of one buffer that the first of them shares; each on a GPU of its own if
// there are two.
//
// Usage: process_halves [fault]     with `fault` the second one uses an address that is nobody's
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
#include <cuda_runtime.h>

static const int count = 8192, launches = 4;
static int rank = 0;

#define MUST(call)                                                                             \
    do {                                                                                       \
        cudaError_t error = (call);                                                            \
        if (error != cudaSuccess) {                                                            \
            printf("rank %d: %s: %s\n", rank, #call, cudaGetErrorName(error));                 \
            fflush(stdout);                                                                    \
            if (rank == 0) wait(nullptr);                                                      \
            _exit(3);                                                                          \
        }                                                                                      \
    } while (0)

static __host__ __device__ int value(int index, int rounds, int add) {
    int sum = index;
    for (int round = 0; round < rounds; round++) sum = sum * 1664525 + 1013904223;
    return sum + add;
}

// How long a launch takes differs between the two, so that who is first depends on simulated time.
static __host__ __device__ int rounds_of(int rank) { return 100 * (rank + 1); }

__global__ void fill(int* words, int rank, int launch) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) words[index] = value(index, rounds_of(rank), rank + launch);
}

__global__ void count_all(const int* words, int* total) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (words[index] != 0) atomicAdd(total, 1);
}

struct Message {
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t ready;
};

int main(int argc, char** argv) {
    bool fault = argc > 1 && strcmp(argv[1], "fault") == 0;
    int down[2], up[2];
    if (pipe(down) || pipe(up)) return 2;
    pid_t other = fork();
    rank = other == 0;
    // Nobody waits for one that has ended.
    close(rank == 0 ? down[0] : down[1]);
    close(rank == 0 ? up[1] : up[0]);
    int gpus = 0;
    MUST(cudaGetDeviceCount(&gpus));
    MUST(cudaSetDevice(rank % gpus));
    // Memory of its own, so that the two would exchange addresses if they were served by arrival.
    int *own, *buffer;
    cudaEvent_t ready;
    Message message;
    MUST(cudaMalloc(&own, (rank + 1) << 12));
    MUST(cudaMemset(own, 0, sizeof(int)));
    if (rank == 0) {
        MUST(cudaMalloc(&buffer, 2 * count * sizeof(int)));
        MUST(cudaMemset(buffer, 0, 2 * count * sizeof(int)));
        MUST(cudaEventCreateWithFlags(&ready, cudaEventInterprocess | cudaEventDisableTiming));
        MUST(cudaEventRecord(ready));
        MUST(cudaIpcGetMemHandle(&message.memory, buffer));
        MUST(cudaIpcGetEventHandle(&message.ready, ready));
        if (write(down[1], &message, sizeof message) != sizeof message) return 2;
    } else {
        if (read(down[0], &message, sizeof message) != sizeof message) return 2;
        MUST(cudaIpcOpenMemHandle((void**)&buffer, message.memory, cudaIpcMemLazyEnablePeerAccess));
        MUST(cudaIpcOpenEventHandle(&ready, message.ready));
        MUST(cudaStreamWaitEvent(0, ready));
    }
    int* half = buffer + rank * count;
    if (fault && rank == 1) half = (int*)0x1000;
    for (int launch = 0; launch < launches; launch++) {
        fill<<<count / 256, 256>>>(half, rank, launch);
        if (launch % 2 == 1) MUST(cudaDeviceSynchronize());
    }
    count_all<<<count / 256, 256>>>(half, own);
    int total = 0;
    MUST(cudaMemcpy(&total, own, sizeof total, cudaMemcpyDeviceToHost));
    char done = 1;
    if (rank == 1) {
        MUST(cudaIpcCloseMemHandle(buffer));
        if (write(up[1], &done, 1) != 1) return 2;
        exit(total > count - 4 ? 0 : 4);
    }
    if (read(up[0], &done, 1) != 1) return 2;
    std::vector<int> host(2 * count);
    MUST(cudaMemcpy(host.data(), buffer, host.size() * sizeof(int), cudaMemcpyDeviceToHost));
    int wrong = 0, status = 1;
    for (int part = 0; part < 2; part++)
        for (int index = 0; index < count; index++)
            wrong += host[part * count + index] != value(index, rounds_of(part), part + launches - 1);
    waitpid(other, &status, 0);
    printf("%s: %d GPUs, %d wrong, the other ended with %d\n", wrong || status ? "FAIL" : "PASS", gpus, wrong, status);
    MUST(cudaFree(buffer));
    return wrong != 0 || status != 0;
}
