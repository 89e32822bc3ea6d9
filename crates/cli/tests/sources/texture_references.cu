// Texture references as CUDA 11 has them, asked for through both APIs. Compilers since CUDA 12 know them no more, so the
// kernels are PTX and the calls are looked up by name.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <dlfcn.h>
#include <vector_types.h>

static const char ptx[] = R"(
.version 7.8
.target sm_70
.address_size 64
.global .texref line;
.global .texref plane;
.global .texref bytes;
.visible .entry fetch(.param .u64 out) {
    .reg .b32 %r<2>; .reg .f32 %f<5>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [line, {%r1}];
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.f32 [%rd3], %f1;
    ret;
}
.visible .entry sample(.param .u64 out) {
    .reg .b32 %r<2>; .reg .f32 %f<7>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    cvt.rn.f32.u32 %f5, %r1;
    mov.f32 %f6, 0f3F800000;
    tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [plane, {%f5, %f6}];
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.f32 [%rd3], %f1;
    ret;
}
.visible .entry scale(.param .u64 out) {
    .reg .b32 %r<2>; .reg .f32 %f<5>; .reg .b64 %rd<4>;
    ld.param.u64 %rd1, [out];
    mov.u32 %r1, %tid.x;
    tex.1d.v4.f32.s32 {%f1, %f2, %f3, %f4}, [bytes, {%r1}];
    mul.wide.u32 %rd2, %r1, 4;
    add.s64 %rd3, %rd1, %rd2;
    st.global.f32 [%rd3], %f1;
    ret;
}
)";

// textureReference of CUDA 11.
struct Reference {
    int normalized = 0, filter = 0, address[3] = {1, 1, 1}, format[5] = {32, 0, 0, 0, 2};
    int srgb = 0;
    unsigned anisotropy = 0;
    int mip_filter = 0;
    float bias = 0, lowest = 0, highest = 0;
    int trilinear = 0, reserved[14] = {};
};

static void *driver, *runtime;
template <class T> static T find(void *library, const char *name) {
    void *found = library ? dlsym(library, name) : nullptr;
    if (!found) printf("no %s\n", name);
    return (T)found;
}
#define DRIVER(name, ...) find<unsigned (*)(__VA_ARGS__)>(driver, #name)
#define RUNTIME(name, ...) find<int (*)(__VA_ARGS__)>(runtime, #name)
typedef uint64_t u64;
typedef void *handle;

static void show(const char *what, const float *values, int count) {
    printf("%s:", what);
    for (int i = 0; i < count; i++) printf(" %g", values[i]);
    printf("\n");
}

static void through_driver() {
    auto allocate = DRIVER(cuMemAlloc_v2, u64 *, size_t);
    auto up = DRIVER(cuMemcpyHtoD_v2, u64, const void *, size_t);
    auto down = DRIVER(cuMemcpyDtoH_v2, void *, u64, size_t);
    auto launch = DRIVER(cuLaunchKernel, handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, handle, void **, void **);
    auto reference = DRIVER(cuModuleGetTexRef, handle *, handle, const char *);
    auto function = DRIVER(cuModuleGetFunction, handle *, handle, const char *);
    auto set_format = DRIVER(cuTexRefSetFormat, handle, unsigned, int);
    auto set_address = DRIVER(cuTexRefSetAddress_v2, size_t *, handle, u64, size_t);
    auto get_address = DRIVER(cuTexRefGetAddress_v2, u64 *, handle);
    handle device_context, module, line, again, fetch;
    printf("init %u\n", DRIVER(cuInit, unsigned)(0));
    DRIVER(cuDevicePrimaryCtxRetain, handle *, int)(&device_context, 0);
    DRIVER(cuCtxSetCurrent, handle)(device_context);
    printf("load %u\n", DRIVER(cuModuleLoadData, handle *, const void *)(&module, ptx));
    printf("unknown %u\n", reference(&line, module, "nothing"));
    printf("found %u", reference(&line, module, "line"));
    printf(" %u\n", reference(&again, module, "line"));
    printf("same %d\n", line == again);
    function(&fetch, module, "fetch");
    float ones[8], twos[8], seen[8];
    for (int i = 0; i < 8; i++) ones[i] = 1 + i, twos[i] = 20 + i;
    u64 a, b, out, second;
    allocate(&a, 4096), allocate(&b, 4096), allocate(&out, 32), allocate(&second, 32);
    up(a, ones, sizeof ones), up(b, twos, sizeof twos);
    size_t offset = 1;
    printf("format %u\n", set_format(line, 0x20, 1));
    printf("address %u\n", set_address(&offset, line, a, sizeof ones));
    void *first_arguments[] = {&out}, *second_arguments[] = {&second};
    launch(fetch, 1, 1, 1, 8, 1, 1, 0, nullptr, first_arguments, nullptr);
    // What was launched keeps what was bound then.
    set_address(&offset, line, b, sizeof twos);
    launch(fetch, 1, 1, 1, 8, 1, 1, 0, nullptr, second_arguments, nullptr);
    down(seen, out, sizeof seen), show("first", seen, 8);
    down(seen, second, sizeof seen), show("second", seen, 8);
    u64 bound = 0;
    get_address(&bound, line);
    printf("offset %zu, bound to the second %d\n", offset, bound == b);
}

