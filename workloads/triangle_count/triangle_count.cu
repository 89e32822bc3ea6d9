// Triangles of an undirected graph: a warp an edge walks the shorter neighbour list and searches the longer one.
//
// Usage: triangle_count [nodes] [extra edges]
#include <algorithm>

#include "../common/graph.cuh"

using namespace workload;

constexpr int THREADS = 128;

__device__ bool contains(const int* list, int length, int value) {
    int low = 0;
    while (low < length) {
        int middle = (low + length) / 2;
        if (list[middle] < value)
            low = middle + 1;
        else
            length = middle;
    }
    return list[low] == value;
}

// Lists hold only larger neighbours, in order, and end with a sentinel; each triangle is found once.
__global__ void count_triangles(const int* offsets, const int* targets, const int* edge_sources, int edges,
                                unsigned long long* total) {
    int edge = (blockIdx.x * blockDim.x + threadIdx.x) / 32;
    int lane = threadIdx.x % 32;
    if (edge >= edges) return;
    int a = edge_sources[edge];
    int b = targets[edge];
    int found = 0;
    if (b >= 0) {
        int a_length = offsets[a + 1] - offsets[a] - 1;
        int b_length = offsets[b + 1] - offsets[b] - 1;
        const int* walk = targets + (a_length < b_length ? offsets[a] : offsets[b]);
        const int* search = targets + (a_length < b_length ? offsets[b] : offsets[a]);
        int walk_length = min(a_length, b_length);
        int search_length = max(a_length, b_length);
        for (int i = lane; i < walk_length; i += 32) found += contains(search, search_length, walk[i]);
    }
    for (int distance = 16; distance > 0; distance /= 2) found += __shfl_xor_sync(0xffffffffu, found, distance);
    if (lane == 0 && found > 0) atomicAdd(total, (unsigned long long)found);
}

int main(int argc, char** argv) {
    int nodes = argument(argc, argv, 1, 256);
    int extra = argument(argc, argv, 2, 3000);
    Graph graph = undirected_graph(nodes, extra, 1);
    std::vector<int> offsets{0}, targets, sources;
    std::vector<std::vector<int>> larger(nodes);
    for (int node = 0; node < nodes; node++) {
        std::vector<int>& list = larger[node];
        for (int edge = graph.offsets[node]; edge < graph.offsets[node + 1]; edge++)
            if (graph.targets[edge] > node) list.push_back(graph.targets[edge]);
        std::sort(list.begin(), list.end());
        list.erase(std::unique(list.begin(), list.end()), list.end());
        targets.insert(targets.end(), list.begin(), list.end());
        targets.push_back(-1);
        sources.resize(targets.size(), node);
        offsets.push_back(static_cast<int>(targets.size()));
    }
    unsigned long long wanted = 0;
    for (int a = 0; a < nodes; a++)
        for (int b : larger[a]) {
            std::vector<int> common;
            std::set_intersection(larger[a].begin(), larger[a].end(), larger[b].begin(), larger[b].end(),
                                  std::back_inserter(common));
            wanted += common.size();
        }

    Buffer<int> device_offsets(offsets), device_targets(targets), device_sources(sources);
    Buffer<unsigned long long> total(1);
    total.clear();
    int edges = static_cast<int>(targets.size());
    count_triangles<<<blocks_for(size_t(edges) * 32, THREADS), THREADS>>>(device_offsets, device_targets, device_sources,
                                                                          edges, total);
    CHECK_LAUNCH();
    unsigned long long got = total.read_one();
    return verdict("triangle_count", got == wanted, "%d nodes, %d edges, %llu triangles (wanted %llu)", nodes,
                   edges - nodes, got, wanted);
}
