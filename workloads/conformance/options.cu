// Attributes, flags and limits: what is taken, what is refused, and what reads back.
#include "conformance.cuh"

__global__ void add(int* words) { atomicAdd(words, 1); }

static int* words;

static cudaError_t with(cudaLaunchAttribute attribute, cudaStream_t stream = 0) {
    cudaLaunchConfig_t configuration = {};
    configuration.gridDim = dim3(2);
    configuration.blockDim = dim3(32);
    configuration.stream = stream;
    configuration.attrs = &attribute;
    configuration.numAttrs = 1;
    cudaError_t answer = cudaLaunchKernelEx(&configuration, add, words);
    cudaGetLastError();
    return answer;
}

static cudaLaunchAttribute of(int number) {
    cudaLaunchAttribute attribute = {};
    attribute.id = (cudaLaunchAttributeID)number;
    return attribute;
}

static cudaAccessPolicyWindow window(size_t bytes, float ratio) {
    cudaAccessPolicyWindow window = {};
    window.base_ptr = words;
    window.num_bytes = bytes;
    window.hitRatio = ratio;
    window.hitProp = cudaAccessPropertyPersisting;
    window.missProp = cudaAccessPropertyStreaming;
    return window;
}

static void launch_attributes() {
    chapter("launch attributes");
    cudaLaunchAttribute policy = of(cudaLaunchAttributeAccessPolicyWindow);
    CALL(with(policy));
    policy.val.accessPolicyWindow = window(4096, 0.5f);
    CALL(with(policy));
    policy.val.accessPolicyWindow.hitRatio = 1.5f;
    CALL(with(policy));
    policy.val.accessPolicyWindow.hitRatio = -0.5f;
    CALL(with(policy));
    policy.val.accessPolicyWindow = window((size_t)1 << 40, 1.0f);
    CALL(with(policy));
    policy.val.accessPolicyWindow = window(4096, 1.0f);
    policy.val.accessPolicyWindow.missProp = cudaAccessPropertyPersisting;
    CALL(with(policy));
    policy.val.accessPolicyWindow.missProp = (cudaAccessProperty)9;
    CALL(with(policy));
    cudaLaunchAttribute synchronization = of(cudaLaunchAttributeSynchronizationPolicy);
    synchronization.val.syncPolicy = cudaSyncPolicySpin;
    CALL(with(synchronization));
    cudaLaunchAttribute scheduling = of(cudaLaunchAttributeClusterSchedulingPolicyPreference);
    scheduling.val.clusterSchedulingPolicyPreference = cudaClusterSchedulingPolicySpread;
    CALL(with(scheduling));
    scheduling.val.clusterSchedulingPolicyPreference = (cudaClusterSchedulingPolicy)9;
    CALL(with(scheduling));
    cudaLaunchAttribute dependent = of(cudaLaunchAttributeProgrammaticStreamSerialization);
    dependent.val.programmaticStreamSerializationAllowed = 1;
    CALL(with(dependent));
    cudaLaunchAttribute priority = of(cudaLaunchAttributePriority);
    priority.val.priority = -3;
    CALL(with(priority));
    priority.val.priority = -100;
    CALL(with(priority));
    priority.val.priority = 100;
    CALL(with(priority));
    cudaLaunchAttribute domain = of(cudaLaunchAttributeMemSyncDomain);
    domain.val.memSyncDomain = cudaLaunchMemSyncDomainRemote;
    CALL(with(domain));
    domain.val.memSyncDomain = (cudaLaunchMemSyncDomain)7;
    CALL(with(domain));
    cudaLaunchAttribute domains = of(cudaLaunchAttributeMemSyncDomainMap);
    domains.val.memSyncDomainMap.default_ = 0;
    domains.val.memSyncDomainMap.remote = 1;
    CALL(with(domains));
    domains.val.memSyncDomainMap.remote = 200;
    CALL(with(domains));
    cudaLaunchAttribute carveout = of(cudaLaunchAttributePreferredSharedMemoryCarveout);
    carveout.val.sharedMemCarveout = 50;
    CALL(with(carveout));
    carveout.val.sharedMemCarveout = 101;
    CALL(with(carveout));
    cudaEvent_t plain, timed;
    MUST(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming));
    MUST(cudaEventCreate(&timed));
    cudaLaunchAttribute completion = of(cudaLaunchAttributeLaunchCompletionEvent);
    completion.val.launchCompletionEvent.event = plain;
    CALL(with(completion));
    CALL(cudaEventSynchronize(plain));
    completion.val.launchCompletionEvent.event = timed;
    CALL(with(completion));
    completion.val.launchCompletionEvent.event = plain;
    completion.val.launchCompletionEvent.flags = 8;
    CALL(with(completion));
    cudaLaunchAttribute event = of(cudaLaunchAttributeProgrammaticEvent);
    event.val.programmaticEvent.event = plain;
    CALL(with(event));
    CALL(cudaEventSynchronize(plain));
    event.val.programmaticEvent.event = timed;
    CALL(with(event));
    CALL(with(of(cudaLaunchAttributeDeviceUpdatableKernelNode)));
    cudaLaunchAttribute updatable = of(cudaLaunchAttributeDeviceUpdatableKernelNode);
    updatable.val.deviceUpdatableKernelNode.deviceUpdatable = 1;
    CALL(with(updatable));
    CALL(with(of(cudaLaunchAttributeNvlinkUtilCentricScheduling)));
    CALL(with(of(15)));
    CALL(with(of(77)));
    CALL(cudaDeviceSynchronize());
}

