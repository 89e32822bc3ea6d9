// One process a node, in a ring of sockets: each fills memory on every GPU that it has, sends it to the next node, and
// adds what the one before sent. What one node has is out of the reach of the others.
//
// Usage: program NODES GPUS [die|last]      die: the process of the last node is killed while it has a GPU
//                                           last: only the last GPU of each node has work
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>
#include <string>
#include <vector>

static int node;

#define MUST(call)                                                                                  \
    if (cudaError_t error = (call)) {                                                               \
        printf("FAIL: node %d: %s: %s\n", node, #call, cudaGetErrorString(error));                  \
        return 1;                                                                                   \
    }
#define HOLDS(what)                                                                                 \
    if (!(what)) {                                                                                  \
        printf("FAIL: node %d: %s\n", node, #what);                                                 \
        return 1;                                                                                   \
    }

const int COUNT = 2000, ROUNDS = 3;

__global__ void fill(unsigned* words, unsigned first) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < COUNT) words[at] = first + at;
}

__global__ void add(unsigned* words, const unsigned* more) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < COUNT) words[at] += more[at];
}

static bool whole(bool out, int file, void* bytes, size_t count) {
    for (size_t done = 0; done < count;) {
        char* at = static_cast<char*>(bytes) + done;
        ssize_t moved = out ? write(file, at, count - done) : read(file, at, count - done);
        if (moved <= 0) return false;
        done += moved;
    }
    return true;
}

// What NVML says of how many GPUs there are; -1 if it says nothing.
static int seen_by_nvml() {
    void* library = dlopen("libnvidia-ml.so.1", RTLD_NOW);
    auto begin = library ? (int (*)())dlsym(library, "nvmlInit_v2") : nullptr;
    auto count = library ? (int (*)(unsigned*))dlsym(library, "nvmlDeviceGetCount_v2") : nullptr;
    unsigned found = 0;
    return begin && count && begin() == 0 && count(&found) == 0 ? int(found) : -1;
}

static int work(int nodes, int gpus, const char* mode, int before, int after) {
    int count = 0, bus = 0;
    MUST(cudaGetDeviceCount(&count));
    char name[64], wanted[64];
    utsname system;
    snprintf(wanted, sizeof wanted, "node%d", node);
    HOLDS(gethostname(name, sizeof name) == 0 && strcmp(name, wanted) == 0);
    HOLDS(uname(&system) == 0 && strcmp(system.nodename, wanted) == 0);
    HOLDS(count == gpus);
    HOLDS(seen_by_nvml() == gpus);
    HOLDS(cudaSetDevice(gpus) == cudaErrorInvalidDevice);
    cudaGetLastError();
    MUST(cudaDeviceGetAttribute(&bus, cudaDevAttrPciBusId, 0));
    HOLDS(bus == 1);
    const int blocks = (COUNT + 255) / 256;
    std::vector<unsigned> sent(COUNT), got(COUNT);
    const int used = strcmp(mode, "last") == 0 ? gpus - 1 : 0;
    for (int gpu = used; gpu < gpus; gpu++) {
        unsigned *own, *more, *pinned;
        MUST(cudaSetDevice(gpu));
        MUST(cudaMalloc(&own, sizeof(unsigned) * COUNT));
        MUST(cudaMalloc(&more, sizeof(unsigned) * COUNT));
        MUST(cudaMallocHost(&pinned, sizeof(unsigned) * COUNT));
        if (gpu == used) {
            // A handle of another node names nothing here, and an address of one is no memory of this one.
            cudaIpcMemHandle_t handle;
            unsigned* other = own;
            MUST(cudaIpcGetMemHandle(&handle, own));
            HOLDS(whole(true, after, &handle, sizeof handle) && whole(true, after, &other, sizeof other));
            HOLDS(whole(false, before, &handle, sizeof handle) && whole(false, before, &other, sizeof other));
            void* opened = nullptr;
            HOLDS(cudaIpcOpenMemHandle(&opened, handle, cudaIpcMemLazyEnablePeerAccess) == cudaErrorInvalidValue);
            HOLDS(cudaMemcpy(more, other, 4, cudaMemcpyDefault) == cudaErrorInvalidValue);
            cudaGetLastError();
        }
        if (strcmp(mode, "die") == 0 && node == nodes - 1) raise(SIGKILL);
        fill<<<blocks, 256>>>(own, 1000 * node + gpu);
        for (int round = 0; round < ROUNDS; round++) {
            MUST(cudaMemcpy(sent.data(), own, sizeof(unsigned) * COUNT, cudaMemcpyDeviceToHost));
            HOLDS(whole(true, after, sent.data(), sizeof(unsigned) * COUNT));
            HOLDS(whole(false, before, got.data(), sizeof(unsigned) * COUNT));
            memcpy(pinned, got.data(), sizeof(unsigned) * COUNT);
            MUST(cudaMemcpy(more, pinned, sizeof(unsigned) * COUNT, cudaMemcpyHostToDevice));
            add<<<blocks, 256>>>(own, more);
            MUST(cudaDeviceSynchronize());
        }
        MUST(cudaMemcpy(got.data(), own, sizeof(unsigned) * COUNT, cudaMemcpyDeviceToHost));
        // The same by the host: each round every node adds what the one before it had.
        std::vector<unsigned> first(nodes), next(nodes);
        for (int one = 0; one < nodes; one++) first[one] = 1000 * one + gpu;
        unsigned terms = 1;
        for (int round = 0; round < ROUNDS; round++, terms *= 2) {
            for (int one = 0; one < nodes; one++) next[one] = first[one] + first[(one + nodes - 1) % nodes];
            first = next;
        }
        for (int at = 0; at < COUNT; at++) HOLDS(got[at] == first[node] + terms * at);
    }
    return 0;
}

int main(int argc, char** argv) {
    setvbuf(stdout, nullptr, _IOLBF, 0);
    signal(SIGPIPE, SIG_IGN);
    int nodes = argc > 1 ? atoi(argv[1]) : 2, gpus = argc > 2 ? atoi(argv[2]) : 1;
    const char* mode = argc > 3 ? argv[3] : "";
    // Socket i goes from node i to the next one.
    std::vector<int> ends(2 * nodes);
    for (int one = 0; one < nodes; one++)
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, &ends[2 * one])) return 2;
    for (node = 0; node < nodes; node++) {
        if (fork()) continue;
        setenv("LOCKSTEP_NODE", std::to_string(node).c_str(), 1);
        int after = ends[2 * node], before = ends[2 * ((node + nodes - 1) % nodes) + 1];
        for (int end : ends)
            if (end != after && end != before) close(end);
        _exit(work(nodes, gpus, mode, before, after));
    }
    for (int end : ends) close(end);
    int failed = 0;
    for (int one = 0, status; one < nodes; one++) {
        wait(&status);
        failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    printf(failed ? "FAIL: %d nodes\n" : "PASS: %d nodes of %d GPUs\n", failed ? failed : nodes, gpus);
    return failed != 0;
}
