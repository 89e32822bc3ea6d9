// Arrays: making them, asking about them, and copies to, from and between them.
#include "conformance.cuh"

static long long sum(const float* words, int count) {
    long long total = 0;
    for (int index = 0; index < count; index++) total += (long long)words[index] * (index + 1);
    return total;
}

static void show(cudaChannelFormatDesc format) {
    printf("format %d %d %d %d kind %d\n", format.x, format.y, format.z, format.w, (int)format.f);
}

int main() {
    const int width = 48, height = 10;
    static float host[width * height * 4], back[width * height * 4];
    for (int index = 0; index < width * height * 4; index++) host[index] = index % 1000;

    chapter("making");
    cudaArray_t plane, other, line, cube;
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>();
    show(format);
    show(cudaCreateChannelDesc(16, 16, 0, 0, cudaChannelFormatKindUnsigned));
    CALL(cudaMallocArray(&plane, &format, width, height));
    CALL(cudaMallocArray(&other, &format, width, height, cudaArraySurfaceLoadStore));
    CALL(cudaMallocArray(&line, &format, 100));
    CALL(cudaMalloc3DArray(&cube, &format, make_cudaExtent(width, height, 4)));
    cudaArray_t broken;
    CALL(cudaMallocArray(&broken, &format, 0));
    cudaChannelFormatDesc odd = cudaCreateChannelDesc(8, 16, 0, 0, cudaChannelFormatKindUnsigned);
    CALL(cudaMallocArray(&broken, &odd, 16));
    CALL(cudaGetLastError());

    chapter("asking");
    cudaChannelFormatDesc found;
    cudaExtent extent;
    unsigned int flags = 99;
    CALL(cudaArrayGetInfo(&found, &extent, &flags, other));
    show(found);
    SHOW(extent.width);
    SHOW(extent.height);
    SHOW(extent.depth);
    SHOW(flags);
    CALL(cudaArrayGetInfo(&found, &extent, &flags, cube));
    SHOW(extent.depth);
    CALL(cudaArrayGetInfo(&found, &extent, &flags, line));
    SHOW(extent.height);
    CALL(cudaGetChannelDesc(&found, plane));
    show(found);

    chapter("copies of two dimensions");
    CALL(cudaMemcpy2DToArray(plane, 0, 0, host, width * 4, width * 4, height, cudaMemcpyHostToDevice));
    CALL(cudaMemcpy2DFromArray(back, width * 4, plane, 0, 0, width * 4, height, cudaMemcpyDeviceToHost));
    EXPECT(memcmp(host, back, width * height * 4) == 0);
    CALL(cudaMemcpy2DArrayToArray(other, 16, 2, plane, 0, 0, 64, 4));
    CALL(cudaMemcpy2DFromArray(back, 64, other, 16, 2, 64, 4, cudaMemcpyDeviceToHost));
    SHOW(sum(back, 64));
    CALL(cudaMemcpy2DToArray(plane, 8, 0, host, width * 4, width * 4, height, cudaMemcpyHostToDevice));
    CALL(cudaGetLastError());
    cudaStream_t stream;
    MUST(cudaStreamCreate(&stream));
    CALL(cudaMemcpy2DToArrayAsync(other, 0, 0, host + 7, width * 4, 80, 5, cudaMemcpyHostToDevice, stream));
    CALL(cudaMemcpy2DFromArrayAsync(back, 80, other, 0, 0, 80, 5, cudaMemcpyDeviceToHost, stream));
    CALL(cudaStreamSynchronize(stream));
    SHOW(sum(back, 100));

    chapter("copies of three dimensions");
    cudaMemcpy3DParms parameters = {};
    parameters.srcPtr = make_cudaPitchedPtr(host, width * 4, width, height);
    parameters.dstArray = cube;
    parameters.extent = make_cudaExtent(width, height, 4);
    parameters.kind = cudaMemcpyHostToDevice;
    CALL(cudaMemcpy3D(&parameters));
    cudaMemcpy3DParms out = {};
    out.srcArray = cube;
    out.srcPos = make_cudaPos(4, 2, 1);
    out.dstPtr = make_cudaPitchedPtr(back, 32 * 4, 32, 6);
    out.extent = make_cudaExtent(32, 6, 2);
    out.kind = cudaMemcpyDeviceToHost;
    CALL(cudaMemcpy3D(&out));
    SHOW(sum(back, 32 * 6 * 2));
    cudaMemcpy3DParms inside = {};
    inside.srcArray = cube;
    inside.dstArray = plane;
    inside.srcPos = make_cudaPos(0, 0, 3);
    inside.extent = make_cudaExtent(width, height, 1);
    inside.kind = cudaMemcpyDeviceToDevice;
    CALL(cudaMemcpy3DAsync(&inside, stream));
    CALL(cudaMemcpy2DFromArrayAsync(back, width * 4, plane, 0, 0, width * 4, height, cudaMemcpyDeviceToHost, stream));
    CALL(cudaStreamSynchronize(stream));
    EXPECT(memcmp(back, host + 3 * width * height, width * height * 4) == 0);
    out.srcPos = make_cudaPos(40, 0, 0);
    CALL(cudaMemcpy3D(&out));
    CALL(cudaGetLastError());

    chapter("copies that run over rows");
    CALL(cudaMemcpyToArray(plane, 0, 0, host, width * height * 4, cudaMemcpyHostToDevice));
    CALL(cudaMemcpyFromArray(back, plane, 0, 3, width * 4 * 2, cudaMemcpyDeviceToHost));
    SHOW(sum(back, width * 2));
    CALL(cudaMemcpyArrayToArray(other, 0, 0, plane, 0, 2, width * 4 * 3));
    CALL(cudaMemcpyToArrayAsync(other, 0, 5, host, width * 4, cudaMemcpyHostToDevice, stream));
    CALL(cudaMemcpyFromArrayAsync(back, other, 0, 0, width * height * 4, cudaMemcpyDeviceToHost, stream));
    CALL(cudaStreamSynchronize(stream));
    SHOW(sum(back, width * 3));

    chapter("levels");
    cudaMipmappedArray_t levels;
    cudaArray_t level;
    CALL(cudaMallocMipmappedArray(&levels, &format, make_cudaExtent(64, 32, 0), 4));
    CALL(cudaGetMipmappedArrayLevel(&level, levels, 2));
    CALL(cudaArrayGetInfo(&found, &extent, &flags, level));
    SHOW(extent.width);
    SHOW(extent.height);
    CALL(cudaGetMipmappedArrayLevel(&level, levels, 9));
    CALL(cudaFreeMipmappedArray(levels));

    chapter("the driver's words");
    CUarray array, deep;
    CUDA_ARRAY_DESCRIPTOR flat = {};
    flat.Width = 64;
    flat.Height = 4;
    flat.Format = CU_AD_FORMAT_UNSIGNED_INT16;
    flat.NumChannels = 2;
    CALL(cuArrayCreate(&array, &flat));
    memset(&flat, 0, sizeof flat);
    CALL(cuArrayGetDescriptor(&flat, array));
    SHOW(flat.Width);
    SHOW(flat.Height);
    SHOW(flat.Format);
    SHOW(flat.NumChannels);
    flat.NumChannels = 3;
    CUarray wrong;
    CALL(cuArrayCreate(&wrong, &flat));
    CUDA_ARRAY3D_DESCRIPTOR description = {};
    description.Width = 16;
    description.Height = 8;
    description.Depth = 3;
    description.Format = CU_AD_FORMAT_FLOAT;
    description.NumChannels = 1;
    CALL(cuArray3DCreate(&deep, &description));
    CALL(cuArray3DGetDescriptor(&description, deep));
    SHOW(description.Depth);
    CALL(cuMemcpyHtoA(array, 0, host, 256));
    CALL(cuMemcpyAtoH(back, array, 0, 256));
    EXPECT(memcmp(host, back, 256) == 0);
    CUdeviceptr memory;
    MUST(cuMemAlloc(&memory, 256));
    CALL(cuMemcpyAtoD(memory, array, 128, 128));
    CALL(cuMemcpyDtoA(array, 0, memory, 128));
    CALL(cuMemcpyAtoA(array, 128, array, 0, 64));
    CALL(cuMemcpyHtoAAsync(array, 64, host, 64, stream));
    CALL(cuMemcpyAtoHAsync(back, array, 0, 256, stream));
    CALL(cuStreamSynchronize(stream));
    SHOW(sum(back, 64));
    CUDA_MEMCPY2D copy = {};
    copy.srcMemoryType = CU_MEMORYTYPE_HOST;
    copy.srcHost = host;
    copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    copy.dstArray = array;
    copy.WidthInBytes = 256;
    copy.Height = 4;
    CALL(cuMemcpy2D(&copy));
    CUDA_MEMCPY3D volume = {};
    volume.srcMemoryType = CU_MEMORYTYPE_HOST;
    volume.srcHost = host;
    volume.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    volume.dstArray = deep;
    volume.WidthInBytes = 64;
    volume.Height = 8;
    volume.Depth = 3;
    CALL(cuMemcpy3D(&volume));
    CUmipmappedArray mips;
    description.Width = 32;
    description.Height = 32;
    description.Depth = 0;
    CALL(cuMipmappedArrayCreate(&mips, &description, 3));
    CUarray one;
    CALL(cuMipmappedArrayGetLevel(&one, mips, 1));
    CALL(cuArrayGetDescriptor(&flat, one));
    SHOW(flat.Width);
    CALL(cuMipmappedArrayDestroy(mips));
    CALL(cuArrayDestroy(array));
    CALL(cuArrayDestroy(deep));
    CALL(cuMemFree(memory));

    chapter("the end");
    CALL(cudaFreeArray(plane));
    CALL(cudaFreeArray(other));
    CALL(cudaFreeArray(line));
    CALL(cudaFreeArray(cube));
    CALL(cudaFreeArray(nullptr));
    CALL(cudaStreamDestroy(stream));
    return finish();
}