static void stream_attributes() {
    chapter("stream attributes");
    cudaStream_t stream, other;
    MUST(cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, -2));
    MUST(cudaStreamCreate(&other));
    cudaStreamAttrValue value = {};
    CALL(cudaStreamGetAttribute(stream, cudaStreamAttributePriority, &value));
    SHOW(value.priority);
    value.priority = -4;
    CALL(cudaStreamSetAttribute(stream, cudaStreamAttributePriority, &value));
    int priority = 9;
    CALL(cudaStreamGetPriority(stream, &priority));
    SHOW(priority);
    value.priority = -77;
    CALL(cudaStreamSetAttribute(stream, cudaStreamAttributePriority, &value));
    CALL(cudaStreamGetPriority(stream, &priority));
    SHOW(priority);
    value = {};
    CALL(cudaStreamGetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value));
    SHOW(value.accessPolicyWindow.num_bytes);
    value.accessPolicyWindow = window(4096, 0.25f);
    CALL(cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value));
    value = {};
    CALL(cudaStreamGetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value));
    SHOW(value.accessPolicyWindow.num_bytes);
    SHOW(value.accessPolicyWindow.hitRatio * 100);
    SHOW(value.accessPolicyWindow.hitProp);
    SHOW(value.accessPolicyWindow.missProp);
    EXPECT(value.accessPolicyWindow.base_ptr == words);
    value.accessPolicyWindow.hitRatio = 3;
    CALL(cudaStreamSetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value));
    CALL(cudaStreamGetAttribute(stream, cudaStreamAttributeAccessPolicyWindow, &value));
    SHOW(value.accessPolicyWindow.hitRatio * 100);
    value = {};
    CALL(cudaStreamGetAttribute(stream, cudaStreamAttributeSynchronizationPolicy, &value));
    SHOW(value.syncPolicy);
    value.syncPolicy = cudaSyncPolicyYield;
    CALL(cudaStreamSetAttribute(stream, cudaStreamAttributeSynchronizationPolicy, &value));
    value = {};
    CALL(cudaStreamGetAttribute(stream, cudaStreamAttributeSynchronizationPolicy, &value));
    SHOW(value.syncPolicy);
    value.syncPolicy = (cudaSynchronizationPolicy)77;
    CALL(cudaStreamSetAttribute(stream, cudaStreamAttributeSynchronizationPolicy, &value));
    value = {};
    CALL(cudaStreamGetAttribute(stream, cudaStreamAttributeMemSyncDomain, &value));
    SHOW(value.memSyncDomain);
    value.memSyncDomain = cudaLaunchMemSyncDomainRemote;
    CALL(cudaStreamSetAttribute(stream, cudaStreamAttributeMemSyncDomain, &value));
    value = {};
    CALL(cudaStreamGetAttribute(stream, cudaStreamAttributeMemSyncDomain, &value));
    SHOW(value.memSyncDomain);
    value = {};
    CALL(cudaStreamGetAttribute(stream, cudaStreamAttributeMemSyncDomainMap, &value));
    SHOW(value.memSyncDomainMap.default_);
    SHOW(value.memSyncDomainMap.remote);
    value.memSyncDomainMap.remote = 2;
    CALL(cudaStreamSetAttribute(stream, cudaStreamAttributeMemSyncDomainMap, &value));
    value = {};
    CALL(cudaStreamGetAttribute(stream, cudaStreamAttributeMemSyncDomainMap, &value));
    SHOW(value.memSyncDomainMap.remote);
    CALL(cudaStreamSetAttribute(stream, cudaLaunchAttributeCooperative, &value));
    CALL(cudaStreamGetAttribute(stream, cudaLaunchAttributeCooperative, &value));
    CALL(cudaStreamSetAttribute(stream, (cudaLaunchAttributeID)77, &value));
    CALL(cudaStreamCopyAttributes(other, stream));
    CALL(cudaStreamGetPriority(other, &priority));
    SHOW(priority);
    value = {};
    CALL(cudaStreamGetAttribute(other, cudaStreamAttributeAccessPolicyWindow, &value));
    SHOW(value.accessPolicyWindow.num_bytes);
    CALL(cudaStreamGetAttribute(other, cudaStreamAttributeSynchronizationPolicy, &value));
    SHOW(value.syncPolicy);
    cudaGetLastError();
}

