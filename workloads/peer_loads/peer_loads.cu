// Kernels read, write and count in the memory of another GPU, and hand data over while both run.
//
// Usage: peer_loads [elements [1]]      needs two GPUs or more: lockstep run --gpus 2
//
// With a 1 it ends with an access that peer access was not enabled for, which must be an illegal address.
#include "../common/workload.cuh"

using namespace workload;

// Reads what the peer has, writes the square there, and adds to a counter that all GPUs share.
extern "C" __global__ void square_there(const int* theirs, int* squares, unsigned* counter, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) {
        squares[i] = theirs[i] * theirs[i];
        atomicAdd_system(counter, 1u);
    }
}

// Tells the other GPU that data is there, or waits for it: both kernels run at the same time.
extern "C" __global__ void hand_over(volatile int* data, volatile int* flag, int* seen, bool sends) {
    if (sends) {
        *data = 42;
        __threadfence_system();
        *flag = 1;
    } else {
        while (*flag == 0) {}
        __threadfence_system();
        *seen = *data;
    }
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 8192);
    int gpus = 0;
    CHECK(cudaGetDeviceCount(&gpus));
    if (gpus < 2) return verdict("peer_loads", false, "needs two GPUs, found %d", gpus);
    for (int gpu = 0; gpu < 2; gpu++) {
        int possible = 0;
        CHECK(cudaDeviceCanAccessPeer(&possible, gpu, 1 - gpu));
        if (!possible) return verdict("peer_loads", false, "GPU %d cannot reach the other", gpu);
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaDeviceEnablePeerAccess(1 - gpu, 0));
        if (cudaDeviceEnablePeerAccess(1 - gpu, 0) != cudaErrorPeerAccessAlreadyEnabled) {
            return verdict("peer_loads", false, "peer access was enabled twice");
        }
        cudaGetLastError();
    }
    std::vector<int> values(count), wanted(count);
    for (int i = 0; i < count; i++) wanted[i] = (values[i] = i % 1000) * (i % 1000);
    size_t wrong = 0;
    unsigned *counter, counted = 0;
    CHECK(cudaSetDevice(0));
    CHECK(cudaMalloc(&counter, sizeof(unsigned)));
    CHECK(cudaMemset(counter, 0, sizeof(unsigned)));
    int *theirs[2], *squares[2];
    for (int gpu = 0; gpu < 2; gpu++) {
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaMalloc(&theirs[gpu], count * sizeof(int)));
        CHECK(cudaMalloc(&squares[gpu], count * sizeof(int)));
        CHECK(cudaMemcpy(theirs[gpu], values.data(), count * sizeof(int), cudaMemcpyHostToDevice));
    }
    for (int gpu = 0; gpu < 2; gpu++) {
        CHECK(cudaSetDevice(gpu));
        int other = 1 - gpu;
        square_there<<<blocks_for(count, 256), 256>>>(theirs[other], squares[other], counter, count);
        CHECK_LAUNCH();
    }
    for (int gpu = 0; gpu < 2; gpu++) {
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaDeviceSynchronize());
    }
    for (int gpu = 0; gpu < 2; gpu++) {
        std::vector<int> got(count);
        CHECK(cudaMemcpy(got.data(), squares[gpu], count * sizeof(int), cudaMemcpyDeviceToHost));
        wrong += mismatches(got, wanted);
    }
    CHECK(cudaMemcpy(&counted, counter, sizeof(unsigned), cudaMemcpyDeviceToHost));
    wrong += counted != 2u * count;

    int *mail, *seen, received = 0;
    CHECK(cudaSetDevice(0));
    CHECK(cudaMalloc(&mail, 256));
    CHECK(cudaMemset(mail, 0, 256));
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaSetDevice(1));
    CHECK(cudaMalloc(&seen, sizeof(int)));
    hand_over<<<1, 1>>>(mail, mail + 32, seen, false);
    CHECK_LAUNCH();
    CHECK(cudaSetDevice(0));
    hand_over<<<1, 1>>>(mail, mail + 32, nullptr, true);
    CHECK_LAUNCH();
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaSetDevice(1));
    CHECK(cudaMemcpy(&received, seen, sizeof(int), cudaMemcpyDeviceToHost));
    wrong += received != 42;

    if (argc > 2) {
        // Without leave the memory of the other GPU does not exist for a kernel.
        CHECK(cudaDeviceDisablePeerAccess(0));
        square_there<<<1, 32>>>(theirs[0], squares[1], counter, 32);
        wrong += cudaDeviceSynchronize() != cudaErrorIllegalAddress;
        // The other GPU goes on.
        CHECK(cudaSetDevice(0));
        square_there<<<1, 32>>>(theirs[0], squares[0], counter, 32);
        CHECK(cudaDeviceSynchronize());
    }
    return verdict("peer_loads", wrong == 0, "%d elements, %zu wrong", count, wrong);
}
