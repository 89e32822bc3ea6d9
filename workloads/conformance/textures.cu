// Textures and surfaces: making them, asking about them, and what kernels read and write through them.
#include "conformance.cuh"
#include <vector>

static uint64_t digest(const std::vector<float>& words) {
    uint64_t hash = 1469598103934665603ull;
    for (float word : words) {
        uint32_t bits;
        memcpy(&bits, &word, 4);
        hash = (hash ^ bits) * 1099511628211ull;
    }
    return hash >> 1;
}

static constexpr int WIDTH = 16, HEIGHT = 8, DEPTH = 4, COUNT = 512;

enum Way { FETCH, ONE, TWO, THREE, LAYERED, CUBE, LEVEL, GATHER };

// Coordinates are multiples of 1/256 of a texel, so that sums of weighted texels are exact.
__global__ void read(int way, cudaTextureObject_t texture, float scale, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float x = (i * 37 % 6000 - 900) / 256.0f * scale;
    float y = (i * 91 % 3000 - 500) / 256.0f * scale * (scale < 1 ? 2 : 1);
    float z = (i * 53 % 1500 - 200) / 256.0f * scale * (scale < 1 ? 4 : 1);
    float4 value = {0, 0, 0, 0};
    switch (way) {
    case FETCH: value.x = tex1Dfetch<float>(texture, i % 70 - 3); break;
    case ONE: value.x = tex1D<float>(texture, x); break;
    case TWO: value.x = tex2D<float>(texture, x, y); break;
    case THREE: value.x = tex3D<float>(texture, x, y, z); break;
    case LAYERED: value.x = tex2DLayered<float>(texture, x, y, i % 7); break;
    case CUBE: value.x = texCubemap<float>(texture, i % 5 - 2.0f, i % 7 - 3.0f, i % 3 + 0.5f); break;
    case LEVEL: value.x = tex2DLod<float>(texture, x, y, i % 9 * 0.5f - 1.0f); break;
    case GATHER: value = tex2Dgather<float4>(texture, x, y, 0); break;
    }
    out[4 * i] = value.x;
    out[4 * i + 1] = value.y;
    out[4 * i + 2] = value.z;
    out[4 * i + 3] = value.w;
}

__global__ void read_bytes(cudaTextureObject_t texture, float* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    uchar4 value = tex2D<uchar4>(texture, i % WIDTH + 0.5f, i / WIDTH % HEIGHT + 0.5f);
    out[4 * i] = value.x;
    out[4 * i + 1] = value.y;
    out[4 * i + 2] = value.z;
    out[4 * i + 3] = value.w;
}

__global__ void add_one(cudaSurfaceObject_t surface) {
    int x = threadIdx.x, y = threadIdx.y;
    float value = surf2Dread<float>(surface, x * 4, y);
    surf2Dwrite(value + 1, surface, x * 4, y);
    // Outside: reads zero, writes nothing.
    float outside = surf2Dread<float>(surface, (x + WIDTH) * 4, y, cudaBoundaryModeZero);
    surf2Dwrite(outside + 100, surface, x * 4, y + HEIGHT, cudaBoundaryModeZero);
}

static float* out;

static void show(const char* name, int way, cudaTextureObject_t texture, bool normalized) {
    MUST(cudaMemset(out, 0, COUNT * 16));
    read<<<COUNT / 128, 128>>>(way, texture, normalized ? 1.0f / 16 : 1.0f, out);
    MUST(cudaDeviceSynchronize());
    std::vector<float> back(COUNT * 4);
    MUST(cudaMemcpy(back.data(), out, COUNT * 16, cudaMemcpyDeviceToHost));
    printf("%s reads %llx, the first %g %g %g\n", name, (unsigned long long)digest(back), back[0], back[4], back[400]);
}

static cudaTextureDesc description(cudaTextureAddressMode mode, cudaTextureFilterMode filter, bool normalized) {
    cudaTextureDesc made = {};
    made.addressMode[0] = made.addressMode[1] = made.addressMode[2] = mode;
    made.filterMode = filter;
    made.normalizedCoords = normalized;
    made.borderColor[0] = 7;
    return made;
}

