// Dynamic parallelism: what the device runtime answers to kernels that launch kernels.
#include "conformance.cuh"

// Answers of device code, printed by the host in their order.
struct Answers {
    int count;
    int errors[120];
};

#define DEVICE(...) answers->errors[answers->count++] = (int)(__VA_ARGS__)
// The last error after a launch.
#define LAUNCH(...)                 \
    do {                            \
        __VA_ARGS__;                \
        DEVICE(cudaGetLastError()); \
    } while (0)

static Answers* answers;

static void begin() { MUST(cudaMemset(answers, 0, sizeof(Answers))); }

// Prints what device code was answered, beside the names of what it asked.
static void show(std::initializer_list<const char*> names) {
    static Answers host;
    CALL(cudaDeviceSynchronize());
    MUST(cudaMemcpy(&host, answers, sizeof host, cudaMemcpyDeviceToHost));
    int index = 0;
    for (const char* name : names) printf("device %s: %s\n", name, cudaGetErrorName((cudaError_t)host.errors[index++]));
    EXPECT(index == host.count);
}

static void show_numbers(std::initializer_list<const char*> names) {
    static Answers host;
    CALL(cudaDeviceSynchronize());
    MUST(cudaMemcpy(&host, answers, sizeof host, cudaMemcpyDeviceToHost));
    int index = 0;
    for (const char* name : names) printf("device %s = %d\n", name, host.errors[index++]);
    EXPECT(index == host.count);
}

__global__ void empty() {}
__global__ void __launch_bounds__(128) bounded(int* out) { *out = 1; }
__global__ void __cluster_dims__(2, 1, 1) clustered(int* out) { atomicAdd(out, 1); }
__global__ void adds(int* out, int value) { atomicAdd(out, value); }
__global__ void shares(int* out) {
    extern __shared__ int shared[];
    shared[threadIdx.x] = threadIdx.x;
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(out, shared[blockDim.x - 1]);
}

__global__ void shapes(Answers* answers, int* scratch) {
    LAUNCH(empty<<<1, 1>>>());
    LAUNCH(empty<<<1, 1024>>>());
    LAUNCH(empty<<<1, 1025>>>());
    LAUNCH(empty<<<1, 0>>>());
    LAUNCH(empty<<<0, 1>>>());
    LAUNCH(empty<<<dim3(1, 65535, 1), 1>>>());
    LAUNCH(empty<<<dim3(1, 65536, 1), 1>>>());
    LAUNCH(empty<<<dim3(1, 1, 65536), 1>>>());
    LAUNCH(empty<<<1, dim3(1, 1, 64)>>>());
    LAUNCH(empty<<<1, dim3(1, 1, 65)>>>());
    LAUNCH(empty<<<1, 32, 48 * 1024>>>());
    LAUNCH(empty<<<1, 32, 48 * 1024 + 1>>>());
    LAUNCH(empty<<<1, 32, 227 * 1024>>>());
    LAUNCH(empty<<<1, 32, 228 * 1024>>>());
    LAUNCH(bounded<<<1, 256>>>(scratch));
    LAUNCH(clustered<<<2, 32>>>(scratch + 1));
    LAUNCH(clustered<<<3, 32>>>(scratch + 1));
    LAUNCH(empty<<<1, 32, 0, cudaStreamPerThread>>>());
    LAUNCH(empty<<<1, 32, 0, cudaStreamLegacy>>>());
    LAUNCH(empty<<<1, 32, 0, cudaStreamTailLaunch>>>());
    LAUNCH(empty<<<1, 32, 0, cudaStreamFireAndForget>>>());
    LAUNCH(shares<<<1, 300, 1200>>>(scratch + 2));
}

