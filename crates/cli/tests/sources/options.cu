// Uses every option that it is told, `group:number` each, and prints what the call answers.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <string>

__global__ void nothing(int) {}

static cudaStream_t stream;
static int* words;

static cudaLaunchAttributeValue value_of(int number) {
    cudaLaunchAttributeValue value = {};
    static cudaEvent_t event;
    if (!event) cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    switch (number) {
    case cudaLaunchAttributeAccessPolicyWindow:
        value.accessPolicyWindow = {words, 4096, 0.5f, cudaAccessPropertyPersisting, cudaAccessPropertyStreaming};
        break;
    case cudaLaunchAttributeSynchronizationPolicy: value.syncPolicy = cudaSyncPolicyYield; break;
    case cudaLaunchAttributeClusterDimension: value.clusterDim = {2, 1, 1}; break;
    case cudaLaunchAttributePreferredClusterDimension: value.preferredClusterDim = {2, 1, 1}; break;
    case cudaLaunchAttributeProgrammaticEvent: value.programmaticEvent.event = event; break;
    case cudaLaunchAttributeLaunchCompletionEvent: value.launchCompletionEvent.event = event; break;
    case cudaLaunchAttributePriority: value.priority = -1; break;
    case cudaLaunchAttributeMemSyncDomainMap: value.memSyncDomainMap = {0, 2}; break;
    case cudaLaunchAttributePreferredSharedMemoryCarveout: value.sharedMemCarveout = 50; break;
    default: *(int*)&value = 1;
    }
    return value;
}

static int launch_attribute(int number) {
    cudaLaunchAttribute attribute = {};
    attribute.id = (cudaLaunchAttributeID)number;
    attribute.val = value_of(number);
    cudaLaunchConfig_t configuration = {};
    configuration.gridDim = dim3(2);
    configuration.blockDim = dim3(32);
    configuration.stream = stream;
    configuration.attrs = &attribute;
    configuration.numAttrs = 1;
    return cudaLaunchKernelEx(&configuration, nothing, 1);
}

static int stream_attribute(int number) {
    cudaLaunchAttributeValue value = value_of(number);
    return cudaStreamSetAttribute(stream, (cudaLaunchAttributeID)number, &value);
}

static int function_attribute(int number) {
    int value = number == 8 ? 1024 : number == 9 ? 50 : number >= 11 && number <= 13 ? 2 : 1;
    return cudaFuncSetAttribute(nothing, (cudaFuncAttribute)number, value);
}

static int banks(int number) {
    auto set = (CUresult(*)(int))dlsym(RTLD_DEFAULT, "cuCtxSetSharedMemConfig");
    return set(number);
}

static int host_allocation(int flags) {
    void* pointer;
    return cudaHostAlloc(&pointer, 4096, flags);
}

static int registration(int flags) { return cudaHostRegister(aligned_alloc(4096, 4096), 4096, flags); }

static int managed(int flags) {
    void* pointer;
    if (flags != cudaMemAttachSingle) return cudaMallocManaged(&pointer, 4096, flags);
    cudaMallocManaged(&pointer, 4096);
    return cudaStreamAttachMemAsync(stream, pointer, 0, flags);
}

static int advice(int number) {
    void* pointer;
    cudaMallocManaged(&pointer, 4096);
    return cudaMemAdvise(pointer, 4096, (cudaMemoryAdvise)number, {cudaMemLocationTypeDevice, 0});
}

static int physical(int row, CUmemGenericAllocationHandle* handle) {
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = row == 0 ? CU_MEM_LOCATION_TYPE_HOST : CU_MEM_LOCATION_TYPE_DEVICE;
    if (row == 1) properties.requestedHandleTypes = CU_MEM_HANDLE_TYPE_WIN32;
    if (row == 2) properties.allocFlags.compressionType = 1;
    if (row == 3) properties.allocFlags.gpuDirectRDMACapable = 1;
    if (row == 4) properties.allocFlags.usage = 1;
    return cuMemCreate(handle, 2 << 20, &properties, 0);
}

static int physical_memory(int row) {
    CUmemGenericAllocationHandle handle;
    return physical(row, &handle);
}

static int access(int flags) {
    CUmemGenericAllocationHandle handle;
    CUdeviceptr area;
    if (physical(9, &handle) || cuMemAddressReserve(&area, 2 << 20, 0, 0, 0)) return -1;
    if (cuMemMap(area, 2 << 20, 0, handle, 0)) return -2;
    CUmemAccessDesc description = {{CU_MEM_LOCATION_TYPE_DEVICE, 0}, (CUmemAccess_flags)flags};
    return cuMemSetAccess(area, 2 << 20, &description, 1);
}

static cudaMemPool_t pool(int row, int* answer) {
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = row == 0 ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
    if (row == 1) properties.handleTypes = cudaMemHandleTypePosixFileDescriptor;
    if (row == 2) properties.maxSize = 32 << 20;
    if (row == 3) properties.usage = 1;
    cudaMemPool_t pool = nullptr;
    *answer = cudaMemPoolCreate(&pool, &properties);
    return pool;
}

static int pool_property(int row) {
    int answer;
    pool(row, &answer);
    return answer;
}

