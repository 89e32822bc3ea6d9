// All-reduce over all GPUs of several simulated nodes, one process a node, without a library: GPUs of a node add each
// other's memory over their links, a share each; shares go round a ring of sockets from node to node; and every GPU
// gathers the shares of its node.
//
// Usage: all_reduce_of_nodes NODES GPUS [elements]      lockstep run --nodes NODES --gpus GPUS
#include "../../workloads/common/workload.cuh"

#include <string>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace workload;

constexpr int MOST_GPUS = 8, BLOCK = 128;

// The memory of every GPU of a node.
struct Node {
    unsigned* of[MOST_GPUS];
};

// Adds a share of what every GPU of the node has.
__global__ void reduce_share(Node values, unsigned* share, int gpus, int first, int count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at >= count) return;
    unsigned sum = 0;
    for (int gpu = 0; gpu < gpus; gpu++) sum += values.of[gpu][first + at];
    share[at] = sum;
}

__global__ void add(unsigned* share, const unsigned* more, int count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) share[at] += more[at];
}

// Puts the shares of all GPUs of the node behind each other.
__global__ void gather(Node shares, unsigned* result, int each, int count) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    if (at < count) result[at] = shares.of[at / each][at % each];
}

static int blocks(int count) { return (count + BLOCK - 1) / BLOCK; }

// Writes or reads all bytes; ends the process if the other end is gone.
static void whole(bool out, int file, void* bytes, size_t count) {
    for (size_t done = 0; done < count;) {
        char* at = static_cast<char*>(bytes) + done;
        ssize_t moved = out ? write(file, at, count - done) : read(file, at, count - done);
        if (moved <= 0) std::fprintf(stderr, "a node is gone\n"), std::exit(2);
        done += moved;
    }
}

static unsigned value(int rank, int at) { return 1000u * rank + at; }

// What the process of one node does, between the nodes before and after it in the ring.
static int all_reduce(int node, int nodes, int gpus, int count, int before, int after) {
    int each = count / gpus;
    size_t bytes = size_t(count) * sizeof(unsigned), share_bytes = size_t(each) * sizeof(unsigned);
    Node values, shares;
    std::vector<unsigned*> more(gpus), results(gpus);
    std::vector<unsigned> host(count), passing(each), wanted(count);
    for (int gpu = 0; gpu < gpus; gpu++) {
        CHECK(cudaSetDevice(gpu));
        for (int peer = 0; peer < gpus; peer++)
            if (peer != gpu) CHECK(cudaDeviceEnablePeerAccess(peer, 0));
        CHECK(cudaMalloc(&values.of[gpu], bytes));
        CHECK(cudaMalloc(&results[gpu], bytes));
        CHECK(cudaMalloc(&shares.of[gpu], share_bytes));
        CHECK(cudaMalloc(&more[gpu], share_bytes));
        for (int at = 0; at < count; at++) host[at] = value(node * gpus + gpu, at);
        CHECK(cudaMemcpy(values.of[gpu], host.data(), bytes, cudaMemcpyHostToDevice));
    }
    auto synchronize = [&] {
        for (int gpu = 0; gpu < gpus; gpu++) {
            CHECK(cudaSetDevice(gpu));
            CHECK(cudaDeviceSynchronize());
        }
    };
    for (int gpu = 0; gpu < gpus; gpu++) {
        CHECK(cudaSetDevice(gpu));
        reduce_share<<<blocks(each), BLOCK>>>(values, shares.of[gpu], gpus, gpu * each, each);
        CHECK_LAUNCH();
    }
    synchronize();
    for (int gpu = 0; gpu < gpus; gpu++) {
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaMemcpy(passing.data(), shares.of[gpu], share_bytes, cudaMemcpyDeviceToHost));
        // Every node sees the share of every other one pass.
        for (int step = 1; step < nodes; step++) {
            whole(true, after, passing.data(), share_bytes);
            whole(false, before, passing.data(), share_bytes);
            CHECK(cudaMemcpy(more[gpu], passing.data(), share_bytes, cudaMemcpyHostToDevice));
            add<<<blocks(each), BLOCK>>>(shares.of[gpu], more[gpu], each);
            CHECK_LAUNCH();
        }
    }
    synchronize();
    for (int gpu = 0; gpu < gpus; gpu++) {
        CHECK(cudaSetDevice(gpu));
        gather<<<blocks(count), BLOCK>>>(shares, results[gpu], each, count);
        CHECK_LAUNCH();
    }
    synchronize();
    for (int at = 0; at < count; at++)
        for (int rank = 0; rank < nodes * gpus; rank++) wanted[at] += value(rank, at);
    size_t wrong = 0;
    for (int gpu = 0; gpu < gpus; gpu++) {
        CHECK(cudaSetDevice(gpu));
        CHECK(cudaMemcpy(host.data(), results[gpu], bytes, cudaMemcpyDeviceToHost));
        wrong += mismatches(host, wanted);
    }
    return verdict("all_reduce_of_nodes", wrong == 0, "node %d of %d, %d GPUs each, %d elements, %zu wrong", node,
                   nodes, gpus, count, wrong);
}

int main(int argc, char** argv) {
    int nodes = argument(argc, argv, 1, 2), gpus = argument(argc, argv, 2, 2, MOST_GPUS);
    // Pipes hold what a step sends, so that all may send before they read.
    int count = argument(argc, argv, 3, 1024, 1 << 16) / gpus * gpus;
    // Socket i goes from node i to the next one.
    std::vector<int> ends(2 * nodes);
    for (int node = 0; node < nodes; node++)
        if (socketpair(AF_UNIX, SOCK_STREAM, 0, &ends[2 * node])) return 2;
    for (int node = 0; node < nodes; node++) {
        if (fork()) continue;
        setenv("LOCKSTEP_NODE", std::to_string(node).c_str(), 1);
        int after = ends[2 * node], before = ends[2 * ((node + nodes - 1) % nodes) + 1];
        for (int end : ends)
            if (end != after && end != before) close(end);
        std::exit(all_reduce(node, nodes, gpus, count, before, after));
    }
    for (int end : ends) close(end);
    bool failed = false;
    for (int node = 0, status; node < nodes; node++) {
        wait(&status);
        failed |= !WIFEXITED(status) || WEXITSTATUS(status) != 0;
    }
    return failed;
}