__global__ void streams(Answers* answers) {
    cudaStream_t stream = 0;
    cudaEvent_t event = 0;
    DEVICE(cudaStreamCreateWithFlags(&stream, cudaStreamDefault));
    DEVICE(cudaStreamCreateWithFlags(&stream, 7));
    DEVICE(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    DEVICE(cudaEventCreateWithFlags(&event, cudaEventDefault));
    DEVICE(cudaEventCreateWithFlags(&event, cudaEventBlockingSync));
    DEVICE(cudaEventCreateWithFlags(&event, cudaEventDisableTiming));
    DEVICE(cudaEventRecord(event, stream));
    DEVICE(cudaStreamWaitEvent(stream, event, 0));
    DEVICE(cudaStreamWaitEvent(0, event, 0));
    DEVICE(cudaEventRecord(event, 0));
    DEVICE(cudaEventDestroy(event));
    DEVICE(cudaStreamDestroy(stream));
    DEVICE(cudaPeekAtLastError());
    DEVICE(cudaGetLastError());
    DEVICE(cudaGetLastError());
}

__global__ void memory(Answers* answers, int* scratch) {
    DEVICE(cudaMemcpyAsync(scratch, scratch + 8, 16, cudaMemcpyDeviceToDevice, 0));
    DEVICE(cudaMemcpyAsync(scratch, scratch + 8, 0, cudaMemcpyDeviceToDevice, 0));
    DEVICE(cudaMemcpyAsync(scratch, nullptr, 4, cudaMemcpyDeviceToDevice, 0));
    DEVICE(cudaMemsetAsync(scratch, 1, 4, 0));
    DEVICE(cudaMemsetAsync(nullptr, 1, 4, 0));
    DEVICE(cudaMemsetAsync(scratch, 1, 0, 0));
    void* pointer = nullptr;
    DEVICE(cudaMalloc(&pointer, 1000));
    DEVICE(cudaFree(pointer));
    DEVICE(cudaMalloc(&pointer, 0));
    DEVICE(cudaMalloc(&pointer, 1ull << 50));
    DEVICE(cudaFree(nullptr));
}

__global__ void questions(Answers* answers) {
    int value = -1;
    size_t limit = 0;
    DEVICE(cudaGetDevice(&value));
    DEVICE(value);
    DEVICE(cudaGetDeviceCount(&value));
    DEVICE(value > 0);
    DEVICE(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0));
    DEVICE(value);
    DEVICE(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
    DEVICE(value);
    DEVICE(cudaDeviceGetAttribute(&value, cudaDevAttrMaxThreadsPerBlock, 0));
    DEVICE(value);
    DEVICE(cudaDeviceGetAttribute(&value, cudaDevAttrComputeCapabilityMajor, 0));
    DEVICE(value);
    DEVICE(cudaDeviceGetAttribute(&value, cudaDevAttrMaxSharedMemoryPerBlock, 0));
    DEVICE(value);
    DEVICE(cudaDeviceGetAttribute(&value, (cudaDeviceAttr)0, 0));
    DEVICE(cudaDeviceGetAttribute(&value, (cudaDeviceAttr)9999, 0));
    DEVICE(cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 1));
    DEVICE(cudaDeviceGetLimit(&limit, cudaLimitDevRuntimePendingLaunchCount));
    DEVICE(limit);
    DEVICE(cudaDeviceGetLimit(&limit, cudaLimitMallocHeapSize));
    DEVICE(limit);
    DEVICE(cudaDeviceGetLimit(&limit, (cudaLimit)99));
    DEVICE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, empty, 128, 0));
    DEVICE(value);
    DEVICE(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&value, empty, 128, 40000));
    DEVICE(value);
    cudaFuncAttributes attributes;
    DEVICE(cudaFuncGetAttributes(&attributes, bounded));
    DEVICE(attributes.maxThreadsPerBlock);
    DEVICE(attributes.sharedSizeBytes);
    DEVICE(attributes.binaryVersion);
    DEVICE(attributes.ptxVersion);
    DEVICE(cudaFuncGetAttributes(&attributes, (void*)nullptr));
}

// ---- order

