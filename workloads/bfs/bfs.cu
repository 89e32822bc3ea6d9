// Breadth-first search by levels, with a queue of the frontier that threads append to.
//
// Usage: bfs [nodes] [mean degree]
#include "../common/graph.cuh"

using namespace workload;

constexpr int THREADS = 256;
constexpr int UNSEEN = -1;

// One thread a node of the frontier; the thread that claims a neighbour puts it into the next frontier.
__global__ void expand_frontier(const int* offsets, const int* targets, const int* frontier, int frontier_size,
                                int* distances, int* next, int* next_size, int level) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= frontier_size) return;
    int node = frontier[i];
    for (int edge = offsets[node]; edge < offsets[node + 1]; edge++) {
        int neighbour = targets[edge];
        if (distances[neighbour] == UNSEEN && atomicCAS(&distances[neighbour], UNSEEN, level) == UNSEEN)
            next[atomicAdd(next_size, 1)] = neighbour;
    }
}

int main(int argc, char** argv) {
    int nodes = argument(argc, argv, 1, 4096);
    int degree = argument(argc, argv, 2, 6, 1024);
    Graph graph = skewed_graph(nodes, degree, 1);

    std::vector<int> wanted(nodes, UNSEEN);
    std::vector<int> queue{0};
    wanted[0] = 0;
    for (size_t head = 0; head < queue.size(); head++)
        for (int edge = graph.offsets[queue[head]]; edge < graph.offsets[queue[head] + 1]; edge++)
            if (wanted[graph.targets[edge]] == UNSEEN) {
                wanted[graph.targets[edge]] = wanted[queue[head]] + 1;
                queue.push_back(graph.targets[edge]);
            }

    std::vector<int> start(nodes, UNSEEN);
    start[0] = 0;
    Buffer<int> offsets(graph.offsets), targets(graph.targets), distances(start);
    Buffer<int> frontier_a(nodes), frontier_b(nodes), next_size(1);
    frontier_a.write_one(0);
    int* frontier = frontier_a;
    int* next = frontier_b;
    int size = 1;
    int level = 0;
    while (size > 0) {
        next_size.clear();
        level++;
        expand_frontier<<<blocks_for(size, THREADS), THREADS>>>(offsets, targets, frontier, size, distances, next,
                                                                next_size, level);
        CHECK_LAUNCH();
        size = next_size.read_one();
        std::swap(frontier, next);
    }
    size_t wrong = mismatches(distances.read(), wanted);
    return verdict("bfs", wrong == 0, "%d nodes, %d edges, %d levels, %zu wrong", nodes, graph.edges(), level, wrong);
}