static void priorities_of_nodes() {
    chapter("priorities of nodes");
    cudaStream_t stream;
    MUST(cudaStreamCreateWithPriority(&stream, 0, -3));
    cudaGraph_t graph;
    MUST(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
    add<<<1, 32, 0, stream>>>(words);
    cudaLaunchAttribute priority = of(cudaLaunchAttributePriority);
    priority.val.priority = -1;
    MUST(with(priority, stream));
    MUST(cudaStreamEndCapture(stream, &graph));
    cudaGraphNode_t nodes[2];
    size_t count = 2;
    MUST(cudaGraphGetNodes(graph, nodes, &count));
    int seen[2] = {};
    for (int index = 0; index < 2; index++) {
        cudaLaunchAttributeValue value = {};
        MUST(cudaGraphKernelNodeGetAttribute(nodes[index], cudaLaunchAttributePriority, &value));
        seen[index] = value.priority;
    }
    SHOW(seen[0] + seen[1]);
    cudaLaunchAttributeValue value = {};
    value.priority = -100;
    CALL(cudaGraphKernelNodeSetAttribute(nodes[0], cudaLaunchAttributePriority, &value));
    CALL(cudaGraphKernelNodeGetAttribute(nodes[0], cudaLaunchAttributePriority, &value));
    SHOW(value.priority);
    value = {};
    CALL(cudaGraphKernelNodeGetAttribute(nodes[0], cudaLaunchAttributeAccessPolicyWindow, &value));
    SHOW(value.accessPolicyWindow.num_bytes);
    value.accessPolicyWindow = window(4096, 0.25f);
    CALL(cudaGraphKernelNodeSetAttribute(nodes[0], cudaLaunchAttributeAccessPolicyWindow, &value));
    value = {};
    CALL(cudaGraphKernelNodeGetAttribute(nodes[0], cudaLaunchAttributeAccessPolicyWindow, &value));
    SHOW(value.accessPolicyWindow.num_bytes);
    CALL(cudaGraphKernelNodeSetAttribute(nodes[0], cudaLaunchAttributeSynchronizationPolicy, &value));
    CALL(cudaGraphKernelNodeSetAttribute(nodes[0], (cudaLaunchAttributeID)77, &value));
    cudaGraphExec_t instance;
    CALL(cudaGraphInstantiate(&instance, graph, cudaGraphInstantiateFlagUseNodePriority));
    CALL(cudaGraphLaunch(instance, 0));
    CALL(cudaDeviceSynchronize());
    CALL(cudaGraphInstantiate(&instance, graph, 64));
    cudaGetLastError();
}

static void function_attributes() {
    chapter("function attributes");
    CALL(cudaFuncSetAttribute(add, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
    CALL(cudaFuncSetAttribute(add, cudaFuncAttributePreferredSharedMemoryCarveout, -1));
    CALL(cudaFuncSetAttribute(add, cudaFuncAttributePreferredSharedMemoryCarveout, 101));
    CALL(cudaFuncSetAttribute(add, cudaFuncAttributePreferredSharedMemoryCarveout, -2));
    CALL(cudaFuncSetAttribute(add, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20));
    CALL(cudaFuncSetAttribute(add, cudaFuncAttributeMaxDynamicSharedMemorySize, -1));
    CALL(cudaFuncSetAttribute(add, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    CALL(cudaFuncSetAttribute(add, cudaFuncAttributeClusterSchedulingPolicyPreference,
                              cudaClusterSchedulingPolicyLoadBalancing));
    CALL(cudaFuncSetAttribute(add, cudaFuncAttributeClusterSchedulingPolicyPreference, 9));
    CALL(cudaFuncSetAttribute(add, (cudaFuncAttribute)3, 1));
    CALL(cudaFuncSetAttribute(add, (cudaFuncAttribute)99, 1));
    CALL(cudaFuncSetCacheConfig(add, cudaFuncCachePreferShared));
    CALL(cudaFuncSetCacheConfig(add, cudaFuncCachePreferNone));
    CALL(cudaFuncSetCacheConfig(add, (cudaFuncCache)9));
    CALL(cudaDeviceSetCacheConfig(cudaFuncCachePreferL1));
    cudaFuncCache preference = cudaFuncCachePreferNone;
    CALL(cudaDeviceGetCacheConfig(&preference));
    SHOW(preference);
    CALL(cudaDeviceSetCacheConfig((cudaFuncCache)9));
    CALL(cudaDeviceSetCacheConfig(cudaFuncCachePreferNone));
    cudaGetLastError();
}

static void limits() {
    chapter("limits");
    const size_t most = (size_t)1 << 40;
    size_t value = 0;
    CALL(cudaDeviceSetLimit(cudaLimitStackSize, 16384));
    CALL(cudaDeviceGetLimit(&value, cudaLimitStackSize));
    SHOW(value);
    CALL(cudaDeviceSetLimit(cudaLimitStackSize, most));
    CALL(cudaDeviceSetLimit(cudaLimitStackSize, 1000));
    CALL(cudaDeviceGetLimit(&value, cudaLimitStackSize));
    SHOW(value);
    CALL(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 2 << 20));
    CALL(cudaDeviceGetLimit(&value, cudaLimitPrintfFifoSize));
    SHOW(value);
    CALL(cudaDeviceSetLimit(cudaLimitMallocHeapSize, 64 << 20));
    CALL(cudaDeviceGetLimit(&value, cudaLimitMallocHeapSize));
    SHOW(value);
    CALL(cudaDeviceSetLimit(cudaLimitDevRuntimeSyncDepth, 4));
    CALL(cudaDeviceGetLimit(&value, cudaLimitDevRuntimeSyncDepth));
    CALL(cudaDeviceSetLimit(cudaLimitDevRuntimePendingLaunchCount, 4096));
    CALL(cudaDeviceGetLimit(&value, cudaLimitDevRuntimePendingLaunchCount));
    SHOW(value);
    CALL(cudaDeviceGetLimit(&value, cudaLimitMaxL2FetchGranularity));
    SHOW(value);
    CALL(cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, 32));
    CALL(cudaDeviceGetLimit(&value, cudaLimitMaxL2FetchGranularity));
    SHOW(value);
    CALL(cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, 100));
    CALL(cudaDeviceGetLimit(&value, cudaLimitMaxL2FetchGranularity));
    SHOW(value);
    CALL(cudaDeviceSetLimit(cudaLimitMaxL2FetchGranularity, 4096));
    CALL(cudaDeviceGetLimit(&value, cudaLimitMaxL2FetchGranularity));
    SHOW(value);
    CALL(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 4 << 20));
    CALL(cudaDeviceGetLimit(&value, cudaLimitPersistingL2CacheSize));
    SHOW(value);
    CALL(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, most));
    CALL(cudaDeviceGetLimit(&value, cudaLimitPersistingL2CacheSize));
    SHOW(value);
    CALL(cudaDeviceSetLimit(cudaLimitPersistingL2CacheSize, 0));
    CALL(cudaCtxResetPersistingL2Cache());
    CALL(cudaDeviceSetLimit((cudaLimit)7, 1));
    CALL(cudaDeviceSetLimit((cudaLimit)77, 1));
    cudaGetLastError();
}

