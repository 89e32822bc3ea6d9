// Managed memory: one address for host and device, prefetching, advice, what is said of ranges,
// attaching to streams; by both signatures of CUDA 12 and 13.
#include "conformance.cuh"

static __managed__ int counter = 40;
static __managed__ double table[1000];

__global__ void scale(int* words, int count, int factor) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) words[index] = words[index] * factor + 1;
}

__global__ void count_up(int* total) {
    atomicAdd(&counter, 1);
    if (threadIdx.x == 0) table[blockIdx.x] += blockIdx.x * 0.5;
    if (total && threadIdx.x == 0) atomicAdd(total, 1);
}

// What the host finds in memory that kernels and it wrote in turn.
static long long sum(const int* words, int count) {
    long long all = 0;
    for (int index = 0; index < count; index++) all += words[index];
    return all;
}

static void show_range(const char* what, const void* address, size_t bytes) {
    int values[4] = {9, 9, 9, 9}, devices[2] = {9, 9};
    printf("-- %s\n", what);
    CALL(cudaMemRangeGetAttribute(&values[0], 4, cudaMemRangeAttributeReadMostly, address, bytes));
    CALL(cudaMemRangeGetAttribute(&values[1], 4, cudaMemRangeAttributePreferredLocation, address, bytes));
    CALL(cudaMemRangeGetAttribute(&values[2], 4, cudaMemRangeAttributeLastPrefetchLocation, address, bytes));
    CALL(cudaMemRangeGetAttribute(devices, 8, cudaMemRangeAttributeAccessedBy, address, bytes));
    SHOW(values[0]);
    SHOW(values[1]);
    SHOW(values[2]);
    SHOW(devices[0]);
    SHOW(devices[1]);
}

