// Modules and libraries: code loaded from memory and files, its kernels and variables, logs,
// linking at run time.
#include "conformance.cuh"
#include <fstream>

static const char text[] =
    ".version 8.0\n.target sm_80\n.address_size 64\n"
    ".visible .global .align 4 .u32 counter = 41;\n"
    ".visible .const .align 4 .u32 offset = 1;\n"
    ".visible .entry bump(.param .u64 out) {\n"
    " .reg .u64 %a<4>; .reg .u32 %r<4>;\n"
    " ld.param.u64 %a1, [out];\n cvta.to.global.u64 %a2, %a1;\n"
    " ld.global.u32 %r1, [counter];\n ld.const.u32 %r2, [offset];\n"
    " add.u32 %r3, %r1, %r2;\n st.global.u32 [%a2], %r3;\n ret;\n}\n"
    ".visible .entry second() { ret; }\n";

int main() {
    CUcontext context;
    MUST(cuInit(0));
    MUST(cuDevicePrimaryCtxRetain(&context, 0));
    MUST(cuCtxSetCurrent(context));
    CUdeviceptr out;
    MUST(cuMemAlloc(&out, 64));
    int value = 0;
    void* arguments[] = {&out};

    chapter("a module from memory");
    CUmodule module;
    CUfunction bump, nothing;
    CALL(cuModuleLoadData(&module, text));
    CALL(cuModuleGetFunction(&bump, module, "bump"));
    CALL(cuModuleGetFunction(&nothing, module, "absent"));
    CUdeviceptr global;
    size_t size = 0;
    CALL(cuModuleGetGlobal(&global, &size, module, "counter"));
    SHOW(size);
    CALL(cuModuleGetGlobal(&global, nullptr, module, "absent"));
    unsigned int functions = 0;
    CALL(cuModuleGetFunctionCount(&functions, module));
    SHOW(functions);
    CUfunction all[2];
    CALL(cuModuleEnumerateFunctions(all, 2, module));
    CUmoduleLoadingMode mode;
    CALL(cuModuleGetLoadingMode(&mode));
    SHOW(mode);
    CALL(cuLaunchKernel(bump, 1, 1, 1, 1, 1, 1, 0, 0, arguments, nullptr));
    CALL(cuCtxSynchronize());
    MUST(cuMemcpyDtoH(&value, out, 4));
    SHOW(value);
    MUST(cuModuleGetGlobal(&global, nullptr, module, "counter"));
    value = 9;
    MUST(cuMemcpyHtoD(global, &value, 4));
    MUST(cuLaunchKernel(bump, 1, 1, 1, 1, 1, 1, 0, 0, arguments, nullptr));
    MUST(cuMemcpyDtoH(&value, out, 4));
    SHOW(value);
    CALL(cuModuleUnload(module));

    chapter("options and logs");
    char errors[4096] = "", information[4096] = "";
    CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
                              CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
    void* values[] = {errors, (void*)sizeof errors, information, (void*)sizeof information};
    // A call leaves behind how much of each buffer it used.
    auto again = [&] { values[1] = values[3] = (void*)sizeof errors; };
    CALL(cuModuleLoadDataEx(&module, text, 4, options, values));
    CALL(cuModuleUnload(module));
    again();
    CALL(cuModuleLoadDataEx(&module, ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry x() { nonsense; }\n", 4, options, values));
    EXPECT(strlen(errors) > 0);
    CALL(cuModuleLoadData(&module, "not code at all"));
    CALL(cuModuleLoadData(&module, nullptr));

    chapter("from a file");
    const char* path = "/tmp/lockstep_conformance_modules.ptx";
    std::ofstream(path) << text;
    CALL(cuModuleLoad(&module, path));
    CALL(cuModuleGetFunction(&bump, module, "bump"));
    CALL(cuModuleUnload(module));
    CALL(cuModuleLoad(&module, "/no/such/file"));
    CALL(cuModuleLoadFatBinary(&module, text));
    CALL(cuModuleUnload(module));

    chapter("libraries");
    CUlibrary library;
    CUkernel kernel;
    CALL(cuLibraryLoadData(&library, text, nullptr, nullptr, 0, nullptr, nullptr, 0));
    CALL(cuLibraryGetKernel(&kernel, library, "bump"));
    CUkernel absent;
    CALL(cuLibraryGetKernel(&absent, library, "absent"));
    CALL(cuLibraryGetKernelCount(&functions, library));
    SHOW(functions);
    CUkernel kernels[2];
    CALL(cuLibraryEnumerateKernels(kernels, 2, library));
    CALL(cuLibraryGetGlobal(&global, &size, library, "counter"));
    SHOW(size);
    CALL(cuLibraryGetManaged(&global, &size, library, "counter"));
    CALL(cuLibraryGetModule(&module, library));
    CALL(cuKernelGetFunction(&bump, kernel));
    int attribute = 0;
    CALL(cuKernelGetAttribute(&attribute, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0));
    SHOW(attribute);
    CALL(cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 50000, kernel, 0));
    CALL(cuKernelSetCacheConfig(kernel, CU_FUNC_CACHE_PREFER_SHARED, 0));
    const char* name = nullptr;
    CALL(cuKernelGetName(&name, kernel));
    printf("name %s\n", name ? name : "none");
    CUlibrary owner;
    CALL(cuKernelGetLibrary(&owner, kernel));
    EXPECT(owner == library);
    size_t offset = 9;
    CALL(cuKernelGetParamInfo(kernel, 0, &offset, &size));
    SHOW(offset);
    SHOW(size);
    CALL(cuLaunchKernel((CUfunction)kernel, 1, 1, 1, 1, 1, 1, 0, 0, arguments, nullptr));
    MUST(cuMemcpyDtoH(&value, out, 4));
    SHOW(value);
    CALL(cuLibraryUnload(library));
    CALL(cuLibraryLoadFromFile(&library, path, nullptr, nullptr, 0, nullptr, nullptr, 0));
    CALL(cuLibraryUnload(library));
    cudaLibrary_t other;
    cudaKernel_t entry;
    CALL(cudaLibraryLoadData(&other, text, nullptr, nullptr, 0, nullptr, nullptr, 0));
    CALL(cudaLibraryGetKernel(&entry, other, "bump"));
    CALL(cudaLibraryGetKernelCount(&functions, other));
    SHOW(functions);
    cudaKernel_t entries[2];
    CALL(cudaLibraryEnumerateKernels(entries, 2, other));
    void* address = nullptr;
    CALL(cudaLibraryGetGlobal(&address, &size, other, "counter"));
    CALL(cudaLibraryGetManaged(&address, &size, other, "counter"));
    CALL(cudaGetLastError());
    CALL(cudaKernelSetAttributeForDevice(entry, cudaFuncAttributeMaxDynamicSharedMemorySize, 50000, 0));
    CALL(cudaLaunchKernel((const void*)entry, dim3(1), dim3(1), arguments, 0, 0));
    CALL(cudaDeviceSynchronize());
    CALL(cudaLibraryUnload(other));
    CALL(cudaLibraryLoadFromFile(&other, path, nullptr, nullptr, 0, nullptr, nullptr, 0));
    CALL(cudaLibraryUnload(other));

    chapter("linking");
    CUlinkState link;
    void* image = nullptr;
    again();
    CALL(cuLinkCreate(4, options, values, &link));
    CALL(cuLinkAddData(link, CU_JIT_INPUT_PTX, (void*)text, sizeof text, "text", 0, nullptr, nullptr));
    CALL(cuLinkComplete(link, &image, &size));
    EXPECT(image != nullptr && size > 0);
    CALL(cuModuleLoadData(&module, image));
    CALL(cuModuleGetFunction(&bump, module, "bump"));
    CALL(cuLaunchKernel(bump, 1, 1, 1, 1, 1, 1, 0, 0, arguments, nullptr));
    MUST(cuMemcpyDtoH(&value, out, 4));
    SHOW(value);
    CALL(cuModuleUnload(module));
    CALL(cuLinkDestroy(link));
    CALL(cuLinkCreate(0, nullptr, nullptr, &link));
    CALL(cuLinkAddFile(link, CU_JIT_INPUT_PTX, path, 0, nullptr, nullptr));
    CALL(cuLinkAddFile(link, CU_JIT_INPUT_PTX, "/no/such/file", 0, nullptr, nullptr));
    CALL(cuLinkDestroy(link));

    chapter("finding functions");
    void* found = nullptr;
    CUdriverProcAddressQueryResult status;
    CALL(cuGetProcAddress("cuMemAlloc", &found, 13000, 0, &status));
    EXPECT(found != nullptr);
    SHOW(status);
    CALL(cuGetProcAddress("cuNoSuchFunction", &found, 13000, 0, &status));
    SHOW(status);
    CALL(cuGetProcAddress("cuLaunchKernelEx", &found, 11000, 0, &status));
    SHOW(status);
    cudaDriverEntryPointQueryResult answer;
    CALL(cudaGetDriverEntryPointByVersion("cuMemAlloc", &found, 12000, cudaEnableDefault, &answer));
    SHOW(answer);
    remove(path);
    CALL(cuMemFree(out));
    return finish();
}
