// Gathers over lists of neighbours, of which about half lie near and hit L1: a thread a particle, a warp a particle,
// through a second list, and with the reaction added at the neighbour.
//
// Usage: neighbour_gathers [particles]
#include "../common/workload.cuh"

using namespace workload;

constexpr int NEIGHBOURS = 24;
constexpr int THREADS = 128;

struct Place {
    int x, y, z, charge;
};

// Whole numbers, so that every order of summing gives the same.
__host__ __device__ inline int force(Place a, Place b) {
    int x = a.x - b.x, y = a.y - b.y, z = a.z - b.z, square = x * x + y * y + z * z;
    return square < (1 << 14) ? (a.charge * b.charge) / (1 + (square >> 4)) : square & 15;
}

__global__ void thread_a_particle(const Place* places, const int* lists, int count, int* sums) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Place own = places[i];
    int sum = 0;
    for (int k = 0; k < NEIGHBOURS; k++) sum += force(own, places[lists[size_t(k) * count + i]]);
    sums[i] = sum;
}

// Lists lie particle by particle here; lanes above the last neighbour idle.
__global__ void warp_a_particle(const Place* places, const int* rows, int count, int* sums) {
    int i = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (i >= count) return;
    int sum = lane < NEIGHBOURS ? force(places[i], places[rows[i * NEIGHBOURS + lane]]) : 0;
    for (int distance = 16; distance; distance /= 2) sum += __shfl_down_sync(0xffffffffu, sum, distance);
    if (lane == 0) sums[i] = sum;
}

__global__ void through_aliases(const Place* places, const int* lists, const int* alias, int count, int* sums) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Place own = places[i];
    int sum = 0;
    for (int k = 0; k < NEIGHBOURS / 2; k++) sum += force(own, places[alias[lists[size_t(k) * count + i]]]);
    sums[i] = sum;
}

__global__ void with_reactions(const Place* places, const int* lists, int count, int* sums) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Place own = places[i];
    int sum = 0;
    for (int k = 0; k < NEIGHBOURS / 4; k++) {
        int other = lists[size_t(k) * count + i], value = force(own, places[other]);
        sum += value;
        atomicAdd(&sums[other], -value);
    }
    atomicAdd(&sums[i], sum);
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 4096, 1 << 22);
    Random random(7);
    std::vector<Place> places(count);
    for (Place& place : places) place = {random.below(512), random.below(512), random.below(512), random.below(64) - 32};
    std::vector<int> lists(size_t(count) * NEIGHBOURS), rows(lists.size()), alias(count);
    for (int i = 0; i < count; i++) {
        alias[i] = (i + random.below(64)) % count;
        for (int k = 0; k < NEIGHBOURS; k++) {
            bool near = random.below(8) != 0;
            int other = near ? (i + random.below(256) + count - 128) % count : random.below(count);
            lists[size_t(k) * count + i] = rows[size_t(i) * NEIGHBOURS + k] = other;
        }
    }
    Buffer<Place> device_places(places);
    Buffer<int> device_lists(lists), device_rows(rows), device_alias(alias);
    Buffer<int> threads(count), warps(count), aliased(count), reacted(count);
    reacted.clear();
    int blocks = blocks_for(count, THREADS);
    thread_a_particle<<<blocks, THREADS>>>(device_places, device_lists, count, threads);
    warp_a_particle<<<blocks_for(size_t(count) * 32, THREADS), THREADS>>>(device_places, device_rows, count, warps);
    through_aliases<<<blocks, THREADS>>>(device_places, device_lists, device_alias, count, aliased);
    with_reactions<<<blocks, THREADS>>>(device_places, device_lists, count, reacted);
    CHECK_LAUNCH();
    std::vector<int> sums(count), through(count), reactions(count);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < NEIGHBOURS; k++) {
            int other = rows[size_t(i) * NEIGHBOURS + k], value = force(places[i], places[other]);
            sums[i] += value;
            if (k < NEIGHBOURS / 2) through[i] += force(places[i], places[alias[other]]);
            if (k < NEIGHBOURS / 4) reactions[i] += value, reactions[other] -= value;
        }
    size_t wrong = mismatches(threads.read(), sums) + mismatches(warps.read(), sums) +
                   mismatches(aliased.read(), through) + mismatches(reacted.read(), reactions);
    return verdict("neighbour_gathers", wrong == 0, "%d particles, %zu sums wrong", count, wrong);
}