int main() {
    const int count = 200000;
    const size_t bytes = count * sizeof(int), page = 65536;
    cudaMemLocation device = {cudaMemLocationTypeDevice, {0}}, host = {cudaMemLocationTypeHost, {0}};
    cudaMemLocation nowhere = {cudaMemLocationTypeInvalid, {0}}, other = {cudaMemLocationTypeDevice, {7}};
    int *words = nullptr, *plain = nullptr, attribute = 9;
    MUST(cudaMalloc(&plain, bytes));

    chapter("what the device can do");
    CALL(cudaDeviceGetAttribute(&attribute, cudaDevAttrManagedMemory, 0));
    SHOW(attribute);
    CALL(cudaDeviceGetAttribute(&attribute, cudaDevAttrConcurrentManagedAccess, 0));
    SHOW(attribute);

    chapter("one address");
    CALL(cudaMallocManaged(&words, bytes));
    for (int index = 0; index < count; index++) words[index] = index % 100;
    scale<<<(count + 255) / 256, 256>>>(words, count, 3);
    CALL(cudaDeviceSynchronize());
    SHOW(words[0]);
    SHOW(words[count - 1]);
    SHOW(sum(words, count));
    for (int index = 0; index < count; index += 1000) words[index] = -5;
    scale<<<(count + 255) / 256, 256>>>(words, count, 2);
    CALL(cudaDeviceSynchronize());
    SHOW(sum(words, count));
    CALL(cudaMemcpy(plain, words, bytes, cudaMemcpyDefault));
    CALL(cudaMemset(words, 0, bytes));
    CALL(cudaDeviceSynchronize());
    SHOW(sum(words, count));
    CALL(cudaMemcpy(words, plain, bytes, cudaMemcpyDeviceToDevice));
    CALL(cudaDeviceSynchronize());
    SHOW(sum(words, count));

    chapter("variables");
    SHOW(counter);
    counter += 2;
    table[1] = 10;
    count_up<<<4, 32>>>(nullptr);
    CALL(cudaDeviceSynchronize());
    SHOW(counter);
    SHOW(table[1] * 100);
    SHOW(table[3] * 100);
    int* address = nullptr;
    CALL(cudaGetSymbolAddress((void**)&address, counter));
    EXPECT(address == &counter);
    int copied = 0;
    CALL(cudaMemcpyFromSymbol(&copied, counter, 4));
    SHOW(copied);

    chapter("prefetching");
    show_range("fresh", words, bytes);
    CALL(cudaMemPrefetchAsync(words, bytes, device, 0, 0));
    CALL(cudaDeviceSynchronize());
    show_range("on the device", words, bytes);
    scale<<<(count + 255) / 256, 256>>>(words, count, 1);
    CALL(cudaMemPrefetchAsync(words, bytes, host, 0, 0));
    CALL(cudaDeviceSynchronize());
    show_range("back on the host", words, bytes);
    SHOW(sum(words, count));
    CALL(cudaMemPrefetchAsync(words, page, device, 0, 0));
    CALL(cudaDeviceSynchronize());
    show_range("in part", words, bytes);
    show_range("that part", words, page);
    CALL(cudaMemPrefetchAsync(words, bytes, other, 0, 0));
    CALL(cudaMemPrefetchAsync(words, bytes, nowhere, 0, 0));
    CALL(cudaMemPrefetchAsync(words, bytes, device, 1, 0));
    CALL(cudaMemPrefetchAsync(words, 0, device, 0, 0));
    CALL(cudaMemPrefetchAsync(plain, bytes, device, 0, 0));

    chapter("advice");
    CALL(cudaMemAdvise(words, bytes, cudaMemAdviseSetReadMostly, device));
    show_range("mostly read", words, bytes);
    CALL(cudaMemAdvise(words, bytes, cudaMemAdviseUnsetReadMostly, device));
    CALL(cudaMemAdvise(words, bytes, cudaMemAdviseSetPreferredLocation, device));
    CALL(cudaMemAdvise(words, bytes, cudaMemAdviseSetAccessedBy, device));
    show_range("preferred on the device, used by it", words, bytes);
    CALL(cudaMemAdvise(words, bytes, cudaMemAdviseSetPreferredLocation, host));
    CALL(cudaMemAdvise(words, bytes, cudaMemAdviseUnsetAccessedBy, device));
    show_range("preferred on the host", words, bytes);
    CALL(cudaMemAdvise(words, bytes, cudaMemAdviseSetAccessedBy, host));
    show_range("used by the host", words, bytes);
    CALL(cudaMemAdvise(words, bytes, cudaMemAdviseUnsetPreferredLocation, host));
    CALL(cudaMemAdvise(words, bytes, cudaMemAdviseUnsetAccessedBy, host));
    show_range("nothing said", words, bytes);
    CALL(cudaMemAdvise(words, bytes, (cudaMemoryAdvise)9, device));
    CALL(cudaMemAdvise(plain, bytes, cudaMemAdviseSetReadMostly, device));
    CALL(cudaMemAdvise(words, bytes, cudaMemAdviseSetPreferredLocation, other));
    scale<<<(count + 255) / 256, 256>>>(words, count, 1);
    CALL(cudaDeviceSynchronize());
    SHOW(sum(words, count));

    chapter("several answers at once");
    int read_mostly = 9, preferred = 9;
    void* places[2] = {&read_mostly, &preferred};
    size_t sizes[2] = {4, 4};
    cudaMemRangeAttribute wanted[2] = {cudaMemRangeAttributeReadMostly, cudaMemRangeAttributePreferredLocation};
    CALL(cudaMemRangeGetAttributes(places, sizes, wanted, 2, words, bytes));
    SHOW(read_mostly);
    SHOW(preferred);
    CALL(cudaMemRangeGetAttribute(&preferred, 3, cudaMemRangeAttributePreferredLocation, words, bytes));
    CALL(cudaMemRangeGetAttribute(&preferred, 4, cudaMemRangeAttributePreferredLocation, plain, bytes));

    chapter("attaching");
    cudaStream_t stream;
    MUST(cudaStreamCreate(&stream));
    CALL(cudaStreamAttachMemAsync(stream, words, 0, cudaMemAttachSingle));
    CALL(cudaStreamSynchronize(stream));
    scale<<<(count + 255) / 256, 256, 0, stream>>>(words, count, 1);
    CALL(cudaStreamSynchronize(stream));
    SHOW(sum(words, count));
    CALL(cudaStreamAttachMemAsync(stream, words, bytes, cudaMemAttachGlobal));
    CALL(cudaStreamAttachMemAsync(stream, words, 0, cudaMemAttachHost));
    CALL(cudaStreamAttachMemAsync(stream, words, 0, 9));
    CALL(cudaStreamSynchronize(stream));
    int* hosts = nullptr;
    CALL(cudaMallocManaged(&hosts, 4096, cudaMemAttachHost));
    hosts[0] = 3;
    CALL(cudaStreamAttachMemAsync(stream, hosts, 0, cudaMemAttachSingle));
    CALL(cudaStreamSynchronize(stream));
    scale<<<1, 1, 0, stream>>>(hosts, 1, 5);
    CALL(cudaStreamSynchronize(stream));
    SHOW(hosts[0]);
    CALL(cudaFree(hosts));

    chapter("the driver's words");
    CUdeviceptr place = 0;
    CUmemLocation on_device = {CU_MEM_LOCATION_TYPE_DEVICE, {0}}, on_host = {CU_MEM_LOCATION_TYPE_HOST, {0}};
    CALL(cuMemAllocManaged(&place, bytes, CU_MEM_ATTACH_GLOBAL));
    int* driver_words = (int*)place;
    for (int index = 0; index < count; index++) driver_words[index] = 2;
    CALL(cuMemAdvise(place, bytes, CU_MEM_ADVISE_SET_PREFERRED_LOCATION, on_device));
    CALL(cuMemPrefetchAsync(place, bytes, on_device, 0, stream));
    scale<<<(count + 255) / 256, 256, 0, stream>>>(driver_words, count, 10);
    CALL(cuMemPrefetchAsync(place, bytes, on_host, 0, stream));
    CALL(cuStreamSynchronize(stream));
    SHOW(sum(driver_words, count));
    int number = 9;
    CALL(cuMemRangeGetAttribute(&number, 4, CU_MEM_RANGE_ATTRIBUTE_PREFERRED_LOCATION_TYPE, place, bytes));
    SHOW(number);
    CALL(cuMemRangeGetAttribute(&number, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_TYPE, place, bytes));
    SHOW(number);
    CALL(cuMemRangeGetAttribute(&number, 4, CU_MEM_RANGE_ATTRIBUTE_LAST_PREFETCH_LOCATION_ID, place, bytes));
    SHOW(number);

    chapter("signatures of CUDA 12");
    CUresult (*old_prefetch)(CUdeviceptr, size_t, CUdevice, CUstream) = nullptr;
    CUresult (*old_advise)(CUdeviceptr, size_t, CUmem_advise, CUdevice) = nullptr;
    CUdriverProcAddressQueryResult found;
    CALL(cuGetProcAddress("cuMemPrefetchAsync", (void**)&old_prefetch, 8000, 0, &found));
    CALL(cuGetProcAddress("cuMemAdvise", (void**)&old_advise, 8000, 0, &found));
    if (old_prefetch && old_advise) {
        CALL(old_advise(place, bytes, CU_MEM_ADVISE_SET_READ_MOSTLY, 0));
        CALL(old_prefetch(place, bytes, 0, stream));
        CALL(old_prefetch(place, bytes, CU_DEVICE_CPU, stream));
        CALL(old_prefetch(place, bytes, 5, stream));
        CALL(cuStreamSynchronize(stream));
        show_range("the old words", (void*)place, bytes);
    }
    CALL(cuMemFree(place));

    chapter("the end");
    CALL(cudaFree(words));
    CALL(cudaFree(plain));
    CALL(cudaStreamDestroy(stream));
    CALL(cudaGetLastError());
    return finish();
}
