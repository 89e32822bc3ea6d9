// Processes whose kernels wait for each other: a number goes round through mailboxes that each shares with the one
// before it. Nobody's kernel ends before the last process has launched its own.
//
// Usage: process_relay PROCESSES [MODE]     where before their launch
//   sleep     all but the first wait for the host's clock
//   compute   the last one computes for a second and a half
//   spin      all but the first look at memory that they share until the first one has waited for its GPU
//   die       the last one is killed instead
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include <vector>
#include <cuda_runtime.h>

static const unsigned rounds = 3;
static int rank = 0;

#define MUST(call)                                                                             \
    do {                                                                                       \
        cudaError_t error = (call);                                                            \
        if (error != cudaSuccess) {                                                            \
            printf("rank %d: %s: %s\n", rank, #call, cudaGetErrorName(error));                 \
            fflush(stdout);                                                                    \
            _exit(3);                                                                          \
        }                                                                                      \
    } while (0)

struct Mailbox {
    unsigned value, flag;
};

__device__ void put(volatile Mailbox* to, unsigned value, unsigned round) {
    to->value = value;
    __threadfence_system();
    to->flag = round;
}

__device__ unsigned take(volatile Mailbox* own, unsigned round) {
    while (own->flag != round) {}
    __threadfence_system();
    return own->value;
}

__global__ void relay(volatile Mailbox* own, volatile Mailbox* next, unsigned rank, unsigned* total) {
    for (unsigned round = 1; round <= rounds; round++) {
        if (rank == 0) put(next, 1000 * round, round);
        unsigned value = take(own, round);
        if (rank != 0) put(next, value + rank, round);
        *total += value;
    }
}

// Keeps the processor busy, for so many milliseconds of its own time, without a system call but for the clock.
static void compute(long milliseconds) {
    volatile unsigned state = 1;
    for (clock_t begin = clock(); (clock() - begin) * 1000 / CLOCKS_PER_SEC < milliseconds;)
        for (int step = 0; step < 1000000; step++) state = state * 1664525 + 1013904223;
}

static int work(int ranks, const char* mode, volatile int* ready, int handles, int to_previous) {
    int gpus = 0;
    MUST(cudaGetDeviceCount(&gpus));
    MUST(cudaSetDevice(rank % gpus));
    Mailbox *own, *next;
    unsigned *total, got = 0, wanted = 0;
    MUST(cudaMalloc(&own, sizeof *own));
    MUST(cudaMalloc(&total, sizeof *total));
    MUST(cudaMemset(own, 0, sizeof *own));
    MUST(cudaMemset(total, 0, sizeof *total));
    cudaIpcMemHandle_t handle;
    MUST(cudaIpcGetMemHandle(&handle, own));
    if (write(to_previous, &handle, sizeof handle) != sizeof handle) return 2;
    if (read(handles, &handle, sizeof handle) != sizeof handle) return 2;
    MUST(cudaIpcOpenMemHandle((void**)&next, handle, cudaIpcMemLazyEnablePeerAccess));
    // The first one waits for its kernel while others make more calls before they launch theirs.
    for (int call = 0; call < 3 * rank; call++) {
        void* more;
        MUST(cudaMalloc(&more, 4096));
    }
    if (rank > 0 && strcmp(mode, "sleep") == 0) usleep(200000 * rank);
    if (rank == ranks - 1 && strcmp(mode, "compute") == 0) compute(1500);
    if (strcmp(mode, "spin") == 0) {
        if (rank == 0) {
            MUST(cudaDeviceSynchronize());
            *ready = 1;
        }
        while (*ready == 0) {}
    }
    if (rank == ranks - 1 && strcmp(mode, "die") == 0) raise(SIGKILL);
    relay<<<1, 1>>>(own, next, rank, total);
    // Waits for the kernel, while others have not launched theirs.
    MUST(cudaMemcpy(&got, total, sizeof got, cudaMemcpyDeviceToHost));
    for (unsigned round = 1; round <= rounds; round++) {
        wanted += 1000 * round;
        // What those before it have added; for the first one, all others.
        for (int other = 1; other < (rank == 0 ? ranks : rank); other++) wanted += other;
    }
    MUST(cudaIpcCloseMemHandle(next));
    printf("%s: rank %d of %d got %u\n", got == wanted ? "PASS" : "FAIL", rank, ranks, got);
    fflush(stdout);
    return got != wanted;
}

int main(int argc, char** argv) {
    int ranks = atoi(argv[1]);
    std::vector<int> readers(ranks), writers(ranks);
    void* shared = mmap(nullptr, sizeof(int), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (shared == MAP_FAILED) return 2;
    for (int other = 0; other < ranks; other++) {
        int ends[2];
        if (pipe(ends)) return 2;
        readers[other] = ends[0], writers[other] = ends[1];
    }
    for (rank = 0; rank < ranks; rank++)
        if (fork() == 0)
            return work(ranks, argc > 2 ? argv[2] : "", static_cast<volatile int*>(shared), readers[rank],
                        writers[(rank + ranks - 1) % ranks]);
    int failed = 0, status = 0;
    while (wait(&status) > 0) failed += status != 0;
    printf("%s: %d of %d processes failed\n", failed ? "FAIL" : "PASS", failed, ranks);
    return failed != 0;
}
