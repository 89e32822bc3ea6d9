// Every device attribute by number, the limits of the device, and the members of its properties as text.
//
//   attributes    prints `kind,name,value`
#include <cuda.h>

#include "common.cuh"

static void say(const char* kind, const std::string& name, const std::string& value) { std::printf("%s,%s,%s\n", kind, name.c_str(), value.c_str()); }

#define MEMBER(name) say("property", #name, text("%lld", (long long)properties.name))
#define MEMBERS(name, count) \
    for (int i = 0; i < count; i++) say("property", text(#name "[%d]", i), text("%lld", (long long)properties.name[i]))

int main() {
    CHECK(cudaFree(nullptr));
    std::printf("kind,name,value\n");
    int driver = 0;
    CHECK(cudaDriverGetVersion(&driver));
    say("driver", "version", text("%d", driver));
    // The runtime would refuse numbers that it does not know; those beyond the last tell which the driver refuses.
    CUresult (*attribute)(int*, CUdevice_attribute, CUdevice) = nullptr;
    cudaDriverEntryPointQueryResult found;
    CHECK(cudaGetDriverEntryPointByVersion("cuDeviceGetAttribute", reinterpret_cast<void**>(&attribute), 12000, cudaEnableDefault, &found));
    for (int number = 1; number < 200; number++) {
        int value = 0;
        CUresult status = attribute(&value, CUdevice_attribute(number), 0);
        say("attribute", text("%d", number), status == CUDA_SUCCESS ? text("%d", value) : text("error %d", int(status)));
    }
    for (int limit = 0; limit < 8; limit++) {
        size_t value = 0;
        cudaError_t status = cudaDeviceGetLimit(&value, cudaLimit(limit));
        say("limit", text("%d", limit), status == cudaSuccess ? text("%zu", value) : text("error %d", int(status)));
    }
    int least, greatest;
    CHECK(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    say("priority", "least", text("%d", least));
    say("priority", "greatest", text("%d", greatest));
    size_t free, all;
    CHECK(cudaMemGetInfo(&free, &all));
    say("memory", "total", text("%zu", all));
    cudaDeviceProp properties;
    CHECK(cudaGetDeviceProperties(&properties, 0));
    say("property", "name", properties.name);
    MEMBER(totalGlobalMem), MEMBER(sharedMemPerBlock), MEMBER(regsPerBlock), MEMBER(warpSize), MEMBER(memPitch), MEMBER(maxThreadsPerBlock);
    MEMBERS(maxThreadsDim, 3);
    MEMBERS(maxGridSize, 3);
    MEMBER(totalConstMem), MEMBER(major), MEMBER(minor), MEMBER(textureAlignment), MEMBER(texturePitchAlignment), MEMBER(multiProcessorCount);
    MEMBER(integrated), MEMBER(canMapHostMemory), MEMBER(maxTexture1D), MEMBER(maxTexture1DMipmap);
    MEMBERS(maxTexture2D, 2);
    MEMBERS(maxTexture2DMipmap, 2);
    MEMBERS(maxTexture2DLinear, 3);
    MEMBERS(maxTexture2DGather, 2);
    MEMBERS(maxTexture3D, 3);
    MEMBERS(maxTexture3DAlt, 3);
    MEMBER(maxTextureCubemap);
    MEMBERS(maxTexture1DLayered, 2);
    MEMBERS(maxTexture2DLayered, 3);
    MEMBERS(maxTextureCubemapLayered, 2);
    MEMBER(maxSurface1D);
    MEMBERS(maxSurface2D, 2);
    MEMBERS(maxSurface3D, 3);
    MEMBERS(maxSurface1DLayered, 2);
    MEMBERS(maxSurface2DLayered, 3);
    MEMBER(maxSurfaceCubemap);
    MEMBERS(maxSurfaceCubemapLayered, 2);
    MEMBER(surfaceAlignment), MEMBER(concurrentKernels), MEMBER(ECCEnabled), MEMBER(pciBusID), MEMBER(pciDeviceID), MEMBER(pciDomainID), MEMBER(tccDriver);
    MEMBER(asyncEngineCount), MEMBER(unifiedAddressing), MEMBER(memoryBusWidth), MEMBER(l2CacheSize), MEMBER(persistingL2CacheMaxSize);
    MEMBER(maxThreadsPerMultiProcessor), MEMBER(streamPrioritiesSupported), MEMBER(globalL1CacheSupported), MEMBER(localL1CacheSupported);
    MEMBER(sharedMemPerMultiprocessor), MEMBER(regsPerMultiprocessor), MEMBER(managedMemory), MEMBER(isMultiGpuBoard), MEMBER(multiGpuBoardGroupID);
    MEMBER(hostNativeAtomicSupported), MEMBER(pageableMemoryAccess), MEMBER(concurrentManagedAccess), MEMBER(computePreemptionSupported);
    MEMBER(canUseHostPointerForRegisteredMem), MEMBER(cooperativeLaunch), MEMBER(sharedMemPerBlockOptin), MEMBER(pageableMemoryAccessUsesHostPageTables);
    MEMBER(directManagedMemAccessFromHost), MEMBER(maxBlocksPerMultiProcessor), MEMBER(accessPolicyMaxWindowSize), MEMBER(reservedSharedMemPerBlock);
    MEMBER(hostRegisterSupported), MEMBER(sparseCudaArraySupported), MEMBER(hostRegisterReadOnlySupported), MEMBER(timelineSemaphoreInteropSupported);
    MEMBER(memoryPoolsSupported), MEMBER(gpuDirectRDMASupported), MEMBER(gpuDirectRDMAFlushWritesOptions), MEMBER(gpuDirectRDMAWritesOrdering);
    MEMBER(memoryPoolSupportedHandleTypes), MEMBER(deferredMappingCudaArraySupported), MEMBER(ipcEventSupported), MEMBER(clusterLaunch);
    MEMBER(unifiedFunctionPointers), MEMBER(deviceNumaConfig), MEMBER(deviceNumaId), MEMBER(mpsEnabled), MEMBER(hostNumaId), MEMBER(gpuPciDeviceID);
    MEMBER(gpuPciSubsystemID), MEMBER(hostNumaMultinodeIpcSupported);
    return 0;
}