__device__ void leave_name(int* log, int name) {
    int place = atomicAdd(log, 1);
    log[1 + place] = name;
}

__global__ void named(int* log, int name) { leave_name(log, name); }

__global__ void tail_tree(int* log, int name, int depth) {
    leave_name(log, name);
    if (depth == 0) return;
    tail_tree<<<1, 1, 0, cudaStreamTailLaunch>>>(log, 10 * name + 1, depth - 1);
    tail_tree<<<1, 1, 0, cudaStreamTailLaunch>>>(log, 10 * name + 2, depth - 1);
    named<<<1, 1>>>(log, 10 * name + 5);
}

__global__ void stream_tree(int* log, int name, int depth) {
    leave_name(log, name);
    if (depth == 0) return;
    stream_tree<<<1, 1>>>(log, 10 * name + 1, depth - 1);
    stream_tree<<<1, 1>>>(log, 10 * name + 2, depth - 1);
}

static void show_log(int* log, const char* what) {
    int host[128];
    CALL(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, log, sizeof host, cudaMemcpyDeviceToHost));
    printf("%s:", what);
    for (int index = 0; index < host[0] && index < 127; index++) printf(" %d", host[1 + index]);
    printf("\n");
    MUST(cudaMemset(log, 0, sizeof host));
}

// ---- limits

__global__ void deep(Answers* answers, int depth, int most, int kind) {
    if (depth > answers->errors[0]) answers->errors[0] = depth;
    if (depth == most) return;
    if (kind == 0) deep<<<1, 1>>>(answers, depth + 1, most, kind);
    if (kind == 1) deep<<<1, 1, 0, cudaStreamFireAndForget>>>(answers, depth + 1, most, kind);
    if (kind == 2) deep<<<1, 1, 0, cudaStreamTailLaunch>>>(answers, depth + 1, most, kind);
    int error = cudaGetLastError();
    if (error != cudaSuccess) answers->errors[1] = error;
}

static void show_depth(const char* what) {
    Answers host;
    CALL(cudaDeviceSynchronize());
    MUST(cudaMemcpy(&host, answers, sizeof host, cudaMemcpyDeviceToHost));
    printf("%s: deepest %d, %s\n", what, host.errors[0], cudaGetErrorName((cudaError_t)host.errors[1]));
}

// Tail launches all wait, so that the pool fills.
__global__ void fills_the_pool(Answers* answers, int* sum, int launches) {
    for (int index = 0; index < launches; index++) {
        adds<<<1, 1, 0, cudaStreamTailLaunch>>>(sum, 1);
        int error = cudaGetLastError();
        if (error == cudaSuccess) {
            answers->errors[0]++;
        } else {
            answers->errors[1]++;
            answers->errors[2] = error;
        }
    }
}

static void show_pool(int* sum) {
    Answers host;
    int added;
    CALL(cudaDeviceSynchronize());
    MUST(cudaMemcpy(&host, answers, sizeof host, cudaMemcpyDeviceToHost));
    MUST(cudaMemcpy(&added, sum, sizeof added, cudaMemcpyDeviceToHost));
    printf("launched %d, refused %d: %s\n", host.errors[0], host.errors[1], cudaGetErrorName((cudaError_t)host.errors[2]));
    EXPECT(added == host.errors[0]);
    MUST(cudaMemset(sum, 0, sizeof added));
}

__global__ void own_errors(int* out) {
    empty<<<1, threadIdx.x % 7 == 3 ? 2000 : 32>>>();
    out[threadIdx.x] = cudaGetLastError();
}

