// How long each kernel of a program takes, by events around every launch: a library to be preloaded into a program that
// was linked with the shared runtime. It knows nothing of samplers, so both sides of a comparison are timed alike.
//
//   nvcc -O3 -shared -Xcompiler -fPIC --cudart shared -o libkernel_times.so kernel_times.cu
//   KERNEL_TIMES=FILE LD_PRELOAD=./libkernel_times.so PROGRAM
//
// FILE gets a line for each kernel: name, launches, median of their microseconds (where processes share a GPU, those
// that were interrupted are longer by what the others had). Whenever the GPU has nothing to do, a
// kernel that only waits is launched first: behind it launches queue up, so that no event waits for the host.
#include "check.cuh"
#include <algorithm>
#include <dlfcn.h>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr long long WAIT = 600000;  // nanoseconds: longer than launching what follows it

struct Timed {
    const void *kernel;
    cudaEvent_t before, after;
};

using Launch = cudaError_t (*)(const void *, dim3, dim3, void **, size_t, cudaStream_t);

std::vector<Timed> timed;

__global__ void wait_for_launches(long long nanoseconds) {
    long long begun, now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(begun));
    do
        asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    while (now - begun < nanoseconds);
}

// What the runtime has under a name.
Launch real(const char *name) { return reinterpret_cast<Launch>(dlsym(RTLD_NEXT, name)); }

void write_times() {
    const char *path = std::getenv("KERNEL_TIMES");
    FILE *file = path ? std::fopen(path, "w") : nullptr;
    if (!file) return;
    std::map<std::string, std::vector<float>> kernels;
    for (const Timed &launch : timed) {
        float milliseconds = 0;
        const char *name = nullptr;
        if (cudaEventElapsedTime(&milliseconds, launch.before, launch.after) != cudaSuccess) continue;
        if (cudaFuncGetName(&name, launch.kernel) != cudaSuccess) continue;
        kernels[name].push_back(milliseconds * 1e3f);
    }
    for (auto &[name, times] : kernels) {
        std::nth_element(times.begin(), times.begin() + times.size() / 2, times.end());
        std::fprintf(file, "%s,%zu,%.3f\n", name.c_str(), times.size(), times[times.size() / 2]);
    }
    std::fclose(file);
}

cudaError_t launch_timed(Launch launch, const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                         cudaStream_t stream) {
    static Launch wait = real("cudaLaunchKernel");
    if (timed.empty()) std::atexit(write_times);
    if (cudaStreamQuery(stream) == cudaSuccess) {
        long long nanoseconds = WAIT;
        void *waits[] = {&nanoseconds};
        CHECK(wait(reinterpret_cast<const void *>(wait_for_launches), 1, 1, waits, 0, stream));
    }
    Timed one{kernel, nullptr, nullptr};
    CHECK(cudaEventCreate(&one.before));
    CHECK(cudaEventCreate(&one.after));
    CHECK(cudaEventRecord(one.before, stream));
    cudaError_t result = launch(kernel, grid, block, arguments, shared, stream);
    CHECK(cudaEventRecord(one.after, stream));
    timed.push_back(one);
    return result;
}

}  // namespace

// What `<<<>>>` calls, in CUDA 12 and from CUDA 13 on; a kernel's handle names it as its function does.
extern "C" cudaError_t cudaLaunchKernel(const void *kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                                        cudaStream_t stream) {
    static Launch launch = real("cudaLaunchKernel");
    return launch_timed(launch, kernel, grid, block, arguments, shared, stream);
}

extern "C" cudaError_t __cudaLaunchKernel(cudaKernel_t kernel, dim3 grid, dim3 block, void **arguments, size_t shared,
                                          cudaStream_t stream) {
    static Launch launch = real("__cudaLaunchKernel");
    return launch_timed(launch, kernel, grid, block, arguments, shared, stream);
}