static char fat[16 + 64 + (sizeof ptx + 7) / 8 * 8];
static struct { uint32_t magic, version; void *data; void *unused; } wrapper = {0x466243b1, 1, fat, nullptr};

static void through_runtime() {
    const u64 payload = (sizeof ptx + 7) / 8 * 8;
    const uint32_t header[] = {0xba55ed50, 16 << 16 | 1, (uint32_t)(64 + payload), 0};
    const uint32_t entry[] = {0x01010001, 64, (uint32_t)payload, 0, 0, 0, 7 << 16 | 8, 70, 0, 0, 0x11, 0};
    memcpy(fat, header, sizeof header);
    memcpy(fat + 16, entry, sizeof entry);
    memcpy(fat + 80, ptx, sizeof ptx);
    static Reference line, plane, bytes, stranger;
    static char stub_sample, stub_scale;
    auto library = find<void **(*)(void *)>(runtime, "__cudaRegisterFatBinary")(&wrapper);
    auto texture = find<void (*)(void **, const void *, const char *, const char *, int, int, int)>(runtime, "__cudaRegisterTexture");
    auto kernel = find<void (*)(void **, const char *, char *, const char *, int, void *, void *, void *, void *, int *)>(runtime, "__cudaRegisterFunction");
    texture(library, &line, "line", "::line", 1, 0, 0);
    texture(library, &plane, "plane", "::plane", 2, 0, 0);
    texture(library, &bytes, "bytes", "::bytes", 1, 1, 0);
    kernel(library, &stub_sample, nullptr, "sample", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    kernel(library, &stub_scale, nullptr, "scale", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    auto allocate = RUNTIME(cudaMalloc, void **, size_t);
    auto copy = RUNTIME(cudaMemcpy, void *, const void *, size_t, int);
    auto launch = RUNTIME(cudaLaunchKernel, const void *, dim3, dim3, void **, size_t, handle);
    auto bind = RUNTIME(cudaBindTexture, size_t *, const Reference *, const void *, const int *, size_t);
    auto bind2 = RUNTIME(cudaBindTexture2D, size_t *, const Reference *, const void *, const int *, size_t, size_t, size_t);
    auto unbind = RUNTIME(cudaUnbindTexture, const Reference *);
    auto offset_of = RUNTIME(cudaGetTextureAlignmentOffset, size_t *, const Reference *);
    auto of_symbol = RUNTIME(cudaGetTextureReference, const Reference **, const void *);
    const Reference *found = nullptr;
    printf("symbol %d", of_symbol(&found, &plane));
    printf(" %d\n", found == &plane);
    printf("stranger %d\n", of_symbol(&found, &stranger));
    // A plane of 8 by 4, x + 10 y, between whose texels is read.
    char *memory;
    float *out, plane_texels[4][8], seen[8];
    allocate((void **)&memory, 4096), allocate((void **)&out, sizeof seen);
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 8; x++) plane_texels[y][x] = x + 10 * y;
    copy(memory, plane_texels, sizeof plane_texels, 1);
    plane.filter = 1;
    size_t offset = 1;
    printf("plane %d", bind2(&offset, &plane, memory, plane.format, 8, 4, 32));
    printf(" %zu\n", offset);
    void *arguments[] = {&out};
    printf("launch %d\n", launch(&stub_sample, dim3{1, 1, 1}, dim3{8, 1, 1}, arguments, 0, nullptr));
    copy(seen, out, sizeof seen, 2), show("plane", seen, 8);
    // Bytes that are read as floats from 0 to 1, and begin behind an aligned address.
    unsigned char few[8] = {0, 51, 102, 153, 204, 255, 0, 255};
    copy(memory + 1024 + 16, few, sizeof few, 1);
    const int one_byte[] = {8, 0, 0, 0, 1};
    printf("unaligned %d\n", bind(nullptr, &bytes, memory + 1024 + 16, one_byte, 8));
    printf("bytes %d", bind(&offset, &bytes, memory + 1024 + 16, one_byte, 8));
    printf(" %zu", offset);
    offset = 0;
    printf(", asked %d", offset_of(&offset, &bytes));
    printf(" %zu\n", offset);
    copy(memory + 1024, few, sizeof few, 1);
    launch(&stub_scale, dim3{1, 1, 1}, dim3{8, 1, 1}, arguments, 0, nullptr);
    copy(seen, out, sizeof seen, 2), show("bytes", seen, 8);
    printf("unbound %d", unbind(&bytes));
    printf(", asked %d\n", offset_of(&offset, &bytes));
    printf("stranger %d\n", unbind(&stranger));
}

int main() {
    driver = dlopen("libcuda.so.1", RTLD_NOW);
    runtime = dlopen("libcudart.so.11.0", RTLD_NOW);
    through_driver();
    through_runtime();
}
