// Errors: the last one of a thread, names and texts, what kernels fall into and what then.
#include "conformance.cuh"
#include <cassert>
#include <sys/wait.h>
#include <unistd.h>

// Their headers are not part of every installation.
extern "C" cudaError_t cudaProfilerStart();
extern "C" cudaError_t cudaProfilerStop();
extern "C" CUresult cuProfilerStart();
extern "C" CUresult cuProfilerStop();

__global__ void nothing() {}
__global__ void wild(int* pointer) { pointer[threadIdx.x] = 1; }
__global__ void crooked(char* pointer) { *(int*)(pointer + 2) = 1; }
__global__ void asserts(int value) { assert(value == 4); }
__global__ void traps() { __trap(); }

// Each fault in a process of its own: a context that has fallen stays down.
template <typename Launch>
static void faults(const char* name, Launch launch) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        chapter(name);
        launch();
        CALL(cudaGetLastError());
        cudaError_t answer = cudaDeviceSynchronize();
        printf("cudaDeviceSynchronize: %s\n", answer_name(answer));
        CALL(cudaGetLastError());
        CALL(cudaPeekAtLastError());
        int* memory = nullptr;
        CALL(cudaMalloc(&memory, 16));
        nothing<<<1, 1>>>();
        CALL(cudaGetLastError());
        CALL(cudaStreamSynchronize(0));
        fflush(stdout);
        _exit(0);
    }
    int status = 1;
    waitpid(child, &status, 0);
    EXPECT(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main() {
    faults("an illegal address", [] { wild<<<1, 32>>>((int*)64); });
    faults("a misaligned address", [] {
        char* memory = nullptr;
        cudaMalloc(&memory, 64);
        crooked<<<1, 1>>>(memory);
    });
    faults("an assertion", [] { asserts<<<1, 1>>>(5); });
    faults("a trap", [] { traps<<<1, 1>>>(); });

    chapter("names and texts");
    for (int code : {0, 1, 2, 3, 4, 35, 46, 98, 100, 101, 200, 201, 209, 214, 218, 222, 300, 304, 400, 401, 500, 600, 700, 701, 702,
                     704, 709, 710, 716, 717, 718, 719, 720, 800, 801, 900, 901, 906, 907, 910, 999, 12345})
        printf("%d %s: %s\n", code, cudaGetErrorName((cudaError_t)code), cudaGetErrorString((cudaError_t)code));
    const char* word = nullptr;
    CALL(cuGetErrorName((CUresult)700, &word));
    printf("%s\n", word ? word : "none");
    CALL(cuGetErrorString((CUresult)700, &word));
    printf("%s\n", word ? word : "none");
    word = "something";
    printf("%d\n", (int)cuGetErrorName((CUresult)12345, &word));
    printf("%s\n", word ? word : "none");

    chapter("the last error");
    CALL(cudaGetLastError());
    CALL(cudaSetDevice(99));
    CALL(cudaPeekAtLastError());
    CALL(cudaPeekAtLastError());
    CALL(cudaGetLastError());
    CALL(cudaGetLastError());
    CALL(cudaMalloc((void**)nullptr, 1));
    CALL(cudaDeviceSynchronize());
    CALL(cudaGetLastError());
    nothing<<<1, 5000>>>();
    CALL(cudaPeekAtLastError());
    nothing<<<1, 1>>>();
    CALL(cudaPeekAtLastError());
    CALL(cudaGetLastError());
    CALL(cudaEventQuery(nullptr));
    CALL(cudaGetLastError());
    CALL(cudaStreamSynchronize((cudaStream_t)nullptr));

    chapter("profiling and reset");
    CALL(cudaProfilerStart());
    CALL(cudaProfilerStop());
    CALL(cuProfilerStart());
    CALL(cuProfilerStop());
    CALL(cudaDeviceReset());
    CALL(cudaGetLastError());
    nothing<<<1, 1>>>();
    CALL(cudaDeviceSynchronize());
    return finish();
}
