// Reproducible sparse graphs in compressed rows, for the graph workloads.
#pragma once

#include "workload.cuh"

namespace workload {

// Neighbours of node `n` are `targets[offsets[n] .. offsets[n + 1]]`, with `weights` beside them.
struct Graph {
    std::vector<int> offsets;
    std::vector<int> targets;
    std::vector<int> weights;
    int nodes() const { return static_cast<int>(offsets.size()) - 1; }
    int edges() const { return static_cast<int>(targets.size()); }
};

// Directed, with a skewed degree: few nodes have many neighbours. A ring of edges keeps every node reachable.
inline Graph skewed_graph(int nodes, int mean_degree, uint64_t seed) {
    Random random(seed);
    Graph graph;
    graph.offsets.push_back(0);
    for (int node = 0; node < nodes; node++) {
        // Mean of 1 + (spread of a heavy tail): one node in sixteen takes eight times the rest.
        int degree = 1 + random.below(std::max(1, mean_degree));
        if (random.below(16) == 0) degree += mean_degree * 6;
        graph.targets.push_back((node + 1) % nodes);
        graph.weights.push_back(64 + random.below(64));
        for (int edge = 1; edge < degree; edge++) {
            graph.targets.push_back(random.below(nodes));
            graph.weights.push_back(1 + random.below(100));
        }
        graph.offsets.push_back(graph.edges());
    }
    return graph;
}

// Undirected (each edge stands in both rows with one weight, all weights different), connected by a ring.
inline Graph undirected_graph(int nodes, int extra_edges, uint64_t seed) {
    Random random(seed);
    struct Edge {
        int a, b, weight;
    };
    std::vector<Edge> edges;
    for (int node = 0; node < nodes; node++) edges.push_back({node, (node + 1) % nodes, 0});
    for (int i = 0; i < extra_edges; i++) {
        int a = random.below(nodes);
        int b = random.below(nodes);
        if (a != b) edges.push_back({a, b, 0});
    }
    // A random permutation of 1..edges as weights: a minimum spanning tree is then unique.
    for (size_t i = 0; i < edges.size(); i++) edges[i].weight = static_cast<int>(i) + 1;
    for (size_t i = edges.size() - 1; i > 0; i--)
        std::swap(edges[i].weight, edges[random.below(static_cast<int>(i) + 1)].weight);

    Graph graph;
    graph.offsets.assign(nodes + 1, 0);
    for (const Edge& edge : edges) {
        graph.offsets[edge.a + 1]++;
        graph.offsets[edge.b + 1]++;
    }
    for (int node = 0; node < nodes; node++) graph.offsets[node + 1] += graph.offsets[node];
    graph.targets.resize(edges.size() * 2);
    graph.weights.resize(edges.size() * 2);
    std::vector<int> next(graph.offsets.begin(), graph.offsets.end() - 1);
    for (const Edge& edge : edges) {
        graph.targets[next[edge.a]] = edge.b;
        graph.weights[next[edge.a]++] = edge.weight;
        graph.targets[next[edge.b]] = edge.a;
        graph.weights[next[edge.b]++] = edge.weight;
    }
    return graph;
}

}  // namespace workload
