// Single-source shortest paths: nodes whose distance improved relax their edges, until none improves.
//
// Usage: sssp [nodes] [mean degree]
#include <queue>

#include "../common/graph.cuh"

using namespace workload;

constexpr int THREADS = 256;
constexpr int FAR = 0x3fffffff;

// Distances only shrink, so a race with another relaxation costs a round, never the answer.
__global__ void relax_edges(const int* offsets, const int* targets, const int* weights, int* distances, const int* active,
                            int* improved, int nodes) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes || !active[node]) return;
    int distance = distances[node];
    for (int edge = offsets[node]; edge < offsets[node + 1]; edge++) {
        int target = targets[edge];
        int candidate = distance + weights[edge];
        if (candidate < atomicMin(&distances[target], candidate)) improved[target] = 1;
    }
}

// Takes over what improved and says whether anything did.
__global__ void next_round(int* active, int* improved, int* any, int nodes) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    int go_on = node < nodes ? improved[node] : 0;
    if (node < nodes) {
        active[node] = go_on;
        improved[node] = 0;
    }
    if (__syncthreads_or(go_on) && threadIdx.x == 0) *any = 1;
}

int main(int argc, char** argv) {
    int nodes = argument(argc, argv, 1, 2048);
    int degree = argument(argc, argv, 2, 6, 1024);
    Graph graph = skewed_graph(nodes, degree, 1);

    std::vector<int> wanted(nodes, FAR);
    using Item = std::pair<int, int>;
    std::priority_queue<Item, std::vector<Item>, std::greater<Item>> queue;
    wanted[0] = 0;
    queue.push({0, 0});
    while (!queue.empty()) {
        auto [distance, node] = queue.top();
        queue.pop();
        if (distance > wanted[node]) continue;
        for (int edge = graph.offsets[node]; edge < graph.offsets[node + 1]; edge++) {
            int candidate = distance + graph.weights[edge];
            if (candidate < wanted[graph.targets[edge]]) {
                wanted[graph.targets[edge]] = candidate;
                queue.push({candidate, graph.targets[edge]});
            }
        }
    }

    std::vector<int> start(nodes, FAR), first(nodes, 0);
    start[0] = 0;
    first[0] = 1;
    Buffer<int> offsets(graph.offsets), targets(graph.targets), weights(graph.weights), distances(start), active(first);
    Buffer<int> improved(nodes), any(1);
    improved.clear();
    int rounds = 0;
    do {
        any.clear();
        int blocks = blocks_for(nodes, THREADS);
        relax_edges<<<blocks, THREADS>>>(offsets, targets, weights, distances, active, improved, nodes);
        CHECK_LAUNCH();
        next_round<<<blocks, THREADS>>>(active, improved, any, nodes);
        CHECK_LAUNCH();
        rounds++;
    } while (any.read_one() && rounds <= nodes);
    size_t wrong = mismatches(distances.read(), wanted);
    return verdict("sssp", wrong == 0, "%d nodes, %d edges, %d rounds, %zu wrong", nodes, graph.edges(), rounds, wrong);
}
