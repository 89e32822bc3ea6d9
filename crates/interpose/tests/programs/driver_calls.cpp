// The driver API: contexts, modules from text and files, launches in both forms.
#include "check.h"
#include <cstddef>
#include <cstring>
#include <cuda.h>

static const char *text = ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry add() { ret; }\n";

int main(int count, char **arguments)
{
    int number = 0, major = 0;
    EXPECT(cuDeviceGetCount(&number) == CUDA_ERROR_NOT_INITIALIZED);
    SUCCEEDS(cuInit(0));
    SUCCEEDS(cuDeviceGetCount(&number));
    EXPECT(number == 1);
    CUdevice device;
    SUCCEEDS(cuDeviceGet(&device, 0));
    EXPECT(cuDeviceGet(&device, 5) == CUDA_ERROR_INVALID_DEVICE);
    char name[64];
    SUCCEEDS(cuDeviceGetName(name, sizeof name, device));
    EXPECT(strcmp(name, "Stand-in GPU") == 0);
    SUCCEEDS(cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device));
    EXPECT(major == 9);
    CUuuid uuid;
    SUCCEEDS(cuDeviceGetUuid(&uuid, device));
    EXPECT(memcmp(uuid.bytes, "stand-in-gpu-000", 16) == 0);
    size_t bytes;
    SUCCEEDS(cuDeviceTotalMem(&bytes, device));
    EXPECT(bytes == 80ull << 30);

    CUdeviceptr pointer;
    EXPECT(cuMemAlloc(&pointer, 4) == CUDA_ERROR_INVALID_CONTEXT);
    CUcontext context, current, popped;
    SUCCEEDS(cuCtxCreate(&context, NULL, 0, device));
    SUCCEEDS(cuCtxGetCurrent(&current));
    EXPECT(current == context);
    SUCCEEDS(cuCtxPopCurrent(&popped));
    SUCCEEDS(cuCtxGetCurrent(&current));
    EXPECT(popped == context && current == NULL);
    SUCCEEDS(cuCtxPushCurrent(context));

    CUmodule module, file_module;
    char log[100];
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
    void *values[] = {log, (void *)sizeof log};
    SUCCEEDS(cuModuleLoadDataEx(&module, text, 2, options, values));
    EXPECT(log[0] == 0);
    if (count > 1) {
        SUCCEEDS(cuModuleLoad(&file_module, arguments[1]));
        SUCCEEDS(cuModuleUnload(file_module));
        EXPECT(cuModuleUnload(file_module) == CUDA_ERROR_INVALID_HANDLE);
    }
    EXPECT(cuModuleLoad(&file_module, "/nowhere.cubin") == CUDA_ERROR_FILE_NOT_FOUND);
    CUfunction function, missing;
    SUCCEEDS(cuModuleGetFunction(&function, module, "add"));
    EXPECT(cuModuleGetFunction(&missing, module, "nothing") == CUDA_ERROR_NOT_FOUND);
    SUCCEEDS(cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_NUM_REGS, function));
    EXPECT(number == 16);

    const int length = 8;
    float host[length];
    CUdeviceptr a, b, c;
    SUCCEEDS(cuMemAlloc(&a, sizeof host));
    SUCCEEDS(cuMemAlloc(&b, sizeof host));
    SUCCEEDS(cuMemAlloc(&c, sizeof host));
    for (int index = 0; index < length; index++)
        host[index] = index;
    SUCCEEDS(cuMemcpyHtoD(a, host, sizeof host));
    SUCCEEDS(cuMemsetD32(b, 0x3f800000, length));
    int elements = length;
    void *parameters[] = {&a, &b, &c, &elements};
    SUCCEEDS(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
    SUCCEEDS(cuCtxSynchronize());
    SUCCEEDS(cuMemcpyDtoH(host, c, sizeof host));
    EXPECT(host[7] == 8);
    struct { CUdeviceptr a, b, c; int count; } block = {c, b, c, elements};
    size_t size = offsetof(decltype(block), count) + sizeof block.count;
    void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &block, CU_LAUNCH_PARAM_BUFFER_SIZE, &size, CU_LAUNCH_PARAM_END};
    CUstream stream;
    SUCCEEDS(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    CUlaunchConfig configuration = {};
    configuration.gridDimX = configuration.gridDimY = configuration.gridDimZ = 1;
    configuration.blockDimX = 32;
    configuration.blockDimY = configuration.blockDimZ = 1;
    configuration.hStream = stream;
    SUCCEEDS(cuLaunchKernelEx(&configuration, function, NULL, extra));
    SUCCEEDS(cuStreamSynchronize(stream));
    SUCCEEDS(cuMemcpyDtoH(host, c, sizeof host));
    EXPECT(host[7] == 9);
    SUCCEEDS(cuFuncSetBlockShape(function, 32, 1, 1));
    SUCCEEDS(cuParamSetSize(function, 28));
    SUCCEEDS(cuParamSetv(function, 0, &block, 24));
    SUCCEEDS(cuParamSeti(function, 24, elements));
    SUCCEEDS(cuLaunchGrid(function, 2, 1));
    SUCCEEDS(cuMemcpyDtoH(host, c, sizeof host));
    EXPECT(host[7] == 10);
    EXPECT(cuLaunchKernel(function, 0, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL) == CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuLaunchKernel((CUfunction)stream, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL) == CUDA_ERROR_INVALID_HANDLE);

    CUlibrary library;
    CUkernel kernel;
    SUCCEEDS(cuLibraryLoadData(&library, text, NULL, NULL, 0, NULL, NULL, 0));
    SUCCEEDS(cuLibraryGetKernel(&kernel, library, "add"));
    SUCCEEDS(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL));
    size_t offset, slot;
    SUCCEEDS(cuKernelGetParamInfo(kernel, 3, &offset, &slot));
    EXPECT(offset == 24 && slot == 4);
    SUCCEEDS(cuLibraryUnload(library));
    EXPECT(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 32, 1, 1, 0, NULL, parameters, NULL) == CUDA_ERROR_INVALID_HANDLE);

    unsigned int kind = 0;
    CUcontext owner = NULL;
    SUCCEEDS(cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, a));
    EXPECT(kind == CU_MEMORYTYPE_DEVICE);
    EXPECT(cuPointerGetAttribute(&kind, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)&kind) == CUDA_ERROR_INVALID_VALUE);
    int ordinal = 7;
    CUpointer_attribute attributes[] = {CU_POINTER_ATTRIBUTE_CONTEXT, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
    void *data[] = {&owner, &ordinal};
    SUCCEEDS(cuPointerGetAttributes(2, attributes, data, (CUdeviceptr)&kind));
    EXPECT(owner == NULL && ordinal == -2);

    void *entry;
    CUdriverProcAddressQueryResult status;
    SUCCEEDS(cuGetProcAddress("cuMemAlloc", &entry, 12000, 0, &status));
    EXPECT(entry != NULL);
    typedef CUresult (*Allocate)(CUdeviceptr *, size_t);
    SUCCEEDS(((Allocate)entry)(&pointer, 64));
    SUCCEEDS(cuMemFree(pointer));
    SUCCEEDS(cuGetProcAddress("cuNoSuchThing", &entry, 12000, 0, &status));
    EXPECT(entry == NULL && status == CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
    SUCCEEDS(cuGetProcAddress("cuLaunchKernelEx", &entry, 11000, 0, &status));
    EXPECT(status == CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
    const char *words;
    SUCCEEDS(cuGetErrorName(CUDA_ERROR_ILLEGAL_ADDRESS, &words));
    EXPECT(strcmp(words, "CUDA_ERROR_ILLEGAL_ADDRESS") == 0);
    EXPECT(cuGetErrorString((CUresult)12345, &words) == CUDA_ERROR_INVALID_VALUE);
    EXPECT(cuGraphicsUnregisterResource(NULL) == CUDA_ERROR_NOT_SUPPORTED);
    SUCCEEDS(cuCtxDestroy(context));
    EXPECT(cuMemAlloc(&pointer, 4) == CUDA_ERROR_INVALID_CONTEXT);
    CUcontext primary;
    SUCCEEDS(cuDevicePrimaryCtxRetain(&primary, device));
    SUCCEEDS(cuCtxSetCurrent(primary));
    SUCCEEDS(cuMemAlloc(&pointer, 4));
    SUCCEEDS(cuDevicePrimaryCtxRelease(device));
    printf("all calls answered\n");
    return 0;
}
