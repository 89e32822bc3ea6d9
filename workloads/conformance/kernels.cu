// Kernels: launches in all forms, attributes, occupancy, what is refused.
#include "conformance.cuh"
#include <cooperative_groups.h>

__global__ void store(int* out, int a, double b, short c) {
    if (threadIdx.x == 0 && blockIdx.x == 0) out[0] = a + (int)b + c;
}

struct Large { int words[40]; };
__global__ void large(int* out, Large value) { out[threadIdx.x] = value.words[threadIdx.x]; }

__global__ void __launch_bounds__(128) bounded(int* out) { out[threadIdx.x] = blockDim.x; }

__global__ void dynamic(int* out, int count) {
    extern __shared__ int room[];
    for (int index = threadIdx.x; index < count; index += blockDim.x) room[index] = index;
    __syncthreads();
    if (threadIdx.x == 0) out[0] = room[count - 1];
}

__global__ void together(int* out) {
    auto grid = cooperative_groups::this_grid();
    atomicAdd(out, 1);
    grid.sync();
    if (grid.thread_rank() == 0) out[1] = out[0];
}

__global__ void shape(int* out) {
    if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0 && blockIdx.x == 0 && blockIdx.y == 0 && blockIdx.z == 0) {
        out[0] = gridDim.x * 10000 + gridDim.y * 100 + gridDim.z;
        out[1] = blockDim.x * 10000 + blockDim.y * 100 + blockDim.z;
    }
}

