// Vector addition through the driver API: a module from PTX text, and both ways of passing arguments.
//
// Build with `-lcuda`. Usage: driver_vector_add [elements] [PTX file with an entry `vector_add`]
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include <cuda.h>

#include "../common/workload.cuh"

using namespace workload;

#define CHECK_DRIVER(call)                                                                   \
    do {                                                                                     \
        CUresult status_ = (call);                                                           \
        if (status_ != CUDA_SUCCESS) {                                                       \
            const char* text_ = nullptr;                                                     \
            cuGetErrorString(status_, &text_);                                               \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,               \
                         text_ ? text_ : "unknown error");                                   \
            std::exit(2);                                                                    \
        }                                                                                    \
    } while (0)

static const char* const BUILT_IN_PTX = R"(
.version 7.0
.target sm_70
.address_size 64

.visible .entry vector_add(
    .param .u64 a,
    .param .u64 b,
    .param .u64 sum,
    .param .u32 count
)
{
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    .reg .f32 %f<4>;
    .reg .b64 %rd<8>;

    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.s32 %r4, %r1, %r2, %r3;
    ld.param.u32 %r5, [count];
    setp.ge.s32 %p1, %r4, %r5;
    @%p1 bra DONE;

    ld.param.u64 %rd1, [a];
    ld.param.u64 %rd2, [b];
    ld.param.u64 %rd3, [sum];
    mul.wide.s32 %rd4, %r4, 4;
    add.s64 %rd5, %rd1, %rd4;
    add.s64 %rd6, %rd2, %rd4;
    add.s64 %rd7, %rd3, %rd4;
    ld.global.f32 %f1, [%rd5];
    ld.global.f32 %f2, [%rd6];
    add.f32 %f3, %f1, %f2;
    st.global.f32 [%rd7], %f3;
DONE:
    ret;
}
)";

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 16384);
    std::string ptx = BUILT_IN_PTX;
    if (argc > 2) {
        std::ifstream file(argv[2]);
        if (!file) {
            std::fprintf(stderr, "driver_vector_add: cannot read `%s`\n", argv[2]);
            return 2;
        }
        std::stringstream text;
        text << file.rdbuf();
        ptx = text.str();
    }
    std::vector<float> a = uniform_values(count, -1.0f, 1.0f, 1);
    std::vector<float> b = uniform_values(count, -1.0f, 1.0f, 2);
    std::vector<float> wanted(count);
    for (int i = 0; i < count; i++) wanted[i] = a[i] + b[i];

    CUdevice device;
    CUcontext context;
    CHECK_DRIVER(cuInit(0));
    CHECK_DRIVER(cuDeviceGet(&device, 0));
    CHECK_DRIVER(cuDevicePrimaryCtxRetain(&context, device));
    CHECK_DRIVER(cuCtxSetCurrent(context));
    CUmodule module;
    CUfunction function;
    CHECK_DRIVER(cuModuleLoadData(&module, ptx.c_str()));
    CHECK_DRIVER(cuModuleGetFunction(&function, module, "vector_add"));

    size_t bytes = size_t(count) * sizeof(float);
    CUdeviceptr device_a, device_b, device_sum;
    CHECK_DRIVER(cuMemAlloc(&device_a, bytes));
    CHECK_DRIVER(cuMemAlloc(&device_b, bytes));
    CHECK_DRIVER(cuMemAlloc(&device_sum, bytes));
    CHECK_DRIVER(cuMemcpyHtoD(device_a, a.data(), bytes));
    CHECK_DRIVER(cuMemcpyHtoD(device_b, b.data(), bytes));

    size_t wrong[2];
    for (int form = 0; form < 2; form++) {
        CHECK_DRIVER(cuMemsetD8(device_sum, 0xff, bytes));
        unsigned grid = blocks_for(count, 128);
        if (form == 0) {
            void* pointers[] = {&device_a, &device_b, &device_sum, &count};
            CHECK_DRIVER(cuLaunchKernel(function, grid, 1, 1, 128, 1, 1, 0, nullptr, pointers, nullptr));
        } else {
            struct {
                CUdeviceptr a, b, sum;
                int count;
            } packed = {device_a, device_b, device_sum, count};
            size_t size = sizeof(CUdeviceptr) * 3 + sizeof(int);
            void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                             CU_LAUNCH_PARAM_END};
            CHECK_DRIVER(cuLaunchKernel(function, grid, 1, 1, 128, 1, 1, 0, nullptr, nullptr, extra));
        }
        CHECK_DRIVER(cuCtxSynchronize());
        std::vector<float> sum(count);
        CHECK_DRIVER(cuMemcpyDtoH(sum.data(), device_sum, bytes));
        wrong[form] = mismatches(sum, wanted);
    }
    CHECK_DRIVER(cuMemFree(device_a));
    CHECK_DRIVER(cuMemFree(device_b));
    CHECK_DRIVER(cuMemFree(device_sum));
    CHECK_DRIVER(cuModuleUnload(module));
    CHECK_DRIVER(cuDevicePrimaryCtxRelease(device));
    return verdict("driver_vector_add", wrong[0] + wrong[1] == 0, "%d elements, wrong: %zu by pointers, %zu packed", count,
                   wrong[0], wrong[1]);
}
