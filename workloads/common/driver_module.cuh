// A kernel of a cubin that is embedded in the program, through the driver API, as Triton's own launcher uses it.
#pragma once

#include <cuda.h>

#include "workload.cuh"

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

namespace workload {

// Lives in the primary context, so that buffers of the runtime API are its arguments.
class EmbeddedKernel {
public:
    EmbeddedKernel(const unsigned char* cubin, const char* name, unsigned threads, unsigned shared)
        : threads_(threads), shared_(shared) {
        CHECK(cudaFree(nullptr));
        CHECK_DRIVER(cuModuleLoadData(&module_, cubin));
        CHECK_DRIVER(cuModuleGetFunction(&function_, module_, name));
        if (shared > 48 * 1024)
            CHECK_DRIVER(cuFuncSetAttribute(function_, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, int(shared)));
    }
    EmbeddedKernel(const EmbeddedKernel&) = delete;
    EmbeddedKernel& operator=(const EmbeddedKernel&) = delete;
    ~EmbeddedKernel() { cuModuleUnload(module_); }

    // Triton ends every list of arguments with two pointers to scratch memory, which these kernels do not use.
    template <typename... Arguments>
    void launch(unsigned grid_x, unsigned grid_y, Arguments... arguments) {
        CUdeviceptr no_scratch = 0;
        void* pointers[] = {&arguments..., &no_scratch, &no_scratch};
        CHECK_DRIVER(cuLaunchKernel(function_, grid_x, grid_y, 1, threads_, 1, 1, shared_, nullptr, pointers, nullptr));
    }

private:
    CUmodule module_ = nullptr;
    CUfunction function_ = nullptr;
    unsigned threads_, shared_;
};

}  // namespace workload
