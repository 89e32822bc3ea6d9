// Launches: attributes of functions, shapes that are refused and what they leave, nodes of graphs, attributes of devices.
#include "conformance.cuh"

__global__ void nothing() {}
__global__ void __launch_bounds__(128) bounded(int* data) { data[threadIdx.x] = threadIdx.x; }
__global__ void __cluster_dims__(2, 1, 1) paired(int* data) { data[threadIdx.x] = blockIdx.x; }
__global__ void takes(int* data, int value, double scale) { data[0] = value * scale; }
__global__ void spin(long long cycles) {
    long long start = clock64();
    while (clock64() - start < cycles) {}
}

static int* data;

static cudaError_t launch(dim3 grid, dim3 block, size_t shared, dim3 cluster = dim3(0, 0, 0)) {
    cudaLaunchConfig_t configuration = {};
    configuration.gridDim = grid;
    configuration.blockDim = block;
    configuration.dynamicSmemBytes = shared;
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {cluster.x, cluster.y, cluster.z};
    configuration.attrs = &attribute;
    configuration.numAttrs = cluster.x != 0;
    return cudaLaunchKernelEx(&configuration, nothing);
}

// What a launch that was refused leaves behind.
#define AFTER()                      \
    CALL(cudaPeekAtLastError());     \
    CALL(cudaGetLastError());        \
    CALL(cudaDeviceSynchronize());   \
    CALL(cudaGetLastError())

static void attributes_of(const char* name, const void* function) {
    cudaFuncAttributes found = {};
    printf("%s: %s\n", name, answer_name(cudaFuncGetAttributes(&found, function)));
    SHOW(found.ptxVersion);
    SHOW(found.binaryVersion);
    SHOW(found.maxThreadsPerBlock);
    SHOW(found.sharedSizeBytes);
    SHOW(found.constSizeBytes);
    SHOW(found.localSizeBytes);
    SHOW(found.maxDynamicSharedSizeBytes);
    SHOW(found.preferredShmemCarveout);
    SHOW(found.cacheModeCA);
    SHOW(found.clusterDimMustBeSet);
    SHOW(found.requiredClusterWidth);
    SHOW(found.nonPortableClusterSizeAllowed);
}

