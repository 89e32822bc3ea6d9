// A grid of very many small blocks, in one and in three dimensions: block dispatch is most of the work.
//
// Usage: huge_launch [blocks]
#include "../common/workload.cuh"

using namespace workload;

__global__ void mark_blocks(unsigned* marks) {
    if (threadIdx.x == 0) marks[blockIdx.x] = blockIdx.x * 2654435761u;
}

// Only a few blocks have anything to do, and every block must still start and end.
__global__ void sparse_blocks(const unsigned* marks, unsigned* found, unsigned blocks) {
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    if (block >= blocks || block % 61 != 0) return;
    unsigned value = threadIdx.x < 8 ? marks[(block + threadIdx.x) % blocks] : 0;
    for (int distance = 4; distance > 0; distance /= 2) value ^= __shfl_xor_sync(0xffffffffu, value, distance);
    if (threadIdx.x == 0) atomicXor(found, value);
}

int main(int argc, char** argv) {
    unsigned blocks = argument(argc, argv, 1, 8192, 1 << 26);
    Buffer<unsigned> marks(blocks), found(1);
    found.clear();
    mark_blocks<<<blocks, 32>>>(marks);
    CHECK_LAUNCH();
    unsigned side = 1;
    while (side * side * side < blocks) side++;
    sparse_blocks<<<dim3(side, side, side), 32>>>(marks, found, blocks);
    CHECK_LAUNCH();
    std::vector<unsigned> got = marks.read();
    size_t wrong = 0;
    unsigned wanted = 0;
    for (unsigned block = 0; block < blocks; block++) {
        wrong += got[block] != block * 2654435761u;
        if (block % 61 == 0)
            for (unsigned lane = 0; lane < 8; lane++) wanted ^= (block + lane) % blocks * 2654435761u;
    }
    return verdict("huge_launch", wrong == 0 && found.read_one() == wanted, "%u and %u blocks, %zu marks wrong", blocks,
                   side * side * side, wrong);
}