int main() {
    int *scratch, *log;
    MUST(cudaMalloc(&answers, sizeof(Answers)));
    MUST(cudaMalloc(&scratch, 4096));
    MUST(cudaMalloc(&log, 4096));
    MUST(cudaMemset(scratch, 0, 4096));
    MUST(cudaMemset(log, 0, 4096));

    chapter("shapes of launches");
    begin();
    shapes<<<1, 1>>>(answers, scratch);
    CALL(cudaGetLastError());
    show({"1 thread", "1024 threads", "1025 threads", "0 threads", "0 blocks", "65535 blocks of y", "65536 blocks of y",
          "65536 blocks of z", "64 threads of z", "65 threads of z", "48 KiB of shared memory", "a byte more", "227 KiB",
          "228 KiB", "more than the launch bounds", "a cluster", "half a cluster", "cudaStreamPerThread",
          "cudaStreamLegacy", "cudaStreamTailLaunch", "cudaStreamFireAndForget", "dynamic shared memory"});
    int ran[3];
    MUST(cudaMemcpy(ran, scratch, sizeof ran, cudaMemcpyDeviceToHost));
    SHOW(ran[0]);
    SHOW(ran[1]);
    SHOW(ran[2]);

    chapter("streams and events of device code");
    begin();
    streams<<<1, 1>>>(answers);
    show({"stream by default", "stream with flags 7", "stream that does not block", "event by default",
          "event that blocks", "event without timing", "record", "wait", "wait of the NULL stream",
          "record in the NULL stream", "destroy event", "destroy stream", "peek at last error", "last error",
          "last error again"});

    chapter("memory");
    begin();
    memory<<<1, 1>>>(answers, scratch);
    show({"copy", "copy of nothing", "copy from nowhere", "set", "set nowhere", "set nothing", "malloc", "free",
          "malloc of nothing", "malloc of too much", "free of nothing"});

    chapter("questions");
    begin();
    questions<<<1, 1>>>(answers);
    show_numbers({"get device", "device", "get count", "some", "warp size", "value", "multiprocessors", "value",
                  "threads", "value", "major", "value", "shared memory", "value", "attribute 0", "attribute 9999",
                  "device 1", "pending launches", "value", "heap", "value", "limit 99", "occupancy", "value",
                  "occupancy with 40000 bytes", "value", "function attributes", "threads", "shared", "binary", "ptx",
                  "of nothing"});

    chapter("order");
    tail_tree<<<1, 1>>>(log, 1, 3);
    named<<<1, 1>>>(log, 9999);
    show_log(log, "tail launches");
    stream_tree<<<1, 1>>>(log, 1, 3);
    named<<<1, 1>>>(log, 9999);
    show_log(log, "a stream for each grid");

    chapter("depth");
    for (int kind = 0; kind < 3; kind++) {
        begin();
        deep<<<1, 1>>>(answers, 0, 60, kind);
        const char* names[] = {"the NULL stream", "fire and forget", "tail launches"};
        show_depth(names[kind]);
    }

    chapter("pending launches");
    begin();
    fills_the_pool<<<1, 1>>>(answers, scratch + 100, 2100);
    show_pool(scratch + 100);
    CALL(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 100));
    size_t limit = 0;
    CALL(cudaDeviceGetLimit(&limit, cudaLimitDevRuntimePendingLaunchCount));
    SHOW(limit);
    begin();
    fills_the_pool<<<1, 1>>>(answers, scratch + 100, 2100);
    show_pool(scratch + 100);
    CALL(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 4096));
    begin();
    fills_the_pool<<<1, 1>>>(answers, scratch + 100, 4500);
    show_pool(scratch + 100);
    CALL(cudaDeviceGetLimit(&limit, cudaLimitDevRuntimeSyncDepth));
    CALL(cudaDeviceSetLimit(cudaLimitDevRuntimeSyncDepth, 4));
    CALL(cudaGetLastError());

    chapter("each thread has its own last error");
    own_errors<<<1, 32>>>(scratch);
    CALL(cudaDeviceSynchronize());
    int last[32];
    MUST(cudaMemcpy(last, scratch, sizeof last, cudaMemcpyDeviceToHost));
    for (int index = 0; index < 32; index++) printf("%d ", last[index]);
    printf("\n");

    return finish();
}
