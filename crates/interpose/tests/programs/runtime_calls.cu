// Makes calls of every chapter of the runtime API that is implemented.
#include "check.h"
#include <cstring>
#include <cstdint>
// Their header is not part of the small toolkit that the tests use.
extern "C" cudaError_t cudaProfilerStart(void);
extern "C" cudaError_t cudaProfilerStop(void);

__global__ void add(const float *a, const float *b, float *c, int count)
{
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count)
        c[index] = a[index] + b[index];
}

__global__ void unknown() {}

__constant__ float table[16];
__device__ int counter;
__managed__ int shared_number = 5;

static void devices()
{
    int count = 0, device = -1, value = 0, version = 0;
    SUCCEEDS(cudaGetDeviceCount(&count));
    EXPECT(count == 1);
    SUCCEEDS(cudaSetDevice(0));
    SUCCEEDS(cudaGetDevice(&device));
    EXPECT(device == 0);
    EXPECT(cudaSetDevice(1) == cudaErrorInvalidDevice);
    EXPECT(cudaPeekAtLastError() == cudaErrorInvalidDevice);
    EXPECT(cudaGetLastError() == cudaErrorInvalidDevice);
    EXPECT(cudaGetLastError() == cudaSuccess);
    SUCCEEDS(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0));
    EXPECT(value == 132);
    EXPECT(cudaDeviceGetAttribute(&value, (cudaDeviceAttr)9999, 0) == cudaErrorInvalidValue);
    cudaDeviceProp properties;
    memset(&properties, 0xff, sizeof properties);
    SUCCEEDS(cudaGetDeviceProperties(&properties, 0));
    EXPECT(strcmp(properties.name, "Stand-in GPU") == 0);
    EXPECT(properties.multiProcessorCount == 132 && properties.major == 9 && properties.minor == 0);
    EXPECT(properties.totalGlobalMem == 80ull << 30 && properties.warpSize == 32);
    EXPECT(properties.maxGridSize[0] == 2147483647 && properties.maxThreadsDim[2] == 64);
    SUCCEEDS(cudaRuntimeGetVersion(&version));
    EXPECT(version / 1000 == CUDART_VERSION / 1000);
    SUCCEEDS(cudaDriverGetVersion(&version));
    EXPECT(version == 13030);
    char bus[32];
    SUCCEEDS(cudaDeviceGetPCIBusId(bus, sizeof bus, 0));
    EXPECT(strcmp(bus, "0000:41:00.0") == 0);
    SUCCEEDS(cudaDeviceGetByPCIBusId(&device, bus));
    EXPECT(device == 0);
    size_t limit = 0;
    SUCCEEDS(cudaDeviceGetLimit(&limit, cudaLimitStackSize));
    EXPECT(limit == 1024);
    SUCCEEDS(cudaDeviceSetLimit(cudaLimitStackSize, 2048));
    int least, greatest;
    SUCCEEDS(cudaDeviceGetStreamPriorityRange(&least, &greatest));
    EXPECT(least == 0 && greatest == -5);
    EXPECT(strcmp(cudaGetErrorName(cudaErrorInvalidValue), "cudaErrorInvalidValue") == 0);
    EXPECT(strcmp(cudaGetErrorString((cudaError_t)12345), "unrecognized error code") == 0);
    void *entry = NULL;
    cudaDriverEntryPointQueryResult status;
    SUCCEEDS(cudaGetDriverEntryPointByVersion("cuMemAlloc", &entry, 12000, 0, &status));
    EXPECT(entry && status == cudaDriverEntryPointSuccess);
    SUCCEEDS(cudaGetDriverEntryPointByVersion("cuTexRefCreate", &entry, 12000, 0, &status));
    EXPECT(!entry && status == cudaDriverEntryPointSymbolNotFound);
}

