// Minimum spanning tree by Boruvka's rounds: every component picks its lightest outgoing edge, components join along
// them, and pointers are shortened until every node knows its component.
//
// Usage: mst [nodes] [extra edges]
#include <algorithm>
#include <numeric>

#include "../common/graph.cuh"

using namespace workload;

constexpr int THREADS = 128;
constexpr unsigned long long NONE = ~0ull;

__global__ void forget_choices(unsigned long long* lightest, int nodes) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node < nodes) lightest[node] = NONE;
}

// Weight in the upper half, edge below: the minimum is the lightest edge, and weights are all different.
__global__ void choose_lightest(const int* offsets, const int* targets, const int* weights, const int* component,
                                unsigned long long* lightest, int nodes) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes) return;
    int mine = component[node];
    unsigned long long best = NONE;
    for (int edge = offsets[node]; edge < offsets[node + 1]; edge++)
        if (component[targets[edge]] != mine) {
            unsigned long long choice = (unsigned long long)(weights[edge]) << 32 | unsigned(edge);
            best = choice < best ? choice : best;
        }
    if (best != NONE) atomicMin(&lightest[mine], best);
}

// Joins each component to the one its edge leads to. Two components that chose the same edge would form a
// circle: the one with the larger number keeps its choice, and only it counts the edge.
__global__ void join_components(const int* targets, const int* component, const unsigned long long* lightest, int* parent,
                                unsigned long long* weight, int* edges, int nodes) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes || component[node] != node) return;
    unsigned long long choice = lightest[node];
    if (choice == NONE) return;
    int other = component[targets[unsigned(choice)]];
    bool mutual = lightest[other] >> 32 == choice >> 32;
    if (mutual && node < other) return;
    parent[node] = other;
    atomicAdd(weight, choice >> 32);
    atomicAdd(edges, 1);
}

__global__ void shorten_pointers(int* component, int* parent, int nodes, int* changed) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes) return;
    int up = parent[node];
    int above = parent[up];
    if (up != above) {
        parent[node] = above;
        *changed = 1;
    }
    component[node] = above;
}

int main(int argc, char** argv) {
    int nodes = argument(argc, argv, 1, 1024);
    int extra = argument(argc, argv, 2, 3072);
    Graph graph = undirected_graph(nodes, extra, 1);

    // Kruskal on the host: edges by weight, joined while they connect.
    std::vector<int> by_weight(graph.edges());
    std::iota(by_weight.begin(), by_weight.end(), 0);
    std::sort(by_weight.begin(), by_weight.end(), [&](int a, int b) { return graph.weights[a] < graph.weights[b]; });
    std::vector<int> source(graph.edges());
    for (int node = 0; node < nodes; node++)
        for (int edge = graph.offsets[node]; edge < graph.offsets[node + 1]; edge++) source[edge] = node;
    std::vector<int> root(nodes);
    std::iota(root.begin(), root.end(), 0);
    auto find = [&](int node) {
        while (root[node] != node) node = root[node] = root[root[node]];
        return node;
    };
    unsigned long long wanted = 0;
    for (int edge : by_weight) {
        int a = find(source[edge]);
        int b = find(graph.targets[edge]);
        if (a != b) {
            root[a] = b;
            wanted += graph.weights[edge];
        }
    }

    std::vector<int> own(nodes);
    std::iota(own.begin(), own.end(), 0);
    Buffer<int> offsets(graph.offsets), targets(graph.targets), weights(graph.weights);
    Buffer<int> component(own), parent(own), changed(1), edges(1);
    Buffer<unsigned long long> lightest(nodes), weight(1);
    weight.clear();
    edges.clear();
    int blocks = blocks_for(nodes, THREADS);
    int rounds = 0;
    while (edges.read_one() < nodes - 1 && rounds < 64) {
        forget_choices<<<blocks, THREADS>>>(lightest, nodes);
        choose_lightest<<<blocks, THREADS>>>(offsets, targets, weights, component, lightest, nodes);
        join_components<<<blocks, THREADS>>>(targets, component, lightest, parent, weight, edges, nodes);
        CHECK_LAUNCH();
        do {
            changed.clear();
            shorten_pointers<<<blocks, THREADS>>>(component, parent, nodes, changed);
            CHECK_LAUNCH();
        } while (changed.read_one());
        rounds++;
    }
    unsigned long long got = weight.read_one();
    return verdict("mst", got == wanted && edges.read_one() == nodes - 1, "%d nodes, %d edges, %d rounds, weight %llu (wanted %llu)",
                   nodes, graph.edges() / 2, rounds, got, wanted);
}
