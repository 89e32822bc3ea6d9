// Queens on a board by search: with a stack in a local array, by true recursion, and through a table of function
// pointers. Calls, local memory and very uneven work.
//
// Usage: n_queens [board size, 4 to 14]
#include "../common/workload.cuh"

using namespace workload;

// The state of a search: columns and diagonals that are attacked in the next row.
struct Board {
    unsigned columns, left, right;
    __host__ __device__ Board place(unsigned bit) const {
        return {columns | bit, (left | bit) << 1, (right | bit) >> 1};
    }
    __host__ __device__ unsigned free(unsigned all) const { return all & ~(columns | left | right); }
};

__host__ __device__ inline int count_iterative(Board start, unsigned all) {
    Board stack[16];
    unsigned open[16];
    int depth = 0;
    int found = 0;
    stack[0] = start;
    open[0] = start.free(all);
    while (depth >= 0) {
        if (stack[depth].columns == all) {
            found++;
            depth--;
        } else if (open[depth] == 0) {
            depth--;
        } else {
            unsigned bit = open[depth] & -open[depth];
            open[depth] ^= bit;
            stack[depth + 1] = stack[depth].place(bit);
            open[depth + 1] = stack[depth + 1].free(all);
            depth++;
        }
    }
    return found;
}

__host__ __device__ __noinline__ int count_recursive(Board board, unsigned all) {
    if (board.columns == all) return 1;
    int found = 0;
    for (unsigned open = board.free(all); open != 0; open &= open - 1) found += count_recursive(board.place(open & -open), all);
    return found;
}

// The first two rows are fixed by the thread: size * size starts, those that attack each other are empty.
__host__ __device__ inline bool start_of(int index, int size, Board* board) {
    unsigned all = (1u << size) - 1;
    *board = Board{0, 0, 0}.place(1u << index % size);
    unsigned second = 1u << index / size;
    if (!(board->free(all) & second)) return false;
    *board = board->place(second);
    return true;
}

__global__ void queens_iterative(int size, int* found) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= size * size) return;
    Board board;
    found[index] = start_of(index, size, &board) ? count_iterative(board, (1u << size) - 1) : 0;
}

__global__ void queens_recursive(int size, int* found) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index >= size * size) return;
    Board board;
    found[index] = start_of(index, size, &board) ? count_recursive(board, (1u << size) - 1) : 0;
}

typedef unsigned (*Operation)(unsigned);
__device__ __noinline__ unsigned add_seven(unsigned x) { return x + 7; }
__device__ __noinline__ unsigned times_five(unsigned x) { return x * 5; }
__device__ __noinline__ unsigned fold(unsigned x) { return x ^ (x >> 4); }
__device__ Operation operations[3] = {add_seven, times_five, fold};

__global__ void indirect_calls(unsigned* values, int rounds) {
    unsigned value = threadIdx.x;
    for (int round = 0; round < rounds; round++) value = operations[(threadIdx.x + round) % 3](value);
    values[threadIdx.x] = value;
}

int main(int argc, char** argv) {
    int size = argument(argc, argv, 1, 7, 14);
    if (size < 4) size = 4;
    const int solutions[] = {0, 1, 0, 0, 2, 10, 4, 40, 92, 352, 724, 2680, 14200, 73712, 365596};
    int starts = size * size;
    Buffer<int> iterative(starts), recursive(starts);
    CHECK(cudaDeviceSetLimit(cudaLimitStackSize, 4096));
    queens_iterative<<<blocks_for(starts, 64), 64>>>(size, iterative);
    queens_recursive<<<blocks_for(starts, 64), 64>>>(size, recursive);
    CHECK_LAUNCH();
    long totals[2] = {};
    for (int found : iterative.read()) totals[0] += found;
    for (int found : recursive.read()) totals[1] += found;

    Buffer<unsigned> values(64);
    indirect_calls<<<1, 64>>>(values, 12);
    CHECK_LAUNCH();
    std::vector<unsigned> wanted(64);
    for (unsigned t = 0; t < 64; t++) {
        wanted[t] = t;
        for (unsigned round = 0; round < 12; round++) {
            unsigned x = wanted[t];
            unsigned which = (t + round) % 3;
            wanted[t] = which == 0 ? x + 7 : which == 1 ? x * 5 : x ^ (x >> 4);
        }
    }
    size_t wrong = mismatches(values.read(), wanted);
    return verdict("n_queens", totals[0] == solutions[size] && totals[1] == solutions[size] && wrong == 0,
                   "%d queens, %ld and %ld solutions (wanted %d), %zu indirect calls wrong", size, totals[0], totals[1],
                   solutions[size], wrong);
}