static void memory()
{
    void *pointer = (void *)1;
    SUCCEEDS(cudaMalloc(&pointer, 0));
    EXPECT(pointer == NULL);
    EXPECT(cudaMalloc(&pointer, 1ull << 40) == cudaErrorMemoryAllocation);
    EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
    EXPECT(cudaMalloc(NULL, 4) == cudaErrorInvalidValue);
    SUCCEEDS(cudaFree(NULL));
    EXPECT(cudaFree((void *)0x1234) == cudaErrorInvalidValue);
    cudaGetLastError();

    static unsigned char host[64], *device, *other;
    SUCCEEDS(cudaMalloc(&device, 64));
    SUCCEEDS(cudaMalloc(&other, 64));
    SUCCEEDS(cudaMemset(device, 0x1ab, 64));
    SUCCEEDS(cudaMemcpy(other, device, 64, cudaMemcpyDeviceToDevice));
    SUCCEEDS(cudaMemcpy(host, other, 64, cudaMemcpyDefault));
    EXPECT(host[0] == 0xab && host[63] == 0xab);
    EXPECT(cudaMemcpy(host, device, 64, cudaMemcpyHostToDevice) == cudaErrorInvalidValue);
    EXPECT(cudaMemcpy(host, device, 64, (cudaMemcpyKind)7) == cudaErrorInvalidMemcpyDirection);
    cudaGetLastError();

    size_t pitch, free_bytes, total;
    SUCCEEDS(cudaMallocPitch(&pointer, &pitch, 100, 4));
    EXPECT(pitch == 512);
    unsigned char plane[4][100], back[4][100];
    for (int row = 0; row < 4; row++)
        memset(plane[row], row + 1, 100);
    SUCCEEDS(cudaMemcpy2D(pointer, pitch, plane, 100, 100, 4, cudaMemcpyHostToDevice));
    SUCCEEDS(cudaMemset2D(pointer, pitch, 9, 100, 1));
    SUCCEEDS(cudaMemcpy2D(back, 100, pointer, pitch, 100, 4, cudaMemcpyDeviceToHost));
    EXPECT(back[0][99] == 9 && back[3][0] == 4);
    EXPECT(cudaMemcpy2D(back, 10, pointer, pitch, 100, 4, cudaMemcpyDeviceToHost) == cudaErrorInvalidPitchValue);
    cudaGetLastError();
    SUCCEEDS(cudaMemGetInfo(&free_bytes, &total));
    EXPECT(total == 80ull << 30 && free_bytes < total);

    int *pinned, *managed, *view;
    SUCCEEDS(cudaMallocHost(&pinned, 4096));
    SUCCEEDS(cudaHostGetDevicePointer(&view, pinned, 0));
    EXPECT(view == pinned);
    pinned[7] = 42;
    SUCCEEDS(cudaMemcpyAsync(device, pinned + 7, 4, cudaMemcpyHostToDevice, 0));
    SUCCEEDS(cudaMemcpy(host, device, 4, cudaMemcpyDeviceToHost));
    EXPECT(host[0] == 42);
    SUCCEEDS(cudaMallocManaged(&managed, 4096));
    managed[3] = 17;
    SUCCEEDS(cudaMemcpy(host, managed + 3, 4, cudaMemcpyDefault));
    EXPECT(host[0] == 17);

    cudaPointerAttributes attributes;
    SUCCEEDS(cudaPointerGetAttributes(&attributes, device + 5));
    EXPECT(attributes.type == cudaMemoryTypeDevice && attributes.devicePointer == device + 5 && attributes.device == 0);
    SUCCEEDS(cudaPointerGetAttributes(&attributes, pinned));
    EXPECT(attributes.type == cudaMemoryTypeHost && attributes.hostPointer == pinned);
    SUCCEEDS(cudaPointerGetAttributes(&attributes, managed));
    EXPECT(attributes.type == cudaMemoryTypeManaged);
    SUCCEEDS(cudaPointerGetAttributes(&attributes, host));
    EXPECT(attributes.type == cudaMemoryTypeUnregistered);
    SUCCEEDS(cudaHostRegister(host, sizeof host, 0));
    EXPECT(cudaHostRegister(host + 1, 4, 0) == cudaErrorHostMemoryAlreadyRegistered);
    SUCCEEDS(cudaPointerGetAttributes(&attributes, host + 3));
    EXPECT(attributes.type == cudaMemoryTypeHost);
    SUCCEEDS(cudaHostGetDevicePointer(&view, host, 0));
    EXPECT(view == (void*)host);
    SUCCEEDS(cudaMemcpyAsync(device, host, 4, cudaMemcpyHostToDevice, 0));
    SUCCEEDS(cudaHostUnregister(host));
    cudaGetLastError();
    SUCCEEDS(cudaFreeHost(pinned));
    SUCCEEDS(cudaFree(managed));
    SUCCEEDS(cudaMallocAsync(&pointer, 256, 0));
    SUCCEEDS(cudaFreeAsync(pointer, 0));
}