int main() {
    cudaChannelFormatDesc format = cudaCreateChannelDesc<float>(), bytes = cudaCreateChannelDesc<uchar4>(), whole = cudaCreateChannelDesc<int>();
    std::vector<float> host(WIDTH * HEIGHT * 24);
    for (size_t i = 0; i < host.size(); i++) host[i] = float(i * 29 % 251);
    MUST(cudaMalloc(&out, COUNT * 16));

    chapter("making");
    cudaArray_t line, plane, space, layers, cube, colours, numbers;
    CALL(cudaMalloc3DArray(&line, &format, make_cudaExtent(WIDTH, 0, 0)));
    CALL(cudaMalloc3DArray(&plane, &format, make_cudaExtent(WIDTH, HEIGHT, 0), cudaArraySurfaceLoadStore | cudaArrayTextureGather));
    CALL(cudaMalloc3DArray(&space, &format, make_cudaExtent(WIDTH, HEIGHT, DEPTH)));
    CALL(cudaMalloc3DArray(&layers, &format, make_cudaExtent(WIDTH, HEIGHT, 5), cudaArrayLayered));
    CALL(cudaMalloc3DArray(&cube, &format, make_cudaExtent(8, 8, 6), cudaArrayCubemap));
    CALL(cudaMallocArray(&colours, &bytes, WIDTH, HEIGHT));
    CALL(cudaMallocArray(&numbers, &whole, WIDTH, HEIGHT));
    auto fill = [&](cudaArray_t array, size_t width, size_t height, size_t depth) {
        cudaMemcpy3DParms copy = {};
        copy.srcPtr = make_cudaPitchedPtr(host.data(), width * 4, width, height);
        copy.dstArray = array;
        copy.extent = make_cudaExtent(width, height, depth);
        copy.kind = cudaMemcpyHostToDevice;
        MUST(cudaMemcpy3D(&copy));
    };
    fill(line, WIDTH, 1, 1);
    fill(plane, WIDTH, HEIGHT, 1);
    fill(space, WIDTH, HEIGHT, DEPTH);
    fill(layers, WIDTH, HEIGHT, 5);
    fill(cube, 8, 8, 6);
    fill(colours, WIDTH, HEIGHT, 1);
    cudaMipmappedArray_t mipmap;
    CALL(cudaMallocMipmappedArray(&mipmap, &format, make_cudaExtent(WIDTH, HEIGHT, 0), 4));
    for (int level = 0; level < 4; level++) {
        cudaArray_t array;
        MUST(cudaGetMipmappedArrayLevel(&array, mipmap, level));
        fill(array, WIDTH >> level, HEIGHT >> level, 1);
    }
    cudaResourceDesc of_plane = {};
    of_plane.resType = cudaResourceTypeArray;
    of_plane.res.array.array = plane;
    cudaTextureObject_t texture = 0;
    cudaTextureDesc clamp = description(cudaAddressModeClamp, cudaFilterModePoint, false);
    CALL(cudaCreateTextureObject(&texture, &of_plane, &clamp, nullptr));
    EXPECT(texture != 0);

    chapter("asking");
    cudaResourceDesc found;
    memset(&found, 0, sizeof(found));
    CALL(cudaGetTextureObjectResourceDesc(&found, texture));
    EXPECT(found.resType == cudaResourceTypeArray && found.res.array.array == plane);
    cudaTextureDesc described;
    memset(&described, 0x55, sizeof(described));
    CALL(cudaGetTextureObjectTextureDesc(&described, texture));
    SHOW(described.addressMode[1]);
    SHOW(described.readMode);
    SHOW(described.normalizedCoords);
    SHOW(described.borderColor[0]);
    SHOW(described.seamlessCubemap);
    CALL(cudaDestroyTextureObject(texture));

    chapter("refusals");
    cudaTextureObject_t broken;
    cudaResourceDesc resource = of_plane;
    cudaTextureDesc wrong = clamp;
    CALL(cudaCreateTextureObject(nullptr, &resource, &wrong, nullptr));
    CALL(cudaCreateTextureObject(&broken, nullptr, &wrong, nullptr));
    wrong.readMode = cudaReadModeNormalizedFloat;
    CALL(cudaCreateTextureObject(&broken, &resource, &wrong, nullptr));
    wrong = clamp;
    wrong.filterMode = cudaFilterModeLinear;
    resource.res.array.array = numbers;
    CALL(cudaCreateTextureObject(&broken, &resource, &wrong, nullptr));
    resource.res.array.array = colours;
    CALL(cudaCreateTextureObject(&broken, &resource, &wrong, nullptr));
    cudaSurfaceObject_t unwritable;
    resource.res.array.array = line;
    CALL(cudaCreateSurfaceObject(&unwritable, &resource));
    resource.resType = cudaResourceTypeLinear;
    CALL(cudaCreateSurfaceObject(&unwritable, &resource));
    CALL(cudaGetLastError());

    chapter("reading");
    auto sampled = [&](const char* name, int way, cudaArray_t array, cudaTextureDesc made) {
        cudaResourceDesc from = {};
        from.resType = cudaResourceTypeArray;
        from.res.array.array = array;
        cudaTextureObject_t object;
        MUST(cudaCreateTextureObject(&object, &from, &made, nullptr));
        show(name, way, object, made.normalizedCoords);
        MUST(cudaDestroyTextureObject(object));
    };
    const cudaTextureAddressMode modes[] = {cudaAddressModeWrap, cudaAddressModeClamp, cudaAddressModeMirror, cudaAddressModeBorder};
    const char* names[] = {"wrap", "clamp", "mirror", "border"};
    for (int filter = 0; filter < 2; filter++)
        for (int mode = 0; mode < 4; mode++) {
            cudaTextureDesc made = description(modes[mode], (cudaTextureFilterMode)filter, true);
            printf("%s, %s:\n", names[mode], filter ? "linear" : "point");
            sampled("one dimension", ONE, line, made);
            sampled("two dimensions", TWO, plane, made);
            sampled("three dimensions", THREE, space, made);
            sampled("layers", LAYERED, layers, made);
        }
    for (int filter = 0; filter < 2; filter++) {
        cudaTextureDesc made = description(cudaAddressModeClamp, (cudaTextureFilterMode)filter, false);
        sampled("one dimension in texels", ONE, line, made);
        sampled("two dimensions in texels", TWO, plane, made);
        sampled("three dimensions in texels", THREE, space, made);
    }
    sampled("a gather", GATHER, plane, description(cudaAddressModeClamp, cudaFilterModePoint, false));
    sampled("a cube", CUBE, cube, description(cudaAddressModeClamp, cudaFilterModePoint, true));
    cudaResourceDesc levels = {};
    levels.resType = cudaResourceTypeMipmappedArray;
    levels.res.mipmap.mipmap = mipmap;
    for (int filter = 0; filter < 2; filter++) {
        cudaTextureDesc made = description(cudaAddressModeWrap, cudaFilterModePoint, true);
        made.mipmapFilterMode = (cudaTextureFilterMode)filter;
        made.maxMipmapLevelClamp = 3;
        CALL(cudaCreateTextureObject(&texture, &levels, &made, nullptr));
        show("a mipmap", LEVEL, texture, true);
        CALL(cudaDestroyTextureObject(texture));
    }

    chapter("linear memory");
    void* memory;
    MUST(cudaMalloc(&memory, 4096));
    MUST(cudaMemcpy(memory, host.data(), host.size() * 4 < 4096 ? host.size() * 4 : 4096, cudaMemcpyHostToDevice));
    cudaResourceDesc linear = {};
    linear.resType = cudaResourceTypeLinear;
    linear.res.linear.devPtr = memory;
    linear.res.linear.desc = format;
    linear.res.linear.sizeInBytes = 64 * 4;
    CALL(cudaCreateTextureObject(&texture, &linear, &clamp, nullptr));
    show("linear memory", FETCH, texture, false);
    CALL(cudaDestroyTextureObject(texture));
    cudaResourceDesc pitched = {};
    pitched.resType = cudaResourceTypePitch2D;
    pitched.res.pitch2D.devPtr = memory;
    pitched.res.pitch2D.desc = format;
    pitched.res.pitch2D.width = 13;
    pitched.res.pitch2D.height = HEIGHT;
    pitched.res.pitch2D.pitchInBytes = 512;
    clamp.filterMode = cudaFilterModeLinear;
    CALL(cudaCreateTextureObject(&texture, &pitched, &clamp, nullptr));
    show("pitched memory", TWO, texture, false);
    CALL(cudaDestroyTextureObject(texture));
    clamp.filterMode = cudaFilterModePoint;

    chapter("bytes");
    cudaResourceDesc of_colours = of_plane;
    of_colours.res.array.array = colours;
    CALL(cudaCreateTextureObject(&texture, &of_colours, &clamp, nullptr));
    read_bytes<<<COUNT / 128, 128>>>(texture, out);
    CALL(cudaDeviceSynchronize());
    std::vector<float> back(COUNT * 4);
    MUST(cudaMemcpy(back.data(), out, COUNT * 16, cudaMemcpyDeviceToHost));
    printf("bytes read %llx\n", (unsigned long long)digest(back));
    CALL(cudaDestroyTextureObject(texture));
    cudaTextureDesc unit = clamp;
    unit.readMode = cudaReadModeNormalizedFloat;
    sampled("bytes as floats", TWO, colours, unit);

    chapter("surfaces");
    cudaSurfaceObject_t surface;
    CALL(cudaCreateSurfaceObject(&surface, &of_plane));
    add_one<<<1, dim3(WIDTH, HEIGHT)>>>(surface);
    CALL(cudaDeviceSynchronize());
    std::vector<float> plane_back(WIDTH * HEIGHT);
    CALL(cudaMemcpy2DFromArray(plane_back.data(), WIDTH * 4, plane, 0, 0, WIDTH * 4, HEIGHT, cudaMemcpyDeviceToHost));
    bool each = true;
    for (int i = 0; i < WIDTH * HEIGHT; i++) each &= plane_back[i] == host[i] + 1;
    EXPECT(each);
    memset(&found, 0, sizeof(found));
    CALL(cudaGetSurfaceObjectResourceDesc(&found, surface));
    EXPECT(found.res.array.array == plane);
    CALL(cudaDestroySurfaceObject(surface));

    chapter("the driver's names");
    CUDA_RESOURCE_DESC driver_resource = {};
    driver_resource.resType = CU_RESOURCE_TYPE_ARRAY;
    driver_resource.res.array.hArray = (CUarray)plane;
    CUDA_TEXTURE_DESC driver_texture = {};
    driver_texture.addressMode[0] = driver_texture.addressMode[1] = CU_TR_ADDRESS_MODE_CLAMP;
    driver_texture.flags = CU_TRSF_NORMALIZED_COORDINATES;
    CUtexObject object;
    CALL(cuTexObjectCreate(&object, &driver_resource, &driver_texture, nullptr));
    show("the driver's texture", TWO, object, true);
    CUDA_TEXTURE_DESC answered = {};
    CALL(cuTexObjectGetTextureDesc(&answered, object));
    SHOW(answered.flags);
    SHOW(answered.addressMode[0]);
    CUDA_RESOURCE_DESC resource_answered = {};
    CALL(cuTexObjectGetResourceDesc(&resource_answered, object));
    EXPECT(resource_answered.res.array.hArray == (CUarray)plane);
    CALL(cuTexObjectDestroy(object));
    CUsurfObject driver_surface;
    CALL(cuSurfObjectCreate(&driver_surface, &driver_resource));
    CALL(cuSurfObjectGetResourceDesc(&resource_answered, driver_surface));
    CALL(cuSurfObjectDestroy(driver_surface));
    return finish();
}
