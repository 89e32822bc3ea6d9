// Virtual memory: addresses reserved, physical memory made, mapped, opened and moved.
#include "conformance.cuh"

__global__ void fill(int* words, int count, int value) {
    for (int index = blockIdx.x * blockDim.x + threadIdx.x; index < count; index += gridDim.x * blockDim.x)
        words[index] = value + index;
}

int main() {
    CUcontext context;
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    const size_t mega = 1 << 20;

    chapter("granularity");
    CUmemAllocationProp properties = {};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    properties.location.id = 0;
    size_t granularity = 0;
    CALL(cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
    SHOW(granularity);
    CALL(cuMemGetAllocationGranularity(&granularity, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
    SHOW(granularity);

    chapter("reserving");
    CUdeviceptr area = 0, broken = 0;
    CALL(cuMemAddressReserve(&area, 16 * mega, 0, 0, 0));
    EXPECT(area % (2 * mega) == 0);
    CALL(cuMemAddressReserve(&broken, 1000, 0, 0, 0));
    CALL(cuMemAddressReserve(&broken, 0, 0, 0, 0));

    chapter("mapping");
    CUmemGenericAllocationHandle first, second, odd;
    CALL(cuMemCreate(&first, 2 * mega, &properties, 0));
    CALL(cuMemCreate(&second, 4 * mega, &properties, 0));
    CALL(cuMemCreate(&odd, 1000, &properties, 0));
    CALL(cuMemMap(area, 2 * mega, 0, first, 0));
    CALL(cuMemMap(area + 2 * mega, 4 * mega, 0, second, 0));
    CALL(cuMemMap(area, 2 * mega, 0, first, 0));
    CUmemAccessDesc access = {};
    access.location = properties.location;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    CALL(cuMemSetAccess(area, 6 * mega, &access, 1));
    CALL(cuMemSetAccess(area, 8 * mega, &access, 1));
    unsigned long long flags = 0;
    CALL(cuMemGetAccess(&flags, &properties.location, area));
    SHOW(flags);
    CUmemAllocationProp read = {};
    CALL(cuMemGetAllocationPropertiesFromHandle(&read, first));
    SHOW(read.type);
    CUmemGenericAllocationHandle again;
    CALL(cuMemRetainAllocationHandle(&again, (void*)area));
    EXPECT(again == first);
    CALL(cuMemRelease(again));

    chapter("using");
    const int count = 6 * mega / 4;
    fill<<<64, 256>>>((int*)area, count, 5);
    CALL(cudaDeviceSynchronize());
    static int host[4];
    CALL(cuMemcpyDtoH(host, area + 2 * mega - 8, 16));
    SHOW(host[0]);
    SHOW(host[3]);
    CALL(cuMemsetD32(area + 4 * mega, 17, 1024));
    CALL(cuMemcpyDtoH(host, area + 4 * mega, 16));
    SHOW(host[1]);
    CUmemorytype type;
    CALL(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, area));
    SHOW(type);

    chapter("moving");
    CALL(cuMemUnmap(area, 2 * mega));
    CALL(cuMemMap(area + 8 * mega, 2 * mega, 0, first, 0));
    CALL(cuMemSetAccess(area + 8 * mega, 2 * mega, &access, 1));
    CALL(cuMemcpyDtoH(host, area + 8 * mega, 16));
    SHOW(host[0]);
    SHOW(host[3]);

    chapter("the end");
    CALL(cuMemUnmap(area + 2 * mega, 4 * mega));
    CALL(cuMemUnmap(area + 8 * mega, 2 * mega));
    CALL(cuMemRelease(first));
    CALL(cuMemRelease(second));
    CALL(cuMemAddressFree(area, 16 * mega));
    return finish();
}
