// Memory and events between two processes on one device.
#include "conformance.cuh"
#include <sys/wait.h>
#include <unistd.h>

__global__ void add(int* words, int value) { words[threadIdx.x] += value; }

struct Message {
    cudaIpcMemHandle_t memory;
    cudaIpcEventHandle_t event;
};

static int child(int from, int to) {
    Message message;
    if (read(from, &message, sizeof message) != sizeof message) return 3;
    int* words = nullptr;
    cudaEvent_t event;
    CALL(cudaIpcOpenMemHandle((void**)&words, message.memory, cudaIpcMemLazyEnablePeerAccess));
    CALL(cudaIpcOpenEventHandle(&event, message.event));
    CALL(cudaEventSynchronize(event));
    add<<<1, 32>>>(words, 100);
    CALL(cudaDeviceSynchronize());
    int host[32];
    CALL(cudaMemcpy(host, words, sizeof host, cudaMemcpyDeviceToHost));
    SHOW(host[31]);
    CALL(cudaIpcCloseMemHandle(words));
    CALL(cudaEventDestroy(event));
    fflush(stdout);
    char done = 1;
    return write(to, &done, 1) == 1 ? 0 : 4;
}

int main() {
    int down[2], up[2];
    if (pipe(down) || pipe(up)) return 2;
    // Before the first CUDA call: a process that has made one cannot be forked.
    pid_t other = fork();
    if (other == 0) {
        int code = child(down[0], up[1]);
        _exit(code ? code : wrong_findings != 0);
    }
    chapter("sharing");
    int *words, host[32];
    cudaEvent_t event, plain;
    Message message = {};
    MUST(cudaMalloc(&words, sizeof host));
    MUST(cudaMemset(words, 0, sizeof host));
    CALL(cudaIpcGetMemHandle(&message.memory, words));
    CALL(cudaEventCreateWithFlags(&event, cudaEventInterprocess | cudaEventDisableTiming));
    CALL(cudaIpcGetEventHandle(&message.event, event));
    MUST(cudaEventCreate(&plain));
    cudaIpcEventHandle_t refused;
    CALL(cudaIpcGetEventHandle(&refused, plain));
    CALL(cudaGetLastError());
    void* own = nullptr;
    CALL(cudaIpcOpenMemHandle(&own, message.memory, cudaIpcMemLazyEnablePeerAccess));
    CALL(cudaGetLastError());
    add<<<1, 32>>>(words, 7);
    CALL(cudaEventRecord(event));
    CALL(cudaDeviceSynchronize());
    fflush(stdout);
    if (write(down[1], &message, sizeof message) != sizeof message) return 2;
    char done = 0;
    int status = 1;
    if (read(up[0], &done, 1) != 1) return 2;
    waitpid(other, &status, 0);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    CALL(cudaMemcpy(host, words, sizeof host, cudaMemcpyDeviceToHost));
    SHOW(host[0]);
    CALL(cudaIpcCloseMemHandle(words));
    CALL(cudaGetLastError());
    CALL(cudaEventDestroy(event));
    CALL(cudaFree(words));
    return finish();
}