int main() {
    MUST(cudaMalloc(&data, 4096));

    chapter("attributes of functions");
    attributes_of("nothing", (const void*)nothing);
    attributes_of("bounded", (const void*)bounded);
    attributes_of("paired", (const void*)paired);
    CALL(cudaFuncSetAttribute(nothing, (cudaFuncAttribute)77, 1));
    CALL(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, 300000));
    CALL(cudaFuncSetAttribute(nothing, cudaFuncAttributeMaxDynamicSharedMemorySize, -1));
    CALL(cudaGetLastError());

    chapter("shapes");
    CALL(launch(dim3(0), dim3(32), 0));
    AFTER();
    CALL(launch(dim3(1), dim3(0), 0));
    AFTER();
    CALL(launch(dim3(1), dim3(1025), 0));
    AFTER();
    CALL(launch(dim3(1), dim3(32, 32, 2), 0));
    AFTER();
    CALL(launch(dim3(1), dim3(1, 1, 65), 0));
    AFTER();
    CALL(launch(dim3(1, 65536), dim3(32), 0));
    AFTER();
    CALL(launch(dim3(1, 1, 65536), dim3(32), 0));
    AFTER();
    CALL(launch(dim3(1), dim3(32), 50000));
    AFTER();
    CALL(launch(dim3(1), dim3(32), 1 << 30));
    AFTER();
    bounded<<<1, 256>>>(data);
    AFTER();
    CALL(launch(dim3(2), dim3(32), 0));
    AFTER();

    chapter("clusters");
    CALL(launch(dim3(2), dim3(32), 0, dim3(2)));
    AFTER();
    CALL(launch(dim3(3), dim3(32), 0, dim3(2)));
    AFTER();
    CALL(launch(dim3(16), dim3(32), 0, dim3(16)));
    AFTER();
    CALL(launch(dim3(32), dim3(32), 0, dim3(32)));
    AFTER();
    paired<<<2, 32>>>(data);
    AFTER();
    paired<<<3, 32>>>(data);
    AFTER();

    chapter("what is no error");
    cudaEvent_t event;
    MUST(cudaEventCreate(&event));
    spin<<<1, 1>>>(20000000);
    MUST(cudaEventRecord(event));
    CALL(cudaEventQuery(event));
    CALL(cudaPeekAtLastError());
    CALL(cudaStreamQuery(0));
    CALL(cudaPeekAtLastError());
    CALL(cudaDeviceSynchronize());
    CALL(cudaFree((void*)64));
    CALL(cudaPeekAtLastError());
    CALL(cudaDeviceSynchronize());
    CALL(cudaPeekAtLastError());
    CALL(cudaGetLastError());
    CALL(cudaGetLastError());

    chapter("nodes of graphs");
    cudaGraph_t graph;
    cudaGraphNode_t node;
    MUST(cudaGraphCreate(&graph, 0));
    int value = 5;
    double scale = 2.5;
    void* words[] = {&data, &value, &scale};
    cudaKernelNodeParams parameters = {};
    parameters.func = (void*)takes;
    parameters.gridDim = dim3(3);
    parameters.blockDim = dim3(64);
    parameters.kernelParams = words;
    CALL(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
    cudaKernelNodeParams again = {};
    CALL(cudaGraphKernelNodeGetParams(node, &again));
    EXPECT(again.func == (void*)takes);
    SHOW(again.gridDim.x);
    SHOW(again.blockDim.x);
    SHOW(again.sharedMemBytes);
    EXPECT(again.extra == nullptr);
    EXPECT(again.kernelParams != nullptr && *(int*)again.kernelParams[1] == 5);
    parameters.blockDim = dim3(2048);
    CALL(cudaGraphKernelNodeSetParams(node, &parameters));
    CALL(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters));
    parameters.blockDim = dim3(64);
    // What a captured launch becomes.
    cudaStream_t stream;
    cudaGraph_t captured;
    MUST(cudaStreamCreate(&stream));
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
    takes<<<2, 32, 16, stream>>>(data, 7, 2.0);
    CALL(cudaStreamEndCapture(stream, &captured));
    size_t nodes = 1;
    cudaGraphNode_t inside;
    CALL(cudaGraphGetNodes(captured, &inside, &nodes));
    SHOW(nodes);
    CALL(cudaGraphKernelNodeGetParams(inside, &again));
    EXPECT(again.func == (void*)takes);
    SHOW(again.gridDim.x);
    SHOW(again.sharedMemBytes);
    EXPECT(*(int*)again.kernelParams[1] == 7);
    cudaGraphExec_t executable;
    CALL(cudaGraphInstantiate(&executable, graph, 0));
    CALL(cudaGraphLaunch(executable, 0));
    int result = 0;
    CALL(cudaMemcpy(&result, data, 4, cudaMemcpyDeviceToHost));
    SHOW(result);
    CALL(cudaGetLastError());

    chapter("registered memory");
    int* own = (int*)aligned_alloc(4096, 8192);
    int* there = nullptr;
    own[0] = own[1024] = 3;
    CALL(cudaHostGetDevicePointer(&there, own, 0));
    CALL(cudaHostRegister(own, 8192, cudaHostRegisterMapped));
    CALL(cudaHostRegister(own, 4096, cudaHostRegisterDefault));
    CALL(cudaHostGetDevicePointer(&there, own, 0));
    EXPECT(there == own);
    takes<<<1, 1>>>(own, 6, 1.5);
    CALL(cudaDeviceSynchronize());
    SHOW(own[0]);
    cudaPointerAttributes about;
    CALL(cudaPointerGetAttributes(&about, own + 1024));
    SHOW(about.type);
    EXPECT(about.devicePointer == own + 1024);
    CALL(cudaMemcpy(data, own, 4, cudaMemcpyDefault));
    CALL(cudaHostUnregister(own + 1024));
    CALL(cudaHostUnregister(own));
    CALL(cudaHostUnregister(own));
    CALL(cudaHostRegister(nullptr, 4096, 0));
    CALL(cudaHostRegister(own, 0, 0));
    CALL(cudaHostRegister(own, 4096, 64));
    CALL(cudaGetLastError());

    chapter("attributes of devices");
    int answer = -1;
    CALL(cudaDeviceGetAttribute(&answer, (cudaDeviceAttr)0, 0));
    CALL(cudaDeviceGetAttribute(&answer, (cudaDeviceAttr)-3, 0));
    CALL(cudaDeviceGetAttribute(&answer, (cudaDeviceAttr)2000, 0));
    CALL(cudaDeviceGetAttribute(&answer, cudaDevAttrWarpSize, 7));
    CALL(cudaDeviceGetAttribute(nullptr, cudaDevAttrWarpSize, 0));
    // What a driver of CUDA 13.0 knows.
    for (int number = 1; number <= 147; number++) {
        int known = -1;
        cudaError_t found = cudaDeviceGetAttribute(&known, (cudaDeviceAttr)number, 0);
        if (found != cudaSuccess) printf("attribute %d: %s\n", number, answer_name(found));
    }
    CALL(cudaGetLastError());
    return finish();
}