static void symbols()
{
    float values[16], back[16];
    for (int index = 0; index < 16; index++)
        values[index] = index * 1.5f;
    SUCCEEDS(cudaMemcpyToSymbol(table, values, sizeof values));
    SUCCEEDS(cudaMemcpyFromSymbol(back, table, 8 * sizeof(float), 8 * sizeof(float)));
    EXPECT(back[0] == 12.0f && back[7] == 22.5f);
    EXPECT(cudaMemcpyToSymbol(table, values, sizeof values, 4) == cudaErrorInvalidValue);
    EXPECT(cudaMemcpyToSymbol(values, values, 4) == cudaErrorInvalidSymbol);
    cudaGetLastError();
    void *address;
    size_t size;
    SUCCEEDS(cudaGetSymbolAddress(&address, counter));
    SUCCEEDS(cudaGetSymbolSize(&size, counter));
    EXPECT(address && size == 4);
    shared_number = 23;
    int copy = 0;
    SUCCEEDS(cudaMemcpyFromSymbol(&copy, shared_number, 4));
    EXPECT(copy == 23);
}

static void launches()
{
    const int count = 64;
    float *a, *b, *c;
    SUCCEEDS(cudaMallocManaged(&a, count * 4));
    SUCCEEDS(cudaMallocManaged(&b, count * 4));
    SUCCEEDS(cudaMallocManaged(&c, count * 4));
    for (int index = 0; index < count; index++) {
        a[index] = index;
        b[index] = 1;
    }
    int number = count;
    void *arguments[] = {&a, &b, &c, &number};
    SUCCEEDS(cudaLaunchKernel((void *)add, dim3(2), dim3(32), arguments, 0, 0));
    SUCCEEDS(cudaDeviceSynchronize());
    EXPECT(c[63] == 64);
    c[63] = 0;
    SUCCEEDS(cudaLaunchCooperativeKernel((void *)add, dim3(2), dim3(32), arguments, 16, 0));
    EXPECT(c[63] == 64);
    c[63] = 0;
    cudaLaunchAttribute attribute;
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim = {2, 1, 1};
    cudaLaunchConfig_t configuration = {};
    configuration.gridDim = dim3(2);
    configuration.blockDim = dim3(32);
    configuration.attrs = &attribute;
    configuration.numAttrs = 1;
    SUCCEEDS(cudaLaunchKernelEx(&configuration, add, (const float *)a, (const float *)b, c, count));
    EXPECT(c[63] == 64);
    add<<<0, 32>>>(a, b, c, count);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    add<<<1, 2048>>>(a, b, c, count);
    EXPECT(cudaGetLastError() == cudaErrorInvalidValue);
    unknown<<<1, 1>>>();
    EXPECT(cudaGetLastError() == cudaErrorInvalidResourceHandle);
    EXPECT(cudaLaunchKernel((void *)launches, dim3(1), dim3(1), arguments, 0, 0) == cudaErrorInvalidResourceHandle);
    cudaGetLastError();

    cudaFuncAttributes attributes;
    memset(&attributes, 0xff, sizeof attributes);
    SUCCEEDS(cudaFuncGetAttributes(&attributes, add));
    EXPECT(attributes.numRegs == 16 && attributes.maxThreadsPerBlock == 1024 && attributes.sharedSizeBytes == 0);
    SUCCEEDS(cudaFuncSetAttribute(add, cudaFuncAttributeMaxDynamicSharedMemorySize, 65536));
    SUCCEEDS(cudaFuncGetAttributes(&attributes, add));
    EXPECT(attributes.maxDynamicSharedSizeBytes == 65536);
    SUCCEEDS(cudaFuncSetCacheConfig(add, cudaFuncCachePreferL1));
    int blocks = 0, grid = 0, block = 0;
    SUCCEEDS(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, add, 256, 0));
    EXPECT(blocks == 8);
    SUCCEEDS(cudaOccupancyMaxPotentialBlockSize(&grid, &block, add));
    EXPECT(grid == 264 && block == 1024);
    const char *name;
    SUCCEEDS(cudaFuncGetName(&name, (void *)add));
    EXPECT(strcmp(name, "_Z3addPKfS0_Pfi") == 0);
    size_t offset, size;
    SUCCEEDS(cudaFuncGetParamInfo((void *)add, 3, &offset, &size));
    EXPECT(offset == 24 && size == 4);
    EXPECT(cudaFuncGetParamInfo((void *)add, 4, &offset, &size) == cudaErrorInvalidValue);
    cudaGetLastError();
    cudaFunction_t function;
    SUCCEEDS(cudaGetFuncBySymbol(&function, (void *)add));
    SUCCEEDS(cudaLaunchKernel((void *)function, dim3(2), dim3(32), arguments, 0, 0));
}

