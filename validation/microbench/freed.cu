// Reads of 2 GiB after memory was freed: a real driver clears freed memory in the background, and reads share DRAM with it.
//
// Prints `state,WHAT,GB/s with 33, 132, 264, 528 and 1056 blocks`, `footprints,WHAT,MIB:33 BLOCKS:264 BLOCKS,...` right after
// it (264 blocks first, from the second footprint on later than the state), and `within,GIB,...`: 2 GiB inside 32 GiB.
#include "common.cuh"
#include "read_once.cuh"

__global__ void touch(char* memory, size_t stride, size_t count) {
    size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x;
    if (i < count) memory[i * stride] = 1;
}

static cudaEvent_t begin, end;
static float* out;

// The best of three, each behind a launch of the same kind.
double rate(const char* memory, size_t bytes, int blocks) {
    double best = 0;
    for (int attempt = 0; attempt < 3; attempt++) {
        auto data = reinterpret_cast<const float4*>(memory);
        read_once<<<blocks, 512>>>(data, out, bytes / 16);
        CHECK(cudaEventRecord(begin));
        read_once<<<blocks, 512>>>(data, out, bytes / 16);
        CHECK(cudaEventRecord(end));
        CHECK(cudaEventSynchronize(end));
        float time;
        CHECK(cudaEventElapsedTime(&time, begin, end));
        best = std::max(best, double(bytes) / time / 1e6);
    }
    return best;
}

void state(const char* name) {
    char *memory, *other;
    const size_t all = 2ull << 30;
    CHECK(cudaMalloc(&memory, all));
    CHECK(cudaMalloc(&other, all));
    CHECK(cudaMemset(memory, 1, all));
    std::printf("state,%s", name);
    for (int blocks : {33, 132, 264, 528, 1056}) std::printf(",%.0f", rate(memory, all, blocks));
    std::printf("\nfootprints,%s", name);
    for (size_t mebibytes : {128, 256, 512, 1024, 2048}) {
        double many = rate(memory, mebibytes << 20, 264), few = rate(memory, mebibytes << 20, 33);
        std::printf(",%zu:%.0f:%.0f", mebibytes, few, many);
    }
    std::printf("\n");
    std::fflush(stdout);
    CHECK(cudaFree(memory));
    CHECK(cudaFree(other));
}

// Takes and frees so much.
void pass(size_t bytes) {
    char* memory;
    CHECK(cudaMalloc(&memory, bytes));
    CHECK(cudaFree(memory));
}

int main() {
    warm_up();
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaMalloc(&out, 64));
    state("fresh");
    for (size_t gibibytes : {1, 4, 16, 32}) {
        pass(gibibytes << 30);
        state(text("after %zu GiB", gibibytes).c_str());
    }
    char* large;
    CHECK(cudaMalloc(&large, 32ull << 30));
    touch<<<64, 256>>>(large, 2 << 20, 16384);
    CHECK(cudaDeviceSynchronize());
    for (size_t at : {0, 2, 8, 16, 30}) {
        std::printf("within,%zu", at);
        for (int blocks : {33, 132, 264, 528}) std::printf(",%.0f", rate(large + (at << 30), 2ull << 30, blocks));
        std::printf("\n");
    }
    CHECK(cudaFree(large));
    state("after 32 GiB touched");
    std::vector<char*> pieces(2048);
    for (char*& piece : pieces) CHECK(cudaMalloc(&piece, 2 << 20));
    for (size_t i = 0; i < pieces.size(); i += 2) CHECK(cudaFree(pieces[i]));
    state("holes of 2 MiB");
    for (size_t i = 1; i < pieces.size(); i += 2) CHECK(cudaFree(pieces[i]));
    state("after them");
    for (size_t mebibytes : {8, 20, 30, 40, 60, 128}) pass(mebibytes << 20), pass(mebibytes << 20);
    state("after 8 to 128 MiB");
}
