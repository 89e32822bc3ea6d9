//! The table of options, by group and number.

use super::CudaOption;
use super::Group::{self, *};
use super::Treatment::{self, Listed, Obeyed, Refused};
use crate::CuResult;

const NOT_SUPPORTED: Treatment = Refused(CuResult::NOT_SUPPORTED);
const INVALID_VALUE: Treatment = Refused(CuResult::INVALID_VALUE);

const fn option(
    group: Group,
    number: u32,
    name: &'static str,
    treatment: Treatment,
    sentence: &'static str,
) -> CudaOption {
    CudaOption {
        group,
        number,
        name,
        treatment,
        sentence,
    }
}

/// Every option that a call takes. A test is named by its function, or by its chapter of
/// `workloads/conformance`.
// A row a line: the list is read as a table.
#[rustfmt::skip]
pub const OPTIONS: &[CudaOption] = &[
    option(LaunchAttribute, 0, "cudaLaunchAttributeIgnore", Obeyed("every_option_is_treated_as_the_table_says"), "nothing, for lists put together"),
    option(LaunchAttribute, 1, "cudaLaunchAttributeAccessPolicyWindow", Listed, "no line of L2 persists or streams because of a window"),
    option(LaunchAttribute, 2, "cudaLaunchAttributeCooperative", Obeyed("conformance/kernels"), "all blocks are resident at once, or the launch is refused"),
    option(LaunchAttribute, 3, "cudaLaunchAttributeSynchronizationPolicy", INVALID_VALUE, "it belongs to streams"),
    option(LaunchAttribute, 4, "cudaLaunchAttributeClusterDimension", Obeyed("workloads/clusters"), "the blocks of a cluster go to SMs of one GPC at once"),
    option(LaunchAttribute, 5, "cudaLaunchAttributeClusterSchedulingPolicyPreference", Listed, "blocks are placed by the work distributor's policy"),
    option(LaunchAttribute, 6, "cudaLaunchAttributeProgrammaticStreamSerialization", Obeyed("workloads/clusters"), "the kernel begins when all blocks of the one before it have let it or have ended"),
    option(LaunchAttribute, 7, "cudaLaunchAttributeProgrammaticEvent", Listed, "the event is recorded when the kernel has ended, not when its blocks trigger it"),
    option(LaunchAttribute, 8, "cudaLaunchAttributePriority", Obeyed("a_launch_has_the_priority_of_its_stream_or_its_own"), "blocks of more urgent launches go to SMs first"),
    option(LaunchAttribute, 9, "cudaLaunchAttributeMemSyncDomainMap", Listed, "fences wait for all writes, whatever their domain"),
    option(LaunchAttribute, 10, "cudaLaunchAttributeMemSyncDomain", Listed, "fences wait for all writes, whatever their domain"),
    option(LaunchAttribute, 11, "cudaLaunchAttributePreferredClusterDimension", Listed, "clusters have the dimension of the launch, as on Hopper"),
    option(LaunchAttribute, 12, "cudaLaunchAttributeLaunchCompletionEvent", Listed, "the event is recorded when the kernel has ended, not when its last block has begun"),
    option(LaunchAttribute, 13, "cudaLaunchAttributeDeviceUpdatableKernelNode", NOT_SUPPORTED, "kernels cannot change graphs"),
    option(LaunchAttribute, 14, "cudaLaunchAttributePreferredSharedMemoryCarveout", Obeyed("a_launch_may_prefer_a_carve_out_of_its_own"), "the SM sets aside the smallest carve-out with that share"),
    option(LaunchAttribute, 16, "cudaLaunchAttributeNvlinkUtilCentricScheduling", Listed, "blocks are placed by the work distributor's policy"),
    option(LaunchAttribute, 17, "cudaLaunchAttributePortableClusterSizeMode", Listed, "the attribute of the function says which sizes are allowed"),
    option(LaunchAttribute, 18, "cudaLaunchAttributeSharedMemoryMode", Listed, "shared memory has the size that the configuration gives it"),

    option(StreamAttribute, 1, "cudaStreamAttributeAccessPolicyWindow", Listed, "no line of L2 persists or streams because of a window; it reads back"),
    option(StreamAttribute, 3, "cudaStreamAttributeSynchronizationPolicy", Listed, "how the host waits costs the same whatever it is; it reads back"),
    option(StreamAttribute, 8, "cudaStreamAttributePriority", Obeyed("conformance/options"), "kernels launched from then on have it"),
    option(StreamAttribute, 9, "cudaStreamAttributeMemSyncDomainMap", Listed, "fences wait for all writes, whatever their domain; it reads back"),
    option(StreamAttribute, 10, "cudaStreamAttributeMemSyncDomain", Listed, "fences wait for all writes, whatever their domain; it reads back"),

    option(FunctionAttribute, 8, "cudaFuncAttributeMaxDynamicSharedMemorySize", Obeyed("conformance/kernels"), "a launch with more is refused"),
    option(FunctionAttribute, 9, "cudaFuncAttributePreferredSharedMemoryCarveout", Obeyed("a_launch_may_prefer_a_carve_out_of_its_own"), "the SM sets aside the smallest carve-out with that share"),
    option(FunctionAttribute, 10, "cudaFuncAttributeClusterDimMustBeSet", INVALID_VALUE, "the compiler decides it"),
    option(FunctionAttribute, 11, "cudaFuncAttributeRequiredClusterWidth", Obeyed("workloads/clusters"), "a launch with other clusters is refused"),
    option(FunctionAttribute, 12, "cudaFuncAttributeRequiredClusterHeight", Obeyed("workloads/clusters"), "a launch with other clusters is refused"),
    option(FunctionAttribute, 13, "cudaFuncAttributeRequiredClusterDepth", Obeyed("workloads/clusters"), "a launch with other clusters is refused"),
    option(FunctionAttribute, 14, "cudaFuncAttributeNonPortableClusterSizeAllowed", Obeyed("workloads/clusters"), "clusters may have up to 16 blocks"),
    option(FunctionAttribute, 15, "cudaFuncAttributeClusterSchedulingPolicyPreference", Listed, "blocks are placed by the work distributor's policy"),

    option(FunctionCache, 0, "cudaFuncCachePreferNone", Obeyed("a_launch_may_prefer_a_carve_out_of_its_own"), "the device's preference holds"),
    option(FunctionCache, 1, "cudaFuncCachePreferShared", Obeyed("a_launch_may_prefer_a_carve_out_of_its_own"), "the largest carve-out of shared memory"),
    option(FunctionCache, 2, "cudaFuncCachePreferL1", Obeyed("a_launch_may_prefer_a_carve_out_of_its_own"), "the smallest carve-out of shared memory that fits"),
    option(FunctionCache, 3, "cudaFuncCachePreferEqual", Listed, "the SM chooses the carve-out"),

    option(DeviceCache, 0, "cudaFuncCachePreferNone", Obeyed("conformance/options"), "the SM chooses the carve-out"),
    option(DeviceCache, 1, "cudaFuncCachePreferShared", Listed, "the SM chooses the carve-out; it reads back"),
    option(DeviceCache, 2, "cudaFuncCachePreferL1", Listed, "the SM chooses the carve-out; it reads back"),
    option(DeviceCache, 3, "cudaFuncCachePreferEqual", Listed, "the SM chooses the carve-out; it reads back"),

    option(SharedBanks, 0, "cudaSharedMemBankSizeDefault", Obeyed("every_option_is_treated_as_the_table_says"), "four bytes"),
    option(SharedBanks, 1, "cudaSharedMemBankSizeFourByte", Obeyed("every_option_is_treated_as_the_table_says"), "four bytes"),
    option(SharedBanks, 2, "cudaSharedMemBankSizeEightByte", Obeyed("every_option_is_treated_as_the_table_says"), "four bytes, as on every GPU since compute capability 5.0"),

    option(Limit, 0, "cudaLimitStackSize", Obeyed("conformance/options"), "local memory of a thread for its calls; a deeper stack is an illegal address"),
    option(Limit, 1, "cudaLimitPrintfFifoSize", Listed, "what kernels print is never lost; it reads back"),
    option(Limit, 2, "cudaLimitMallocHeapSize", Obeyed("conformance/devices"), "bytes that device code can allocate"),
    option(Limit, 3, "cudaLimitDevRuntimeSyncDepth", Refused(CuResult::UNSUPPORTED_LIMIT), "kernels that wait for kernels are gone since CUDA 12"),
    option(Limit, 4, "cudaLimitDevRuntimePendingLaunchCount", Obeyed("conformance/dynamic_parallelism"), "launches by kernels that may be under way"),
    option(Limit, 5, "cudaLimitMaxL2FetchGranularity", Listed, "the configuration says how much L2 fetches; it reads back"),
    option(Limit, 6, "cudaLimitPersistingL2CacheSize", Listed, "no part of L2 is set aside; it reads back"),
    option(Limit, 7, "CU_LIMIT_SHMEM_SIZE", Refused(CuResult::NOT_PERMITTED), "it belongs to contexts shared with graphics, and is only read"),
    option(Limit, 8, "CU_LIMIT_CIG_ENABLED", Refused(CuResult::NOT_PERMITTED), "it belongs to contexts shared with graphics, and is only read"),

    option(HostAllocation, 1, "cudaHostAllocPortable", Obeyed("conformance/memory"), "all contexts see all pinned memory"),
    option(HostAllocation, 2, "cudaHostAllocMapped", Obeyed("conformance/memory"), "kernels reach all pinned memory at the host's addresses"),
    option(HostAllocation, 4, "cudaHostAllocWriteCombined", Listed, "the host's accesses cost the same"),

    option(HostRegistration, 0, "cudaHostRegisterDefault", Listed, "kernels reach registered memory; it is copied in the time of pageable memory"),
    option(HostRegistration, 1, "cudaHostRegisterPortable", Obeyed("conformance/options"), "all contexts see it alike"),
    option(HostRegistration, 2, "cudaHostRegisterMapped", Obeyed("conformance/launches"), "kernels reach all registered memory by the program's addresses, unless its pages are shared or read-only"),
    option(HostRegistration, 4, "cudaHostRegisterIoMemory", INVALID_VALUE, "there are no devices beside the GPU, so no memory is theirs"),
    option(HostRegistration, 8, "cudaHostRegisterReadOnly", Listed, "kernels can write registered memory all the same"),

    option(ManagedAllocation, 1, "cudaMemAttachGlobal", Obeyed("conformance/managed"), "every stream reaches the memory"),
    option(ManagedAllocation, 2, "cudaMemAttachHost", Obeyed("conformance/managed"), "every stream reaches the memory, as where the host may use it while kernels run"),
    option(ManagedAllocation, 4, "cudaMemAttachSingle", Obeyed("conformance/options"), "every stream reaches the memory, as where the host may use it while kernels run"),

    option(Advice, 1, "cudaMemAdviseSetReadMostly", Obeyed("conformance/managed"), "pages that are read are copied, not moved"),
    option(Advice, 2, "cudaMemAdviseUnsetReadMostly", Obeyed("conformance/managed"), "pages that are read are moved"),
    option(Advice, 3, "cudaMemAdviseSetPreferredLocation", Obeyed("conformance/managed"), "pages stay there where they can"),
    option(Advice, 4, "cudaMemAdviseUnsetPreferredLocation", Obeyed("conformance/managed"), "pages are moved to who touches them"),
    option(Advice, 5, "cudaMemAdviseSetAccessedBy", Obeyed("conformance/managed"), "pages are mapped ahead of being touched"),
    option(Advice, 6, "cudaMemAdviseUnsetAccessedBy", Obeyed("conformance/managed"), "pages are mapped when they are touched"),

    option(Access, 0, "CU_MEM_ACCESS_FLAGS_PROT_NONE", Obeyed("conformance/permissions"), "every access is an illegal address"),
    option(Access, 1, "CU_MEM_ACCESS_FLAGS_PROT_READ", Obeyed("conformance/permissions"), "stores, atomics, fills and copies to it are an illegal address"),
    option(Access, 3, "CU_MEM_ACCESS_FLAGS_PROT_READWRITE", Obeyed("conformance/permissions"), "every access is legal"),

    option(PhysicalMemory, 0, "CU_MEM_LOCATION_TYPE_HOST", NOT_SUPPORTED, "physical memory is a device's"),
    option(PhysicalMemory, 1, "requestedHandleTypes", NOT_SUPPORTED, "but for file descriptors (1), which are made and taken: there are no handles of Windows and of a fabric"),
    option(PhysicalMemory, 2, "allocFlags.compressionType", Listed, "memory is never compressed"),
    option(PhysicalMemory, 3, "allocFlags.gpuDirectRDMACapable", Listed, "there are no devices beside the GPU"),
    option(PhysicalMemory, 4, "allocFlags.usage", Listed, "there are no tiled resources and no decompression in hardware"),

    option(PoolAttribute, 1, "cudaMemPoolReuseFollowEventDependencies", Listed, "freed memory goes back to the device at once; it reads back"),
    option(PoolAttribute, 2, "cudaMemPoolReuseAllowOpportunistic", Listed, "freed memory goes back to the device at once; it reads back"),
    option(PoolAttribute, 3, "cudaMemPoolReuseAllowInternalDependencies", Listed, "freed memory goes back to the device at once; it reads back"),
    option(PoolAttribute, 4, "cudaMemPoolAttrReleaseThreshold", Listed, "the pool's figures follow it, but freed memory goes back to the device at once and allocating costs the same"),
    option(PoolAttribute, 5, "cudaMemPoolAttrReservedMemCurrent", INVALID_VALUE, "it is only read"),
    option(PoolAttribute, 6, "cudaMemPoolAttrReservedMemHigh", Obeyed("conformance/options"), "0 begins it anew; other values are invalid"),
    option(PoolAttribute, 7, "cudaMemPoolAttrUsedMemCurrent", INVALID_VALUE, "it is only read"),
    option(PoolAttribute, 8, "cudaMemPoolAttrUsedMemHigh", Obeyed("conformance/memory"), "0 begins it anew; other values are invalid"),

    option(PoolProperty, 0, "cudaMemLocationTypeHost", NOT_SUPPORTED, "memory of a pool is a device's"),
    option(PoolProperty, 1, "handleTypes", NOT_SUPPORTED, "pools cannot be shared by a handle"),
    option(PoolProperty, 2, "maxSize", Obeyed("conformance/options"), "in whole reservations of 32 MiB; an allocation beyond is out of memory"),
    option(PoolProperty, 3, "usage", Listed, "there is no decompression in hardware"),

    option(PoolAccess, 0, "cudaMemAccessFlagsProtNone", Refused(CuResult::INVALID_DEVICE), "a device cannot be shut out of its own pool"),
    option(PoolAccess, 1, "cudaMemAccessFlagsProtRead", NOT_SUPPORTED, "pools are read and written"),
    option(PoolAccess, 3, "cudaMemAccessFlagsProtReadWrite", Obeyed("conformance/options"), "pools are read and written"),

    option(StreamFlag, 1, "cudaStreamNonBlocking", Obeyed("conformance/streams"), "no order with the legacy default stream"),

    option(EventFlag, 1, "cudaEventBlockingSync", Listed, "how the host waits costs the same whatever it is"),
    option(EventFlag, 2, "cudaEventDisableTiming", Obeyed("conformance/options"), "asking for a time is an invalid handle"),
    option(EventFlag, 4, "cudaEventInterprocess", Obeyed("conformance/ipc"), "other processes may open the event"),

    option(DeviceFlag, 1, "cudaDeviceScheduleSpin", Listed, "how the host waits costs the same whatever it is"),
    option(DeviceFlag, 2, "cudaDeviceScheduleYield", Listed, "how the host waits costs the same whatever it is"),
    option(DeviceFlag, 4, "cudaDeviceScheduleBlockingSync", Listed, "how the host waits costs the same whatever it is"),
    option(DeviceFlag, 8, "cudaDeviceMapHost", Obeyed("conformance/memory"), "kernels reach pinned memory, always"),
    option(DeviceFlag, 0x10, "cudaDeviceLmemResizeToMax", Obeyed("conformance/options"), "local memory is never given back between launches, so nothing waits for it"),
    option(DeviceFlag, 0x20, "CU_CTX_COREDUMP_ENABLE", Listed, "a fault is told in words; there are no core dumps"),
    option(DeviceFlag, 0x40, "CU_CTX_USER_COREDUMP_ENABLE", Listed, "a fault is told in words; there are no core dumps"),
    option(DeviceFlag, 0x80, "cudaDeviceSyncMemops", Listed, "calls wait where CUDA says that they do without it"),

    option(ContextParameter, 0, "execAffinityParams", Refused(CuResult::UNSUPPORTED_EXEC_AFFINITY), "contexts have all SMs"),
    option(ContextParameter, 1, "cigParams", NOT_SUPPORTED, "there is no graphics"),

    option(OccupancyFlag, 1, "cudaOccupancyDisableCachingOverride", Obeyed("conformance/options"), "L1 limits no blocks, so the answer is the same"),

    option(GraphFlag, 1, "cudaGraphInstantiateFlagAutoFreeOnLaunch", Obeyed("conformance/graphs"), "memory of a graph is there for every launch"),
    option(GraphFlag, 2, "cudaGraphInstantiateFlagUpload", Obeyed("conformance/graphs"), "the graph is handed over when it is instantiated"),
    option(GraphFlag, 4, "cudaGraphInstantiateFlagDeviceLaunch", NOT_SUPPORTED, "kernels cannot launch graphs"),
    option(GraphFlag, 8, "cudaGraphInstantiateFlagUseNodePriority", Obeyed("nodes_have_the_priority_of_the_stream_that_their_graph_is_launched_in_or_their_own"), "kernels have the priorities of their nodes"),

    option(GraphEdge, 1, "cudaGraphDependencyTypeProgrammatic", Listed, "the kernel begins when the one before it has ended, without overlap"),

    option(CopyFlag, 1, "cudaMemcpyFlagPreferOverlapWithCompute", Listed, "copies use copy engines, whatever is preferred"),

    option(PointerAttribute, 6, "CU_POINTER_ATTRIBUTE_SYNC_MEMOPS", Listed, "calls wait where CUDA says that they do without it"),

    option(ArrayFlag, 1, "cudaArrayLayered", Obeyed("conformance/arrays"), "the depth counts layers"),
    option(ArrayFlag, 2, "cudaArraySurfaceLoadStore", Obeyed("conformance/arrays"), "the array is memory like any other, and surfaces of it can be made"),
    option(ArrayFlag, 4, "cudaArrayCubemap", Obeyed("conformance/arrays"), "the depth counts faces"),
    option(ArrayFlag, 8, "cudaArrayTextureGather", Obeyed("conformance/arrays"), "the array is memory like any other, and textures of it can be gathered from"),
    option(ArrayFlag, 0x20, "cudaArrayColorAttachment", NOT_SUPPORTED, "there is no graphics"),
    option(ArrayFlag, 0x40, "cudaArraySparse", NOT_SUPPORTED, "arrays are whole"),
    option(ArrayFlag, 0x80, "cudaArrayDeferredMapping", NOT_SUPPORTED, "arrays are whole"),

    option(JitOption, 0, "CU_JIT_MAX_REGISTERS", Listed, "PTX is executed with the registers that it names"),
    option(JitOption, 1, "CU_JIT_THREADS_PER_BLOCK", Listed, "PTX is executed as it is"),
    option(JitOption, 2, "CU_JIT_WALL_TIME", Listed, "no time is written"),
    option(JitOption, 3, "CU_JIT_INFO_LOG_BUFFER", Obeyed("calls_of_the_driver_api_are_answered"), "nothing is written when loading succeeds"),
    option(JitOption, 4, "CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES", Obeyed("calls_of_the_driver_api_are_answered"), "the length written is told"),
    option(JitOption, 5, "CU_JIT_ERROR_LOG_BUFFER", Obeyed("calls_of_the_driver_api_are_answered"), "why loading failed is written"),
    option(JitOption, 6, "CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES", Obeyed("calls_of_the_driver_api_are_answered"), "the length written is told"),
    option(JitOption, 7, "CU_JIT_OPTIMIZATION_LEVEL", Listed, "PTX is executed as it is"),
    option(JitOption, 8, "CU_JIT_TARGET_FROM_CUCONTEXT", Obeyed("calls_of_the_driver_api_are_answered"), "code is for the GPU of the context, always"),
    option(JitOption, 9, "CU_JIT_TARGET", Listed, "code is for the GPU of the context, always"),
    option(JitOption, 10, "CU_JIT_FALLBACK_STRATEGY", Listed, "the front end that the run was started with decides"),
    option(JitOption, 11, "CU_JIT_GENERATE_DEBUG_INFO", Listed, "PTX is executed as it is"),
    option(JitOption, 12, "CU_JIT_LOG_VERBOSE", Listed, "nothing more is written"),
    option(JitOption, 13, "CU_JIT_GENERATE_LINE_INFO", Listed, "lines are known where the image has them"),
    option(JitOption, 14, "CU_JIT_CACHE_MODE", Listed, "loads are cached as the code says"),
    option(JitOption, 15, "CU_JIT_NEW_SM3X_OPT", Listed, "it is CUDA's own"),
    option(JitOption, 16, "CU_JIT_FAST_COMPILE", Listed, "it is CUDA's own"),
    option(JitOption, 17, "CU_JIT_GLOBAL_SYMBOL_NAMES", NOT_SUPPORTED, "variables have the places that they are given when code is loaded"),
    option(JitOption, 18, "CU_JIT_GLOBAL_SYMBOL_ADDRESSES", NOT_SUPPORTED, "variables have the places that they are given when code is loaded"),
    option(JitOption, 19, "CU_JIT_GLOBAL_SYMBOL_COUNT", NOT_SUPPORTED, "variables have the places that they are given when code is loaded"),
    option(JitOption, 20, "CU_JIT_LTO", Listed, "nothing is optimised at link time"),
    option(JitOption, 21, "CU_JIT_FTZ", Listed, "it steers optimisation at link time, which there is none of"),
    option(JitOption, 22, "CU_JIT_PREC_DIV", Listed, "it steers optimisation at link time, which there is none of"),
    option(JitOption, 23, "CU_JIT_PREC_SQRT", Listed, "it steers optimisation at link time, which there is none of"),
    option(JitOption, 24, "CU_JIT_FMA", Listed, "it steers optimisation at link time, which there is none of"),
    option(JitOption, 25, "CU_JIT_REFERENCED_KERNEL_NAMES", Listed, "nothing is left out of what is linked"),
    option(JitOption, 26, "CU_JIT_REFERENCED_KERNEL_COUNT", Listed, "nothing is left out of what is linked"),
    option(JitOption, 27, "CU_JIT_REFERENCED_VARIABLE_NAMES", Listed, "nothing is left out of what is linked"),
    option(JitOption, 28, "CU_JIT_REFERENCED_VARIABLE_COUNT", Listed, "nothing is left out of what is linked"),
    option(JitOption, 29, "CU_JIT_OPTIMIZE_UNUSED_DEVICE_VARIABLES", Listed, "nothing is left out of what is linked"),
    option(JitOption, 30, "CU_JIT_POSITION_INDEPENDENT_CODE", Listed, "PTX is executed as it is"),
    option(JitOption, 31, "CU_JIT_MIN_CTA_PER_SM", Listed, "PTX is executed with the registers that it names"),
    option(JitOption, 32, "CU_JIT_MAX_THREADS_PER_BLOCK", Listed, "PTX is executed as it is"),
    option(JitOption, 33, "CU_JIT_OVERRIDE_DIRECTIVE_VALUES", Listed, "PTX is executed as it is"),
    option(JitOption, 34, "CU_JIT_SPLIT_COMPILE", Listed, "it is about the time of compiling"),
    option(JitOption, 35, "CU_JIT_BINARY_LOADER_THREAD_COUNT", Listed, "it is about the time of loading"),
];
