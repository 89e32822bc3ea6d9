// Latency: chains of dependent loads over a random cycle, by one thread, by one warp along one chain each, and
// through shared memory.
//
// Usage: pointer_chase [kilobytes] [steps]
#include "../common/workload.cuh"

using namespace workload;

constexpr int STRIDE = 32;  // words between links: a line each
constexpr int SHARED_LINKS = 1024;

__global__ void chase_one(const unsigned* next, unsigned start, int steps, unsigned* end) {
    unsigned at = start;
    for (int i = 0; i < steps; i++) at = next[at];
    *end = at;
}

__global__ void chase_warp(const unsigned* next, const unsigned* starts, int steps, unsigned* ends) {
    unsigned at = starts[threadIdx.x];
    for (int i = 0; i < steps; i++) at = next[at];
    ends[threadIdx.x] = at;
}

__global__ void chase_shared(const unsigned* links, int steps, unsigned* end) {
    __shared__ unsigned next[SHARED_LINKS];
    for (int i = threadIdx.x; i < SHARED_LINKS; i += blockDim.x) next[i] = links[i];
    __syncthreads();
    if (threadIdx.x != 0) return;
    unsigned at = 0;
    for (int i = 0; i < steps; i++) at = next[at];
    *end = at;
}

// One cycle through all links in random order (Sattolo's shuffle); links are `stride` words apart.
static std::vector<unsigned> random_cycle(int links, int stride, uint64_t seed) {
    std::vector<unsigned> order(links), next(size_t(links) * stride, 0);
    for (int i = 0; i < links; i++) order[i] = i;
    Random random(seed);
    for (int i = links - 1; i > 0; i--) std::swap(order[i], order[random.below(i)]);
    for (int i = 0; i < links; i++) next[size_t(order[i]) * stride] = order[(i + 1) % links] * stride;
    return next;
}

int main(int argc, char** argv) {
    int kilobytes = argument(argc, argv, 1, 256, 1 << 22);
    int steps = argument(argc, argv, 2, 2000);
    int links = std::max(64, int(size_t(kilobytes) * 1024 / (STRIDE * sizeof(unsigned))));
    std::vector<unsigned> next = random_cycle(links, STRIDE, 1), shared_next = random_cycle(SHARED_LINKS, 1, 2);
    std::vector<unsigned> starts(32), wanted(32);
    auto follow = [&](const std::vector<unsigned>& table, unsigned at) {
        for (int i = 0; i < steps; i++) at = table[at];
        return at;
    };
    for (int lane = 0; lane < 32; lane++) {
        starts[lane] = unsigned(lane) * (links / 32) * STRIDE;
        wanted[lane] = follow(next, starts[lane]);
    }
    Buffer<unsigned> device_next(next), device_shared(shared_next), device_starts(starts), one(1), warp(32), shared(1);
    chase_one<<<1, 1>>>(device_next, 0, steps, one);
    chase_warp<<<1, 32>>>(device_next, device_starts, steps, warp);
    chase_shared<<<1, 128>>>(device_shared, steps, shared);
    CHECK_LAUNCH();
    bool passed = one.read_one() == wanted[0] && mismatches(warp.read(), wanted) == 0 &&
                  shared.read_one() == follow(shared_next, 0);
    return verdict("pointer_chase", passed, "%d links of 128 bytes, %d steps, end %u", links, steps, one.read_one());
}
