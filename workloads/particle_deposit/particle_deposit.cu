// Particles and a mesh: charge goes to the four corners of a cell by atomics of global memory, through tiles of shared
// memory, by sorted runs that are added up first; and fields are read back at the particles.
//
// Usage: particle_deposit [particles]
#include "../common/workload.cuh"

using namespace workload;

constexpr int SIDE = 128;   // cells of the mesh in a row
constexpr int TILE = 16;    // cells of a tile in a row
constexpr int FRACTION = 16;
constexpr int THREADS = 128;

struct Particle {
    unsigned short x, y;  // in fractions of a cell
    int charge;
};

// What a corner of the cell receives, in whole numbers.
__host__ __device__ inline int share(Particle particle, int right, int below) {
    int x = particle.x % FRACTION, y = particle.y % FRACTION;
    return particle.charge * (right ? x : FRACTION - x) * (below ? y : FRACTION - y);
}
__host__ __device__ inline int corner(Particle particle, int right, int below) {
    return (particle.y / FRACTION + below) * (SIDE + 1) + particle.x / FRACTION + right;
}

__global__ void deposit_everywhere(const Particle* particles, int count, int* mesh) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Particle own = particles[i];
    for (int k = 0; k < 4; k++) atomicAdd(&mesh[corner(own, k & 1, k >> 1)], share(own, k & 1, k >> 1));
}

// Particles of a block's tile lie together: a copy of the tile's corners in shared memory takes them.
__global__ void deposit_by_tile(const Particle* particles, const int* begins, int* mesh) {
    __shared__ int tile[(TILE + 1) * (TILE + 1)];
    for (int k = threadIdx.x; k < (TILE + 1) * (TILE + 1); k += THREADS) tile[k] = 0;
    __syncthreads();
    int left = blockIdx.x % (SIDE / TILE) * TILE, top = blockIdx.x / (SIDE / TILE) * TILE;
    for (int i = begins[blockIdx.x] + threadIdx.x; i < begins[blockIdx.x + 1]; i += THREADS) {
        Particle own = particles[i];
        int x = own.x / FRACTION - left, y = own.y / FRACTION - top;
        for (int k = 0; k < 4; k++) atomicAdd(&tile[(y + (k >> 1)) * (TILE + 1) + x + (k & 1)], share(own, k & 1, k >> 1));
    }
    __syncthreads();
    for (int k = threadIdx.x; k < (TILE + 1) * (TILE + 1); k += THREADS)
        if (tile[k]) atomicAdd(&mesh[(top + k / (TILE + 1)) * (SIDE + 1) + left + k % (TILE + 1)], tile[k]);
}

// A thread adds up a stretch of particles and writes when the corner changes.
__global__ void deposit_by_runs(const Particle* particles, int count, int each, int* mesh) {
    int first = (blockIdx.x * blockDim.x + threadIdx.x) * each;
    int sum = 0, at = -1;
    for (int i = first; i < min(first + each, count); i++) {
        Particle own = particles[i];
        int place = corner(own, 0, 0);
        if (place != at) {
            if (at >= 0) atomicAdd(&mesh[at], sum);
            at = place;
            sum = 0;
        }
        sum += own.charge;
    }
    if (at >= 0) atomicAdd(&mesh[at], sum);
}

__global__ void read_fields(const Particle* particles, int count, const int* mesh, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    Particle own = particles[i];
    int sum = 0;
    for (int k = 0; k < 4; k++) sum += mesh[corner(own, k & 1, k >> 1)] / FRACTION * (share(own, k & 1, k >> 1) % 7);
    out[i] = sum;
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 8192, 1 << 22);
    constexpr int TILES = (SIDE / TILE) * (SIDE / TILE), EACH = 8;
    Random random(19);
    std::vector<std::vector<Particle>> by_tile(TILES);
    for (int i = 0; i < count; i++) {
        Particle one = {static_cast<unsigned short>(random.below(SIDE * FRACTION)), static_cast<unsigned short>(random.below(SIDE * FRACTION)), random.below(100) - 50};
        by_tile[one.y / FRACTION / TILE * (SIDE / TILE) + one.x / FRACTION / TILE].push_back(one);
    }
    std::vector<Particle> sorted;
    std::vector<int> begins;
    for (const std::vector<Particle>& tile : by_tile) {
        begins.push_back(int(sorted.size()));
        sorted.insert(sorted.end(), tile.begin(), tile.end());
    }
    begins.push_back(count);
    std::vector<int> mesh((SIDE + 1) * (SIDE + 1), 0), corners(mesh.size(), 0), fields(count, 0);
    for (const Particle& one : sorted) {
        for (int k = 0; k < 4; k++) mesh[corner(one, k & 1, k >> 1)] += share(one, k & 1, k >> 1);
        corners[corner(one, 0, 0)] += one.charge;
    }
    for (int i = 0; i < count; i++)
        for (int k = 0; k < 4; k++)
            fields[i] += mesh[corner(sorted[i], k & 1, k >> 1)] / FRACTION * (share(sorted[i], k & 1, k >> 1) % 7);
    Buffer<Particle> particles(sorted);
    Buffer<int> device_begins(begins), everywhere(mesh.size()), tiles(mesh.size()), runs(mesh.size()), read(count);
    for (Buffer<int>* one : {&everywhere, &tiles, &runs}) one->clear();
    int blocks = blocks_for(count, THREADS);
    deposit_everywhere<<<blocks, THREADS>>>(particles, count, everywhere);
    deposit_by_tile<<<TILES, THREADS>>>(particles, device_begins, tiles);
    deposit_by_runs<<<blocks_for(count, THREADS * EACH), THREADS>>>(particles, count, EACH, runs);
    read_fields<<<blocks, THREADS>>>(particles, count, everywhere, read);
    CHECK_LAUNCH();
    size_t wrong = mismatches(everywhere.read(), mesh) + mismatches(tiles.read(), mesh) + mismatches(runs.read(), corners) +
                   mismatches(read.read(), fields);
    return verdict("particle_deposit", wrong == 0, "%d particles, %zu wrong", count, wrong);
}
