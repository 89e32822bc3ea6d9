// Colours a graph by rounds: nodes whose priority is above that of all neighbours without a colour take the least colour
// that no neighbour has. Neighbours are gathered by a thread a node or by a warp a node.
//
// Usage: graph_colouring [nodes [rounds]]
#include "../common/graph.cuh"

using namespace workload;

constexpr int THREADS = 128;
constexpr int NONE = -1;

__host__ __device__ inline unsigned priority(int node) {
    unsigned value = unsigned(node) * 2654435761u;
    value = (value ^ value >> 15) * 2246822519u;
    return value ^ value >> 13;
}

__host__ __device__ inline bool before(int node, int other) {
    unsigned a = priority(node), b = priority(other);
    return a != b ? a > b : node > other;
}

// Reads colours of the round before, so that the result does not depend on the order of threads.
__global__ void colour_by_threads(const int* offsets, const int* targets, int nodes, const int* colours, int* next) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes) return;
    int own = colours[node];
    if (own == NONE) {
        bool first = true;
        unsigned used = 0;
        for (int edge = offsets[node]; edge < offsets[node + 1] && first; edge++) {
            int other = targets[edge], colour = colours[other];
            if (colour != NONE) used |= 1u << (colour & 31);
            else if (other != node && before(other, node)) first = false;
        }
        if (first) own = __ffs(~used) - 1;
    }
    next[node] = own;
}

__global__ void colour_by_warps(const int* offsets, const int* targets, int nodes, const int* colours, int* next) {
    int node = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (node >= nodes) return;
    int own = colours[node];
    if (own == NONE) {
        bool first = true;
        unsigned used = 0;
        for (int edge = offsets[node] + lane; edge < offsets[node + 1]; edge += 32) {
            int other = targets[edge], colour = colours[other];
            if (colour != NONE) used |= 1u << (colour & 31);
            else if (other != node && before(other, node)) first = false;
        }
        first = __all_sync(0xffffffffu, first);
        used = __reduce_or_sync(0xffffffffu, used);
        if (first) own = __ffs(~used) - 1;
    }
    if (lane == 0) next[node] = own;
}

__global__ void count_left(const int* colours, int nodes, int* left) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    int waiting = __syncthreads_count(node < nodes && colours[node] == NONE);
    if (threadIdx.x == 0 && waiting) atomicAdd(left, waiting);
}

// Edges whose ends have one colour.
__global__ void count_conflicts(const int* offsets, const int* targets, int nodes, const int* colours, int* conflicts) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= nodes || colours[node] == NONE) return;
    int found = 0;
    for (int edge = offsets[node]; edge < offsets[node + 1]; edge++)
        found += targets[edge] != node && colours[targets[edge]] == colours[node];
    if (found) atomicAdd(conflicts, found);
}

static std::vector<int> round_on_host(const Graph& graph, const std::vector<int>& colours) {
    std::vector<int> next = colours;
    for (int node = 0; node < graph.nodes(); node++) {
        if (colours[node] != NONE) continue;
        bool first = true;
        unsigned used = 0;
        for (int edge = graph.offsets[node]; edge < graph.offsets[node + 1]; edge++) {
            int other = graph.targets[edge];
            if (colours[other] != NONE) used |= 1u << (colours[other] & 31);
            else if (other != node && before(other, node)) first = false;
        }
        int colour = 0;
        while (used >> colour & 1) colour++;
        if (first) next[node] = colour;
    }
    return next;
}

int main(int argc, char** argv) {
    int nodes = argument(argc, argv, 1, 2000, 1 << 22), rounds = argument(argc, argv, 2, 4, 64);
    Graph graph = undirected_graph(nodes, nodes * 3, 9);
    std::vector<int> colours(nodes, NONE);
    Buffer<int> offsets(graph.offsets), targets(graph.targets), now(colours), next(nodes), left(rounds), conflicts(1);
    left.clear();
    conflicts.clear();
    std::vector<int> wanted_left(rounds, 0);
    int *from = now, *to = next;
    for (int round = 0; round < rounds; round++) {
        if (round % 2 == 0) colour_by_threads<<<blocks_for(nodes, THREADS), THREADS>>>(offsets, targets, nodes, from, to);
        else colour_by_warps<<<blocks_for(size_t(nodes) * 32, THREADS), THREADS>>>(offsets, targets, nodes, from, to);
        count_left<<<blocks_for(nodes, THREADS), THREADS>>>(to, nodes, left.get() + round);
        std::swap(from, to);
        colours = round_on_host(graph, colours);
        for (int colour : colours) wanted_left[round] += colour == NONE;
    }
    count_conflicts<<<blocks_for(nodes, THREADS), THREADS>>>(offsets, targets, nodes, from, conflicts);
    CHECK_LAUNCH();
    std::vector<int> found = (from == now.get() ? now : next).read();
    size_t wrong = mismatches(found, colours) + mismatches(left.read(), wanted_left);
    int clashes = conflicts.read_one();
    return verdict("graph_colouring", wrong == 0 && clashes == 0, "%d nodes, %d rounds, %zu wrong, %d edges of one colour",
                   nodes, rounds, wrong, clashes);
}