int main() {
    int *out, host[64];
    MUST(cudaMalloc(&out, sizeof host));
    MUST(cudaMemset(out, 0, sizeof host));

    chapter("launches");
    store<<<1, 32>>>(out, 40, 2.5, -1);
    CALL(cudaGetLastError());
    CALL(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, out, 4, cudaMemcpyDeviceToHost));
    SHOW(host[0]);
    int a = 1;
    double b = 2;
    short c = 3;
    void* arguments[] = {&out, &a, &b, &c};
    CALL(cudaLaunchKernel((const void*)store, dim3(2), dim3(32), arguments, 0, 0));
    MUST(cudaMemcpy(host, out, 4, cudaMemcpyDeviceToHost));
    SHOW(host[0]);
    Large value;
    for (int index = 0; index < 40; index++) value.words[index] = index * index;
    large<<<1, 40>>>(out, value);
    MUST(cudaMemcpy(host, out, 160, cudaMemcpyDeviceToHost));
    SHOW(host[39]);
    shape<<<dim3(3, 4, 5), dim3(6, 7, 2)>>>(out);
    MUST(cudaMemcpy(host, out, 8, cudaMemcpyDeviceToHost));
    SHOW(host[0]);
    SHOW(host[1]);
    cudaLaunchConfig_t configuration = {};
    configuration.gridDim = dim3(1);
    configuration.blockDim = dim3(32);
    cudaLaunchAttribute attributes[2] = {};
    attributes[0].id = cudaLaunchAttributePriority;
    attributes[0].val.priority = -1;
    attributes[1].id = cudaLaunchAttributeCooperative;
    attributes[1].val.cooperative = 0;
    configuration.attrs = attributes;
    configuration.numAttrs = 2;
    CALL(cudaLaunchKernelEx(&configuration, store, out, 7, 8.0, (short)9));
    MUST(cudaMemcpy(host, out, 4, cudaMemcpyDeviceToHost));
    SHOW(host[0]);
    CALL(cudaLaunchKernelExC(&configuration, (const void*)store, arguments));

    chapter("cooperative");
    MUST(cudaMemset(out, 0, 8));
    void* one[] = {&out};
    CALL(cudaLaunchCooperativeKernel((const void*)together, dim3(16), dim3(64), one, 0, 0));
    CALL(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, out, 8, cudaMemcpyDeviceToHost));
    SHOW(host[1]);
    CALL(cudaLaunchCooperativeKernel((const void*)together, dim3(1 << 20), dim3(64), one, 0, 0));
    CALL(cudaGetLastError());

    chapter("refused");
    store<<<0, 32>>>(out, 1, 1, 1);
    CALL(cudaGetLastError());
    store<<<1, 0>>>(out, 1, 1, 1);
    CALL(cudaGetLastError());
    store<<<1, 2048>>>(out, 1, 1, 1);
    CALL(cudaGetLastError());
    store<<<dim3(1, 70000), 32>>>(out, 1, 1, 1);
    CALL(cudaGetLastError());
    store<<<1, dim3(1, 1, 100)>>>(out, 1, 1, 1);
    CALL(cudaGetLastError());
    bounded<<<1, 256>>>(out);
    CALL(cudaGetLastError());
    dynamic<<<1, 64, 100000>>>(out, 16);
    CALL(cudaGetLastError());
    CALL(cudaPeekAtLastError());
    int local = 0;
    CALL(cudaLaunchKernel((const void*)&local, dim3(1), dim3(1), arguments, 0, 0));
    CALL(cudaGetLastError());

    chapter("attributes");
    cudaFuncAttributes found;
    CALL(cudaFuncGetAttributes(&found, bounded));
    SHOW(found.maxThreadsPerBlock);
    SHOW(found.sharedSizeBytes);
    SHOW(found.constSizeBytes);
    SHOW(found.localSizeBytes);
    SHOW(found.binaryVersion);
    SHOW(found.maxDynamicSharedSizeBytes);
    EXPECT(found.numRegs > 0);
    CALL(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 100000));
    CALL(cudaFuncSetAttribute(dynamic, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20));
    CALL(cudaGetLastError());
    CALL(cudaFuncSetAttribute(dynamic, cudaFuncAttributePreferredSharedMemoryCarveout, 50));
    CALL(cudaFuncGetAttributes(&found, dynamic));
    SHOW(found.maxDynamicSharedSizeBytes);
    SHOW(found.preferredShmemCarveout);
    dynamic<<<1, 64, 100000>>>(out, 25000);
    CALL(cudaGetLastError());
    CALL(cudaDeviceSynchronize());
    MUST(cudaMemcpy(host, out, 4, cudaMemcpyDeviceToHost));
    SHOW(host[0]);
    CALL(cudaFuncSetCacheConfig(dynamic, cudaFuncCachePreferShared));
    const char* name = nullptr;
    CALL(cudaFuncGetName(&name, (const void*)bounded));
    EXPECT(name && strstr(name, "bounded") != nullptr);
    size_t offset = 0, size = 0;
    CALL(cudaFuncGetParamInfo((const void*)store, 2, &offset, &size));
    SHOW(offset);
    SHOW(size);
    CALL(cudaFuncGetParamInfo((const void*)store, 4, &offset, &size));
    CALL(cudaGetLastError());

    chapter("occupancy");
    int blocks = 0, grid = 0, block = 0;
    CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, store, 256, 0));
    SHOW(blocks);
    CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, dynamic, 64, 50000, cudaOccupancyDefault));
    SHOW(blocks);
    CALL(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, store, 5000, 0));
    SHOW(blocks);
    CALL(cudaOccupancyMaxPotentialBlockSize(&grid, &block, store, 0, 0));
    SHOW(grid);
    SHOW(block);
    CALL(cudaOccupancyMaxPotentialBlockSize(&grid, &block, bounded, 0, 0));
    SHOW(block);
    CALL(cudaOccupancyAvailableDynamicSMemPerBlock(&size, store, 4, 256));
    SHOW(size);
    int clusters = -1;
    configuration.numAttrs = 0;
    CALL(cudaOccupancyMaxPotentialClusterSize(&clusters, store, &configuration));
    SHOW(clusters);
    cudaGetLastError();
    cudaKernel_t handle;
    CALL(cudaGetKernel(&handle, (const void*)store));
    EXPECT(handle != nullptr);

    chapter("the driver's words");
    cudaFunction_t symbol;
    CALL(cudaGetFuncBySymbol(&symbol, (const void*)store));
    CUfunction function = symbol;
    int number = 0;
    CALL(cuFuncGetAttribute(&number, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
    SHOW(number);
    CALL(cuFuncGetAttribute(&number, (CUfunction_attribute)99, function));
    CALL(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 60000));
    CALL(cuFuncSetAttribute(function, CU_FUNC_ATTRIBUTE_NUM_REGS, 10));
    CALL(cuFuncSetCacheConfig(function, CU_FUNC_CACHE_PREFER_L1));
    CALL(cuFuncGetName(&name, function));
    EXPECT(name && strstr(name, "store") != nullptr);
    CALL(cuFuncGetParamInfo(function, 1, &offset, &size));
    SHOW(offset);
    CUmodule module;
    CALL(cuFuncGetModule(&module, function));
    CUfunctionLoadingState state;
    CALL(cuFuncIsLoaded(&state, function));
    SHOW(state);
    CALL(cuFuncLoad(function));
    CALL(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, arguments, nullptr));
    struct { int* out; int a; int pad; double b; short c; } packed = {out, 100, 0, 20.0, 3};
    size_t bytes = sizeof packed;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
    CALL(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, 0, nullptr, extra));
    CALL(cuCtxSynchronize());
    MUST(cudaMemcpy(host, out, 4, cudaMemcpyDeviceToHost));
    SHOW(host[0]);
    CALL(cuLaunchKernel(function, 0, 1, 1, 32, 1, 1, 0, 0, arguments, nullptr));
    CALL(cuLaunchKernel(function, 1, 1, 1, 2000, 1, 1, 0, 0, arguments, nullptr));
    CUlaunchConfig config = {};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 32;
    config.blockDimY = config.blockDimZ = 1;
    CALL(cuLaunchKernelEx(&config, function, arguments, nullptr));
    cudaFunction_t grid_symbol;
    MUST(cudaGetFuncBySymbol(&grid_symbol, (const void*)together));
    CALL(cuLaunchCooperativeKernel(grid_symbol, 4, 1, 1, 32, 1, 1, 0, 0, one));
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 128, 0));
    SHOW(blocks);
    CALL(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, function, 128, 0, 0));
    CALL(cuOccupancyMaxPotentialBlockSize(&grid, &block, function, nullptr, 0, 0));
    SHOW(block);
    CALL(cuOccupancyMaxPotentialBlockSizeWithFlags(&grid, &block, function, nullptr, 0, 0, 0));
    CALL(cuOccupancyAvailableDynamicSMemPerBlock(&size, function, 2, 128));
    SHOW(size);
    CALL(cuCtxSynchronize());
    CALL(cudaFree(out));
    return finish();
}
