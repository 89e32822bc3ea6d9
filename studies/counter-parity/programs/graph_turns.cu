// Graphs that are made and launched while counting goes from one context to another and back.
//
//   graph_turns
//
// Two contexts of one thread take turns: a kernel in each, then a graph of three kernels is made in
// the first, whose turn it is not, and launched twice with a kernel of the second between; then the
// same with the roles changed. Prints what was launched.

#include "check.cuh"

__global__ void plain(float *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f; }
__global__ void node(float *out) { out[blockIdx.x * blockDim.x + threadIdx.x] = 2.0f; }

struct Side {
    CUcontext context;
    cudaStream_t stream;
    float *out;
};

static int plains = 0, nodes = 0;
static const int BLOCKS = 66;

static void launch(const Side &side) {
    DRIVER(cuCtxSetCurrent(side.context));
    plain<<<BLOCKS, 64, 0, side.stream>>>(side.out);
    plains++;
}

static cudaGraphExec_t make(const Side &side) {
    DRIVER(cuCtxSetCurrent(side.context));
    cudaGraph_t graph;
    cudaGraphExec_t executable;
    CHECK(cudaStreamBeginCapture(side.stream, cudaStreamCaptureModeThreadLocal));
    for (int i = 0; i < 3; i++)
        node<<<BLOCKS, 64, 0, side.stream>>>(side.out);
    CHECK(cudaStreamEndCapture(side.stream, &graph));
    CHECK(cudaGraphInstantiate(&executable, graph, 0));
    return executable;
}

static void launch(const Side &side, cudaGraphExec_t executable) {
    DRIVER(cuCtxSetCurrent(side.context));
    CHECK(cudaGraphLaunch(executable, side.stream));
    nodes += 3;
}

int main() {
    CUdevice device;
    DRIVER(cuInit(0));
    DRIVER(cuDeviceGet(&device, 0));
    Side sides[2];
    for (Side &side : sides) {
        CUctxCreateParams parameters = {};
        DRIVER(cuCtxCreate(&side.context, &parameters, 0, device));
        CHECK(cudaStreamCreateWithFlags(&side.stream, cudaStreamNonBlocking));
        CHECK(cudaMalloc(&side.out, BLOCKS * 64 * sizeof(float)));
        launch(side);
    }
    for (int turn = 0; turn < 2; turn++) {
        const Side &one = sides[turn], &other = sides[1 - turn];
        launch(other);
        cudaGraphExec_t executable = make(one);
        launch(one, executable);
        launch(other);
        launch(one, executable);
    }
    for (Side &side : sides) {
        DRIVER(cuCtxSetCurrent(side.context));
        CHECK(cudaDeviceSynchronize());
    }
    std::printf("plain %d node %d warps %d %d\n", plains, nodes, plains * BLOCKS * 2, nodes * BLOCKS * 2);
    return 0;
}
