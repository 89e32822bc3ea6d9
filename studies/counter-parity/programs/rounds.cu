// Contexts that come and go while others launch and capture, with results that tell a disturbance.
//
//   rounds [THREADS [ROUNDS]]      default 3 3
//
// Each thread makes a context, launches into two streams, captures and launches graphs of two different
// kernels, reads what the kernels added up, and lets the context go; then again. Prints what was
// launched; ends with 1 if a sum is wrong.
#include <thread>
#include <vector>

#include "check.cuh"

static const int BLOCKS = 66, THREADS = 64;

__global__ void plain(unsigned *sums) { sums[blockIdx.x * blockDim.x + threadIdx.x] += 1; }
__global__ void even(unsigned *sums) { sums[blockIdx.x * blockDim.x + threadIdx.x] += 100; }
__global__ void odd(unsigned *sums) { sums[blockIdx.x * blockDim.x + threadIdx.x] += 10000; }

static void round_trip(int index, int round) {
    CUdevice device;
    CUcontext context;
    CUctxCreateParams parameters = {};
    DRIVER(cuDeviceGet(&device, 0));
    DRIVER(cuCtxCreate(&context, &parameters, 0, device));
    cudaStream_t stream;
    unsigned *sums;
    CHECK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
    CHECK(cudaMalloc(&sums, BLOCKS * THREADS * sizeof(unsigned)));
    CHECK(cudaMemset(sums, 0, BLOCKS * THREADS * sizeof(unsigned)));
    CHECK(cudaDeviceSynchronize());
    plain<<<BLOCKS, THREADS, 0, stream>>>(sums);

    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal));
    even<<<BLOCKS, THREADS, 0, stream>>>(sums);
    odd<<<BLOCKS, THREADS, 0, stream>>>(sums);
    even<<<BLOCKS, THREADS, 0, stream>>>(sums);
    CHECK(cudaStreamEndCapture(stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    CHECK(cudaGraphLaunch(executable, stream));
    plain<<<BLOCKS, THREADS, 0, stream>>>(sums);
    CHECK(cudaGraphLaunch(executable, stream));
    CHECK(cudaStreamSynchronize(stream));

    std::vector<unsigned> read(BLOCKS * THREADS);
    CHECK(cudaMemcpy(read.data(), sums, read.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
    for (unsigned sum : read)
        if (sum != 2 + 2 * (2 * 100 + 10000)) {
            std::fprintf(stderr, "thread %d round %d: %u is wrong\n", index, round, sum);
            std::exit(1);
        }
    CHECK(cudaGraphExecDestroy(executable));
    CHECK(cudaGraphDestroy(graph));
    DRIVER(cuCtxDestroy(context));
}

int main(int argc, char **argv) {
    int threads = argc > 1 ? std::atoi(argv[1]) : 3;
    int rounds = argc > 2 ? std::atoi(argv[2]) : 3;
    DRIVER(cuInit(0));
    std::vector<std::thread> all;
    for (int i = 0; i < threads; i++)
        all.emplace_back([i, rounds] {
            for (int round = 0; round < rounds; round++)
                round_trip(i, round);
        });
    for (std::thread &thread : all)
        thread.join();
    int each = threads * rounds;
    std::printf("plain %d even %d odd %d\n", 2 * each, 4 * each, 2 * each);
    return 0;
}
