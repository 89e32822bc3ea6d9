// What may be done with memory: mappings without access, for reading, and for reading and writing.
// Whatever is not allowed ends the context, so every attempt is a process of its own.
#include "conformance.cuh"
#include <sys/wait.h>
#include <unistd.h>

__global__ void load(const int* words, int* out) { *out = words[threadIdx.x]; }
__global__ void store(int* words) { words[threadIdx.x] = 7; }
__global__ void store_some(int* words) {
    if (threadIdx.x == 5) words[threadIdx.x] = 7;
}
__global__ void add(int* words) { atomicAdd(&words[threadIdx.x % 2], 1); }
__global__ void publish(volatile int* words) {
    words[threadIdx.x] = 7;
    __threadfence_system();
}

static const size_t mega = 1 << 20;
static CUdeviceptr area, plain;
static CUmemAccessDesc access_to_area;

static void map() {
    CUcontext context;
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    CUmemGenericAllocationHandle first, second;
    MUST(cuMemAddressReserve(&area, 4 * mega, 0, 0, 0));
    MUST(cuMemCreate(&first, 2 * mega, &properties, 0));
    MUST(cuMemCreate(&second, 2 * mega, &properties, 0));
    MUST(cuMemMap(area, 2 * mega, 0, first, 0));
    MUST(cuMemMap(area + 2 * mega, 2 * mega, 0, second, 0));
    access_to_area.location = properties.location;
    access_to_area.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    MUST(cuMemSetAccess(area, 4 * mega, &access_to_area, 1));
    MUST(cuMemsetD32(area, 3, mega));
    MUST(cuMemAlloc(&plain, mega));
}

static void give(CUmemAccess_flags flags) {
    access_to_area.flags = flags;
    CALL(cuMemSetAccess(area, 2 * mega, &access_to_area, 1));
}

static unsigned long long rights(CUdeviceptr where) {
    unsigned long long flags = 99;
    MUST(cuMemGetAccess(&flags, &access_to_area.location, where));
    return flags;
}

// The words of the area, as a kernel finds them.
static void show_words() {
    int host = 0;
    load<<<1, 1>>>((int*)area, (int*)plain);
    CALL(cudaDeviceSynchronize());
    CALL(cudaMemcpy(&host, (void*)plain, 4, cudaMemcpyDeviceToHost));
    SHOW(host);
}

static void reading() {
    give(CU_MEM_ACCESS_FLAGS_PROT_READ);
    SHOW(rights(area));
    SHOW(rights(area + 2 * mega));
    show_words();
    int host = 0;
    CALL(cuMemcpyDtoH(&host, area, 4));
    SHOW(host);
    CALL(cuMemcpyDtoD(plain, area, 4));
    CALL(cuCtxSynchronize());
    // What was not named stays open.
    store<<<1, 32>>>((int*)(area + 2 * mega));
    CALL(cudaDeviceSynchronize());
    // And it can be opened again.
    give(CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    store<<<1, 32>>>((int*)area);
    CALL(cudaDeviceSynchronize());
    show_words();
}

static void storing() {
    give(CU_MEM_ACCESS_FLAGS_PROT_READ);
    store<<<1, 32>>>((int*)area);
    CALL(cudaDeviceSynchronize());
    CALL(cudaDeviceSynchronize());
}

static void storing_some() {
    give(CU_MEM_ACCESS_FLAGS_PROT_READ);
    store_some<<<1, 32>>>((int*)area);
    CALL(cudaDeviceSynchronize());
}

static void adding() {
    give(CU_MEM_ACCESS_FLAGS_PROT_READ);
    add<<<1, 32>>>((int*)area);
    CALL(cudaDeviceSynchronize());
}

static void publishing() {
    give(CU_MEM_ACCESS_FLAGS_PROT_READ);
    publish<<<1, 32>>>((int*)area);
    CALL(cudaDeviceSynchronize());
}

static void filling() {
    give(CU_MEM_ACCESS_FLAGS_PROT_READ);
    CALL(cuMemsetD32(area, 9, 16));
    CALL(cuCtxSynchronize());
}

static void copying_in() {
    give(CU_MEM_ACCESS_FLAGS_PROT_READ);
    int host[16] = {};
    CALL(cuMemcpyHtoD(area, host, sizeof host));
    CALL(cuCtxSynchronize());
}

static void copying_within() {
    give(CU_MEM_ACCESS_FLAGS_PROT_READ);
    CALL(cuMemcpyDtoD(area, plain, 4096));
    CALL(cuCtxSynchronize());
}

static void copying_much() {
    give(CU_MEM_ACCESS_FLAGS_PROT_READ);
    static char host[mega];
    CALL(cuMemcpyHtoD(area, host, sizeof host));
    CALL(cuCtxSynchronize());
}

static void reading_nothing() {
    give(CU_MEM_ACCESS_FLAGS_PROT_NONE);
    SHOW(rights(area));
    load<<<1, 32>>>((int*)area, (int*)plain);
    CALL(cudaDeviceSynchronize());
}

static void copying_from_nothing() {
    give(CU_MEM_ACCESS_FLAGS_PROT_NONE);
    int host = 0;
    CALL(cuMemcpyDtoH(&host, area, 4));
    CALL(cuCtxSynchronize());
}

static void copying_across() {
    give(CU_MEM_ACCESS_FLAGS_PROT_READ);
    CALL(cuMemcpyDtoDAsync(area + 2 * mega - 64, plain, 128, 0));
    CALL(cuCtxSynchronize());
}

static void writing_a_value() {
    give(CU_MEM_ACCESS_FLAGS_PROT_READ);
    CALL(cuStreamWriteValue32(0, area, 5, 0));
    CALL(cuCtxSynchronize());
}

struct Attempt {
    const char* name;
    void (*body)();
};

static const Attempt attempts[] = {
    {"reading what is read-only", reading},
    {"storing to it", storing},
    {"storing to it with one lane", storing_some},
    {"atomics on it", adding},
    {"strong stores to it", publishing},
    {"filling it", filling},
    {"copying into it", copying_in},
    {"copying into it from the device", copying_within},
    {"copying much into it", copying_much},
    {"copying half into it", copying_across},
    {"writing a value to it", writing_a_value},
    {"reading what has no access", reading_nothing},
    {"copying what has no access", copying_from_nothing},
};

int main() {
    for (const Attempt& attempt : attempts) {
        fflush(stdout);
        pid_t other = fork();
        if (other == 0) {
            chapter(attempt.name);
            map();
            attempt.body();
            fflush(stdout);
            _exit(wrong_findings != 0);
        }
        int code = -1;
        waitpid(other, &code, 0);
        EXPECT(code == 0);
    }
    return finish();
}
