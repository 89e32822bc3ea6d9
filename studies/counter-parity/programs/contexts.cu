// Several contexts, threads and streams at once, every way to launch, with counts known beforehand.
//
//   contexts [CONTEXTS [LAUNCHES [ITERATIONS [one]]]]      default 4 40 20000
//
// Context i is made and used by thread i, which launches kernel number i: half of the launches
// plainly, a quarter through cudaLaunchKernelEx, a quarter as a graph of two kernels each. A warp of
// kernel i does i + 1 quarters of the work. With `one`, the threads share one context, each in a
// stream of its own. Prints for each thread what was launched.
#include <thread>
#include <vector>

#include "check.cuh"

__device__ float work(int iterations) {
    float x = threadIdx.x * 1e-3f;
    for (int i = 0; i < iterations; i++)
        x = fmaf(x, 0.999f, 0.001f);
    return x;
}

__global__ void first(float *out, int iterations) { out[blockIdx.x * blockDim.x + threadIdx.x] = work(iterations); }
__global__ void second(float *out, int iterations) { out[blockIdx.x * blockDim.x + threadIdx.x] = work(iterations); }
__global__ void third(float *out, int iterations) { out[blockIdx.x * blockDim.x + threadIdx.x] = work(iterations); }
__global__ void fourth(float *out, int iterations) { out[blockIdx.x * blockDim.x + threadIdx.x] = work(iterations); }

typedef void (*Kernel)(float *, int);
static const Kernel kernels[] = {first, second, third, fourth};
static const char *names[] = {"first", "second", "third", "fourth"};

static void use(int index, int launches, int iterations, bool one) {
    CUdevice device;
    CUcontext context;
    iterations = iterations * (index % 4 + 1) / 4;
    DRIVER(cuDeviceGet(&device, 0));
    CUctxCreateParams parameters = {};
    if (one)
        CHECK(cudaSetDevice(0));
    else
        DRIVER(cuCtxCreate(&context, &parameters, 0, device));
    cudaStream_t stream;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    int blocks = 33 * (index + 1);
    float *out;
    CHECK(cudaMalloc(&out, blocks * 128 * sizeof(float)));
    Kernel kernel = kernels[index % 4];
    int launched = 0;

    for (int i = 0; i < launches / 2; i++, launched++)
        kernel<<<blocks, 128, 0, stream>>>(out, iterations);

    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(blocks);
    config.blockDim = dim3(128);
    config.stream = stream;
    for (int i = 0; i < launches / 4; i++, launched++)
        CHECK(cudaLaunchKernelEx(&config, kernel, out, iterations));

    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    kernel<<<blocks, 128, 0, stream>>>(out, iterations);
    kernel<<<blocks, 128, 0, stream>>>(out, iterations);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    for (int i = 0; i < launches / 8; i++, launched += 2)
        CHECK(cudaGraphLaunch(executable, stream));

    CHECK(cudaStreamSynchronize(stream));
    std::printf("context %d kernel %s launches %d warps %d\n", index, names[index % 4], launched,
                launched * blocks * 4);
    if (!one)
        DRIVER(cuCtxDestroy(context));
}

int main(int argc, char **argv) {
    int contexts = argc > 1 ? std::atoi(argv[1]) : 4;
    int launches = argc > 2 ? std::atoi(argv[2]) : 40;
    int iterations = argc > 3 ? std::atoi(argv[3]) : 20000;
    bool one = argc > 4;
    DRIVER(cuInit(0));
    std::vector<std::thread> threads;
    for (int i = 0; i < contexts; i++)
        threads.emplace_back(use, i, launches, iterations, one);
    for (std::thread &thread : threads)
        thread.join();
    return 0;
}
