// PageRank, pushing each node's share along its edges with float atomics, and pulling along reversed edges.
//
// Usage: pagerank [nodes] [mean degree] [iterations]
#include "../common/graph.cuh"

using namespace workload;

constexpr int THREADS = 128;
constexpr float DAMPING = 0.85f;

__global__ void push_shares(const int* offsets, const int* targets, const float* rank, float* next, int nodes) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes) return;
    int first = offsets[node];
    int last = offsets[node + 1];
    float share = rank[node] / (last - first);
    for (int edge = first; edge < last; edge++) atomicAdd(&next[targets[edge]], share);
}

__global__ void pull_shares(const int* in_offsets, const int* sources, const int* out_offsets, const float* rank,
                            float* next, int nodes) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes) return;
    float sum = 0.0f;
    for (int edge = in_offsets[node]; edge < in_offsets[node + 1]; edge++) {
        int source = sources[edge];
        sum += rank[source] / (out_offsets[source + 1] - out_offsets[source]);
    }
    next[node] = sum;
}

__global__ void damp(float* rank, float* next, int nodes) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes) return;
    rank[node] = (1.0f - DAMPING) + DAMPING * next[node];
    next[node] = 0.0f;
}

int main(int argc, char** argv) {
    int nodes = argument(argc, argv, 1, 2048);
    int degree = argument(argc, argv, 2, 6, 1024);
    int iterations = argument(argc, argv, 3, 3);
    Graph graph = skewed_graph(nodes, degree, 1);
    std::vector<int> in_offsets(nodes + 1, 0), sources(graph.edges());
    for (int target : graph.targets) in_offsets[target + 1]++;
    for (int node = 0; node < nodes; node++) in_offsets[node + 1] += in_offsets[node];
    std::vector<int> next_slot(in_offsets.begin(), in_offsets.end() - 1);
    for (int node = 0; node < nodes; node++)
        for (int edge = graph.offsets[node]; edge < graph.offsets[node + 1]; edge++)
            sources[next_slot[graph.targets[edge]]++] = node;

    // Ranks are scaled by the number of nodes: their mean is 1.
    std::vector<float> ones(nodes, 1.0f);
    std::vector<double> wanted(nodes, 1.0), incoming(nodes);
    for (int i = 0; i < iterations; i++) {
        std::fill(incoming.begin(), incoming.end(), 0.0);
        for (int node = 0; node < nodes; node++)
            for (int edge = graph.offsets[node]; edge < graph.offsets[node + 1]; edge++)
                incoming[graph.targets[edge]] += wanted[node] / (graph.offsets[node + 1] - graph.offsets[node]);
        for (int node = 0; node < nodes; node++) wanted[node] = 0.15 + 0.85 * incoming[node];
    }

    Buffer<int> offsets(graph.offsets), targets(graph.targets), device_in(in_offsets), device_sources(sources);
    Buffer<float> rank(ones), next(nodes);
    int blocks = blocks_for(nodes, THREADS);
    double errors[2];
    for (int pull = 0; pull < 2; pull++) {
        rank.write(ones);
        next.clear();
        for (int i = 0; i < iterations; i++) {
            if (pull)
                pull_shares<<<blocks, THREADS>>>(device_in, device_sources, offsets, rank, next, nodes);
            else
                push_shares<<<blocks, THREADS>>>(offsets, targets, rank, next, nodes);
            damp<<<blocks, THREADS>>>(rank, next, nodes);
            CHECK_LAUNCH();
        }
        errors[pull] = worst_error(rank.read(), wanted);
    }
    return verdict("pagerank", errors[0] < 1e-4 && errors[1] < 1e-4,
                   "%d nodes, %d edges, %d iterations, worst error %.2e push, %.2e pull", nodes, graph.edges(), iterations,
                   errors[0], errors[1]);
}
