// The cheapest path through a grid, row by row: each launch advances several rows inside a tile whose halo shrinks.
//
// Usage: pathfinder [columns] [rows]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 256;
constexpr int ROWS = 8;  // rows a launch
constexpr int INNER = THREADS - 2 * ROWS;
constexpr int WALL = 1 << 28;

__global__ void advance_rows(const int* costs, const int* from, int* to, int columns, int first_row, int rows) {
    __shared__ int best[THREADS];
    int column = int(blockIdx.x) * INNER - ROWS + int(threadIdx.x);
    bool inside = column >= 0 && column < columns;
    best[threadIdx.x] = inside ? from[column] : WALL;
    __syncthreads();
    for (int row = 0; row < rows; row++) {
        int left = threadIdx.x > 0 ? best[threadIdx.x - 1] : WALL;
        int right = threadIdx.x < THREADS - 1 ? best[threadIdx.x + 1] : WALL;
        int cheapest = min(best[threadIdx.x], min(left, right));
        __syncthreads();
        if (inside) best[threadIdx.x] = cheapest + costs[(first_row + row) * columns + column];
        __syncthreads();
    }
    bool keeps = threadIdx.x >= ROWS && threadIdx.x < THREADS - ROWS;
    if (inside && keeps) to[column] = best[threadIdx.x];
}

int main(int argc, char** argv) {
    int columns = argument(argc, argv, 1, 4096);
    int rows = argument(argc, argv, 2, 24, 65536);
    std::vector<int> costs(size_t(rows) * columns);
    Random random(1);
    for (int& cost : costs) cost = random.below(10);

    std::vector<int> wanted(columns, 0), next(columns);
    for (int row = 0; row < rows; row++) {
        for (int c = 0; c < columns; c++) {
            int cheapest = wanted[c];
            if (c > 0) cheapest = std::min(cheapest, wanted[c - 1]);
            if (c < columns - 1) cheapest = std::min(cheapest, wanted[c + 1]);
            next[c] = cheapest + costs[size_t(row) * columns + c];
        }
        std::swap(wanted, next);
    }

    Buffer<int> device_costs(costs), first(columns), second(columns);
    first.clear();
    int* from = first;
    int* to = second;
    for (int row = 0; row < rows; row += ROWS) {
        advance_rows<<<blocks_for(columns, INNER), THREADS>>>(device_costs, from, to, columns, row,
                                                              std::min(ROWS, rows - row));
        CHECK_LAUNCH();
        std::swap(from, to);
    }
    std::vector<int> got(columns);
    CHECK(cudaMemcpy(got.data(), from, columns * sizeof(int), cudaMemcpyDeviceToHost));
    size_t wrong = mismatches(got, wanted);
    return verdict("pathfinder", wrong == 0, "%d columns, %d rows, %zu wrong", columns, rows, wrong);
}