static int pool_attribute(int number) {
    int answer;
    unsigned long long value = number == cudaMemPoolAttrReleaseThreshold ? 1 << 20 : 0;
    return cudaMemPoolSetAttribute(pool(9, &answer), (cudaMemPoolAttr)number, &value);
}

static int pool_access(int flags) {
    int answer;
    cudaMemAccessDesc description = {{cudaMemLocationTypeDevice, 0}, (cudaMemAccessFlags)flags};
    return cudaMemPoolSetAccess(pool(9, &answer), &description, 1);
}

static int stream_flag(int flags) {
    cudaStream_t made;
    return cudaStreamCreateWithFlags(&made, flags);
}

static int event_flag(int flags) {
    cudaEvent_t made;
    return cudaEventCreateWithFlags(&made, flags == 4 ? 6 : flags);
}

static int context_parameter(int row) {
    CUcontext context;
    CUexecAffinityParam affinity = {};
    CUctxCigParam graphics = {};
    CUctxCreateParams parameters = {};
    if (row == 0) {
        parameters.execAffinityParams = &affinity;
        parameters.numExecAffinityParams = 1;
    } else {
        parameters.cigParams = &graphics;
    }
    return cuCtxCreate(&context, &parameters, 0, 0);
}

static int occupancy(int flags) {
    int blocks;
    return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, nothing, 32, 0, flags);
}

static int graph_flag(int flags) {
    cudaGraph_t graph;
    cudaGraphExec_t instance;
    cudaGraphCreate(&graph, 0);
    return cudaGraphInstantiate(&instance, graph, flags);
}

static int graph_edge(int kind) {
    cudaGraph_t graph;
    cudaGraphCreate(&graph, 0);
    int argument = 1;
    void* arguments[] = {&argument};
    cudaKernelNodeParams parameters = {};
    parameters.func = (void*)nothing;
    parameters.gridDim = parameters.blockDim = dim3(1);
    parameters.kernelParams = arguments;
    cudaGraphNode_t from, to;
    cudaGraphAddKernelNode(&from, graph, nullptr, 0, &parameters);
    cudaGraphAddKernelNode(&to, graph, nullptr, 0, &parameters);
    cudaGraphEdgeData edge = {};
    edge.from_port = cudaGraphKernelNodePortProgrammatic;
    edge.type = kind;
    return cudaGraphAddDependencies(graph, &from, &to, &edge, 1);
}

static int copy_flag(int flags) {
    void* to[] = {words};
    const void* from[] = {words + 1024};
    size_t size = 64, index = 0;
    cudaMemcpyAttributes attributes = {};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    attributes.flags = flags;
    return cudaMemcpyBatchAsync(to, from, &size, 1, &attributes, &index, 1, stream);
}

static int pointer_attribute(int number) {
    unsigned one = 1;
    return cuPointerSetAttribute(&one, (CUpointer_attribute)number, (CUdeviceptr)words);
}

static int array_flag(int flags) {
    cudaArray_t array;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    bool deep = flags == cudaArrayLayered || flags == cudaArrayCubemap;
    return cudaMalloc3DArray(&array, &format, make_cudaExtent(64, 64, deep ? 6 : 0), flags);
}

static int jit(int number) {
    CUmodule module;
    CUjit_option option = (CUjit_option)number;
    void* value = nullptr;
    return cuModuleLoadDataEx(&module, ".version 8.0\n.target sm_90\n.address_size 64\n", 1, &option, &value);
}

struct Group {
    const char* name;
    int (*use)(int);
};

static const Group groups[] = {
    {"LaunchAttribute", launch_attribute},
    {"StreamAttribute", stream_attribute},
    {"FunctionAttribute", function_attribute},
    {"FunctionCache", [](int number) { return (int)cudaFuncSetCacheConfig(nothing, (cudaFuncCache)number); }},
    {"DeviceCache", [](int number) { return (int)cudaDeviceSetCacheConfig((cudaFuncCache)number); }},
    {"SharedBanks", banks},
    {"Limit", [](int number) { return (int)cudaDeviceSetLimit((cudaLimit)number, 64); }},
    {"HostAllocation", host_allocation},
    {"HostRegistration", registration},
    {"ManagedAllocation", managed},
    {"Advice", advice},
    {"Access", access},
    {"PhysicalMemory", physical_memory},
    {"PoolAttribute", pool_attribute},
    {"PoolProperty", pool_property},
    {"PoolAccess", pool_access},
    {"StreamFlag", stream_flag},
    {"EventFlag", event_flag},
    {"DeviceFlag", [](int flags) { return (int)cudaSetDeviceFlags(flags); }},
    {"ContextParameter", context_parameter},
    {"OccupancyFlag", occupancy},
    {"GraphFlag", graph_flag},
    {"GraphEdge", graph_edge},
    {"CopyFlag", copy_flag},
    {"PointerAttribute", pointer_attribute},
    {"ArrayFlag", array_flag},
    {"JitOption", jit},
};

int main(int count, char** told) {
    cudaMalloc(&words, 1 << 20);
    cudaStreamCreate(&stream);
    for (int index = 1; index < count; index++) {
        const char* colon = strchr(told[index], ':');
        std::string name(told[index], colon - told[index]);
        int answer = -99;
        for (const Group& group : groups)
            if (name == group.name) answer = group.use(atoi(colon + 1));
        printf("%s %d\n", told[index], answer);
    }
    return cudaDeviceSynchronize();
}