static void flags() {
    chapter("flags");
    void* pointer = nullptr;
    for (unsigned flag : {1u, 2u, 4u, 7u, 8u, 0x10u, 0x20u, 0x40u}) {
        cudaError_t answer = cudaHostAlloc(&pointer, 4096, flag);
        printf("cudaHostAlloc, %#x: %s\n", flag, answer_name(answer));
        if (!answer) MUST(cudaFreeHost(pointer));
    }
    char* host = (char*)aligned_alloc(4096, 16 * 4096);
    for (unsigned flag : {1u, 2u, 4u, 8u, 0x10u, 0x40u}) {
        cudaError_t answer = cudaHostRegister(host, 4096, flag);
        printf("cudaHostRegister, %#x: %s\n", flag, answer_name(answer));
        if (!answer) MUST(cudaHostUnregister(host));
    }
    for (unsigned flag : {0u, 1u, 2u, 4u, 8u}) {
        cudaError_t answer = cudaMallocManaged(&pointer, 4096, flag);
        printf("cudaMallocManaged, %#x: %s\n", flag, answer_name(answer));
        if (!answer) MUST(cudaFree(pointer));
    }
    for (unsigned flag : {0u, 1u, 2u, 4u, 6u, 8u, 0x80u}) {
        cudaEvent_t event;
        cudaError_t answer = cudaEventCreateWithFlags(&event, flag);
        printf("cudaEventCreateWithFlags, %#x: %s\n", flag, answer_name(answer));
        if (!answer) MUST(cudaEventDestroy(event));
    }
    for (unsigned flag : {0u, 1u, 2u, 4u}) {
        cudaStream_t stream;
        cudaError_t answer = cudaStreamCreateWithFlags(&stream, flag);
        printf("cudaStreamCreateWithFlags, %#x: %s\n", flag, answer_name(answer));
        if (!answer) MUST(cudaStreamDestroy(stream));
    }
    for (unsigned flag : {0u, 1u, 2u, 3u, 4u, 8u, 0x10u, 0x20u, 0x80u, 0x100u}) {
        cudaError_t answer = cudaSetDeviceFlags(flag);
        printf("cudaSetDeviceFlags, %#x: %s\n", flag, answer_name(answer));
    }
    MUST(cudaSetDeviceFlags(0));
    cudaEvent_t timed, plain;
    float time = -1;
    MUST(cudaEventCreate(&timed));
    MUST(cudaEventCreateWithFlags(&plain, cudaEventDisableTiming));
    CALL(cudaEventElapsedTime(&time, timed, timed));
    MUST(cudaEventRecord(timed));
    MUST(cudaEventRecord(plain));
    MUST(cudaDeviceSynchronize());
    CALL(cudaEventElapsedTime(&time, timed, plain));
    CALL(cudaEventElapsedTime(&time, plain, timed));
    CALL(cudaEventRecordWithFlags(timed, 0, 8));
    CALL(cudaStreamWaitEvent(0, timed, 8));
    int* managed;
    MUST(cudaMallocManaged(&managed, 4096));
    CALL(cudaStreamAttachMemAsync(0, managed, 0, cudaMemAttachSingle));
    CALL(cudaStreamAttachMemAsync(0, managed, 0, 8));
    CALL(cudaInitDevice(0, cudaDeviceScheduleSpin, cudaInitDeviceFlagsAreValid));
    CALL(cudaInitDevice(0, 0, 7));
    int blocks = 0;
    CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, add, 32, 0,
                                                                cudaOccupancyDisableCachingOverride));
    CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, add, 32, 0, 8));
    cudaGetLastError();
}

