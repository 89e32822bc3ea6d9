// Breadth-first search of a random graph, level by level, checked against a search on the host.
//
// Two kernels a level, and a node is marked as visited only by the second: what a thread does never
// depends on the order of threads, so every count repeats from run to run.
//
//   bfs [NODES [DEGREE [ROUNDS]]]      default 4000000 8 1
#include <queue>
#include <vector>

#include "check.cuh"

__global__ void expand(const int *starts, const int *neighbours, unsigned char *frontier, unsigned char *found,
                       const unsigned char *visited, int *level, int nodes) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes || !frontier[node])
        return;
    frontier[node] = 0;
    int next = level[node] + 1;
    for (int edge = starts[node]; edge < starts[node + 1]; edge++) {
        int neighbour = neighbours[edge];
        if (!visited[neighbour]) {
            level[neighbour] = next;
            found[neighbour] = 1;
        }
    }
}

__global__ void advance(unsigned char *frontier, unsigned char *found, unsigned char *visited, int *again,
                        int nodes) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes || !found[node])
        return;
    found[node] = 0;
    frontier[node] = 1;
    visited[node] = 1;
    *again = 1;
}

static unsigned long long state = 0x243f6a8885a308d3ull;

static unsigned draw() {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (unsigned)(state >> 32);
}

int main(int argc, char **argv) {
    int nodes = argc > 1 ? std::atoi(argv[1]) : 4000000;
    int degree = argc > 2 ? std::atoi(argv[2]) : 8;
    int rounds = argc > 3 ? std::atoi(argv[3]) : 1;
    std::vector<int> starts(nodes + 1), neighbours((size_t)nodes * degree);
    for (int node = 0; node <= nodes; node++)
        starts[node] = node * degree;
    for (size_t edge = 0; edge < neighbours.size(); edge++)
        neighbours[edge] = (int)(draw() % (unsigned)nodes);

    std::vector<int> wanted(nodes, -1);
    std::queue<int> waiting;
    wanted[0] = 0;
    waiting.push(0);
    while (!waiting.empty()) {
        int node = waiting.front();
        waiting.pop();
        for (int edge = starts[node]; edge < starts[node + 1]; edge++)
            if (wanted[neighbours[edge]] < 0) {
                wanted[neighbours[edge]] = wanted[node] + 1;
                waiting.push(neighbours[edge]);
            }
    }

    int *d_starts, *d_neighbours, *d_level, *d_again;
    unsigned char *frontier, *found, *visited;
    CHECK(cudaMalloc(&d_starts, starts.size() * sizeof(int)));
    CHECK(cudaMalloc(&d_neighbours, neighbours.size() * sizeof(int)));
    CHECK(cudaMalloc(&d_level, nodes * sizeof(int)));
    CHECK(cudaMalloc(&d_again, sizeof(int)));
    CHECK(cudaMalloc(&frontier, nodes));
    CHECK(cudaMalloc(&found, nodes));
    CHECK(cudaMalloc(&visited, nodes));
    CHECK(cudaMemcpy(d_starts, starts.data(), starts.size() * sizeof(int), cudaMemcpyHostToDevice));
    CHECK(cudaMemcpy(d_neighbours, neighbours.data(), neighbours.size() * sizeof(int), cudaMemcpyHostToDevice));

    int levels = 0;
    double begun = seconds();
    for (int round = 0; round < rounds; round++) {
        std::vector<int> level(nodes, -1);
        level[0] = 0;
        unsigned char one = 1;
        CHECK(cudaMemcpy(d_level, level.data(), nodes * sizeof(int), cudaMemcpyHostToDevice));
        CHECK(cudaMemset(frontier, 0, nodes));
        CHECK(cudaMemset(found, 0, nodes));
        CHECK(cudaMemset(visited, 0, nodes));
        CHECK(cudaMemcpy(frontier, &one, 1, cudaMemcpyHostToDevice));
        CHECK(cudaMemcpy(visited, &one, 1, cudaMemcpyHostToDevice));
        int again = 1, blocks = (nodes + 255) / 256;
        for (levels = 0; again; levels++) {
            again = 0;
            CHECK(cudaMemcpy(d_again, &again, sizeof(int), cudaMemcpyHostToDevice));
            expand<<<blocks, 256>>>(d_starts, d_neighbours, frontier, found, visited, d_level, nodes);
            advance<<<blocks, 256>>>(frontier, found, visited, d_again, nodes);
            CHECK(cudaGetLastError());
            CHECK(cudaMemcpy(&again, d_again, sizeof(int), cudaMemcpyDeviceToHost));
        }
        CHECK(cudaMemcpy(level.data(), d_level, nodes * sizeof(int), cudaMemcpyDeviceToHost));
        for (int node = 0; node < nodes; node++)
            if (level[node] != wanted[node]) {
                std::fprintf(stderr, "node %d is at level %d, not %d\n", node, level[node], wanted[node]);
                return 1;
            }
    }
    std::printf("bfs %d nodes, %d levels, %d rounds, %.6f s, verified\n", nodes, levels, rounds, seconds() - begun);
    return 0;
}
