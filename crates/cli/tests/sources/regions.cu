// Launches inside and outside of what the program says that it is at: ranges of NVTX in all their forms, and the
// profiler. One launch of `work` each, whose number is in its comment.
#include <cstdio>
#include <cstdlib>
#include <nvtx3/nvToolsExt.h>
#include <thread>

// The compiler's package has no header for these.
extern "C" cudaError_t cudaProfilerStart();
extern "C" cudaError_t cudaProfilerStop();

__global__ void work(float* data, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int turn = 0; turn < 8 && i < count; turn++) data[i] = 2 * data[i] + 1;
}

static float* data;

static void launch() {
    work<<<16, 128>>>(data, 2048);
}

// Where nobody asks for ranges, NVTX has none.
static void expect(int found, int expected, const char* what) {
    if (found != expected && found != NVTX_NO_PUSH_POP_TRACKING) {
        std::printf("%s: %d and not %d\n", what, found, expected);
        std::exit(1);
    }
}

int main(int argc, char**) {
    nvtxRangePushA("early");  // Before the first call of CUDA.
    cudaMalloc(&data, 2048 * sizeof(float));
    cudaMemset(data, 0, 2048 * sizeof(float));
    launch();  // 0: early
    expect(nvtxRangePushA("solve"), 1, "push");
    launch();  // 1: early, solve
    expect(nvtxRangePushW(L"inner"), 2, "wide push");
    launch();  // 2: early, solve, inner
    expect(nvtxRangePop(), 2, "pop");
    nvtxRangePop();
    nvtxRangePop();
    launch();  // 3: nothing

    nvtxDomainHandle_t library = nvtxDomainCreateA("library");
    nvtxEventAttributes_t attributes = {};
    attributes.version = NVTX_VERSION;
    attributes.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    attributes.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    attributes.message.registered = nvtxDomainRegisterStringA(library, "solve");
    expect(nvtxDomainRangePushEx(library, &attributes), 0, "push in a domain");
    launch();  // 4: solve@library
    nvtxDomainRangePop(library);

    nvtxRangeId_t whole = nvtxRangeStartW(L"process");
    std::thread([] {
        launch();  // 5: process, of another thread
    }).join();
    std::thread([whole] { nvtxRangeEnd(whole); }).join();
    launch();  // 6: nothing

    cudaProfilerStart();
    launch();  // 7: the profiler
    cudaProfilerStop();
    launch();  // 8: nothing
    if (argc > 1) {
        nvtxRangePop();
        nvtxRangeEnd(12345);
        cudaProfilerStop();
        nvtxRangePushA("open");
        launch();  // 9: open
    }
    return cudaDeviceSynchronize();
}