static unsigned long long amount(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
    unsigned long long amount = 99;
    MUST(cudaMemPoolGetAttribute(pool, attribute, &amount));
    return amount >> 20;
}

// How many times so much can be taken from a pool, at most 100.
static int taken(cudaMemPool_t pool, size_t bytes, cudaStream_t stream) {
    void* pointers[100];
    int count = 0;
    while (count < 100 && !cudaMallocFromPoolAsync(&pointers[count], bytes, pool, stream)) count++;
    cudaGetLastError();
    for (int index = 0; index < count; index++) MUST(cudaFreeAsync(pointers[index], stream));
    MUST(cudaStreamSynchronize(stream));
    return count;
}

static void pools() {
    chapter("pools");
    cudaStream_t stream;
    MUST(cudaStreamCreate(&stream));
    cudaMemPoolProps properties = {};
    properties.allocType = cudaMemAllocationTypePinned;
    properties.location.type = cudaMemLocationTypeDevice;
    const size_t mega = 1 << 20;
    for (size_t most : {(size_t)1, 4 * mega, 32 * mega, 33 * mega, 64 * mega, 100 * mega}) {
        properties.maxSize = most;
        cudaMemPool_t pool;
        MUST(cudaMemPoolCreate(&pool, &properties));
        printf("most %zu: %d of 1 MiB, %d of 4 MiB, %d of 20 MiB, %d of 32 MiB, %d of 40 MiB\n", most,
               taken(pool, mega, stream), taken(pool, 4 * mega, stream), taken(pool, 20 * mega, stream),
               taken(pool, 32 * mega, stream), taken(pool, 40 * mega, stream));
        MUST(cudaMemPoolDestroy(pool));
    }
    properties.maxSize = 64 * mega;
    cudaMemPool_t pool;
    CALL(cudaMemPoolCreate(&pool, &properties));
    void *first = nullptr, *second = nullptr, *third = nullptr;
    CALL(cudaMallocFromPoolAsync(&first, 40 * mega, pool, stream));
    SHOW(amount(pool, cudaMemPoolAttrReservedMemCurrent));
    CALL(cudaMallocFromPoolAsync(&second, 40 * mega, pool, stream));
    CALL(cudaGetLastError());
    EXPECT(second == nullptr);
    CALL(cudaFreeAsync(first, stream));
    SHOW(amount(pool, cudaMemPoolAttrReservedMemCurrent));
    SHOW(amount(pool, cudaMemPoolAttrUsedMemCurrent));
    CALL(cudaMallocFromPoolAsync(&second, 40 * mega, pool, stream));
    SHOW(amount(pool, cudaMemPoolAttrReservedMemCurrent));
    CALL(cudaFreeAsync(second, stream));
    CALL(cudaStreamSynchronize(stream));
    SHOW(amount(pool, cudaMemPoolAttrReservedMemCurrent));
    SHOW(amount(pool, cudaMemPoolAttrReservedMemHigh));
    unsigned long long threshold = 64 * mega;
    CALL(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
    CALL(cudaMallocFromPoolAsync(&third, 40 * mega, pool, stream));
    CALL(cudaFreeAsync(third, stream));
    CALL(cudaStreamSynchronize(stream));
    SHOW(amount(pool, cudaMemPoolAttrReservedMemCurrent));
    CALL(cudaMemPoolTrimTo(pool, 32 * mega));
    SHOW(amount(pool, cudaMemPoolAttrReservedMemCurrent));
    CALL(cudaMemPoolTrimTo(pool, 0));
    SHOW(amount(pool, cudaMemPoolAttrReservedMemCurrent));
    int policy = 0;
    CALL(cudaMemPoolSetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &policy));
    CALL(cudaMemPoolGetAttribute(pool, cudaMemPoolReuseAllowOpportunistic, &policy));
    SHOW(policy);
    CALL(cudaMemPoolSetAttribute(pool, (cudaMemPoolAttr)77, &policy));
    CALL(cudaMemPoolGetAttribute(pool, (cudaMemPoolAttr)77, &policy));
    cudaMemAccessDesc access = {};
    access.location = properties.location;
    cudaMemAccessFlags found;
    for (auto flags : {cudaMemAccessFlagsProtNone, cudaMemAccessFlagsProtRead,
                       cudaMemAccessFlagsProtReadWrite, (cudaMemAccessFlags)7}) {
        access.flags = flags;
        printf("cudaMemPoolSetAccess, %d: %s\n", flags, answer_name(cudaMemPoolSetAccess(pool, &access, 1)));
        CALL(cudaMemPoolGetAccess(&found, pool, &access.location));
        SHOW(found);
    }
    properties.maxSize = 0;
    properties.usage = 9;
    cudaMemPool_t other;
    CALL(cudaMemPoolCreate(&other, &properties));
    properties.usage = 0;
    properties.reserved[3] = 1;
    CALL(cudaMemPoolCreate(&other, &properties));
    cudaGetLastError();
}

int main() {
    MUST(cudaMalloc(&words, 1 << 20));
    MUST(cudaMemset(words, 0, 1 << 20));
    launch_attributes();
    stream_attributes();
    priorities_of_nodes();
    function_attributes();
    limits();
    flags();
    pools();
    return finish();
}