static void CUDART_CB note(void *data) { ++*(int *)data; }
static void CUDART_CB call_back(cudaStream_t, cudaError_t status, void *data) { *(int *)data += status == 0 ? 10 : 1000; }

static void streams()
{
    cudaStream_t stream, urgent;
    cudaEvent_t start, end;
    int priority = 1, calls = 0;
    unsigned int flags;
    SUCCEEDS(cudaStreamCreate(&stream));
    SUCCEEDS(cudaStreamCreateWithPriority(&urgent, cudaStreamNonBlocking, -100));
    SUCCEEDS(cudaStreamGetPriority(urgent, &priority));
    EXPECT(priority == -5);
    SUCCEEDS(cudaStreamGetFlags(urgent, &flags));
    EXPECT(flags == cudaStreamNonBlocking);
    SUCCEEDS(cudaEventCreate(&start));
    SUCCEEDS(cudaEventCreateWithFlags(&end, cudaEventBlockingSync));
    SUCCEEDS(cudaEventRecord(start, stream));
    SUCCEEDS(cudaStreamWaitEvent(urgent, start, 0));
    SUCCEEDS(cudaLaunchHostFunc(stream, note, &calls));
    SUCCEEDS(cudaStreamAddCallback(stream, call_back, &calls, 0));
    SUCCEEDS(cudaEventRecord(end, stream));
    SUCCEEDS(cudaEventSynchronize(end));
    EXPECT(calls == 11);
    SUCCEEDS(cudaEventQuery(end));
    float milliseconds = 0;
    SUCCEEDS(cudaEventElapsedTime(&milliseconds, start, end));
    EXPECT(milliseconds == 2.5f);
    SUCCEEDS(cudaStreamQuery(stream));
    SUCCEEDS(cudaStreamSynchronize(stream));
    SUCCEEDS(cudaStreamSynchronize(cudaStreamLegacy));
    cudaStreamCaptureStatus capture;
    SUCCEEDS(cudaStreamIsCapturing(stream, &capture));
    EXPECT(capture == cudaStreamCaptureStatusNone);
    SUCCEEDS(cudaEventDestroy(start));
    SUCCEEDS(cudaEventDestroy(end));
    SUCCEEDS(cudaStreamDestroy(urgent));
    SUCCEEDS(cudaStreamDestroy(stream));
    EXPECT(cudaStreamSynchronize(stream) == cudaErrorInvalidResourceHandle);
    EXPECT(cudaStreamSynchronize((cudaStream_t)0x12345678) == cudaErrorInvalidResourceHandle);
    cudaGetLastError();
}

int main()
{
    EXPECT(shared_number == 0); // The stand-in does not run initialisers.
    devices();
    memory();
    symbols();
    launches();
    streams();
    SUCCEEDS(cudaProfilerStart());
    SUCCEEDS(cudaProfilerStop());
    EXPECT(cudaGraphicsUnregisterResource(nullptr) == cudaErrorNotSupported);
    EXPECT(cudaGetLastError() == cudaErrorNotSupported);
    SUCCEEDS(cudaDeviceReset());
    void *pointer;
    SUCCEEDS(cudaMalloc(&pointer, 16));
    printf("all calls answered\n");
    return 0;
}
