// Molecular dynamics of a Lennard-Jones fluid in a periodic box: atoms are put into cells, forces come from the 27
// cells around, and velocities and positions advance.
//
// Usage: molecular_dynamics [cells a side] [steps]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 128;
constexpr int PER_CELL = 16;   // room in a cell; the start has 4
constexpr float CUTOFF = 2.5f;
constexpr float CELL = 2.7f;   // a little above the cutoff
constexpr float STEP = 0.002f;

struct Box {
    int cells;    // a side
    float side;
};

__host__ __device__ inline float wrap(float x, float side) {
    if (x >= side) x -= side;
    if (x < 0.0f) x += side;
    return x;
}
__host__ __device__ inline int cell_of(float4 atom, Box box) {
    int x = min(int(atom.x / CELL), box.cells - 1);
    int y = min(int(atom.y / CELL), box.cells - 1);
    int z = min(int(atom.z / CELL), box.cells - 1);
    return (z * box.cells + y) * box.cells + x;
}

__global__ void empty_cells(int* sizes, int cells) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < cells) sizes[i] = 0;
}

__global__ void fill_cells(const float4* atoms, int* sizes, int* members, int* overflow, Box box, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int cell = cell_of(atoms[i], box);
    int slot = atomicAdd(&sizes[cell], 1);
    if (slot < PER_CELL)
        members[cell * PER_CELL + slot] = i;
    else
        *overflow = 1;
}

// Nearest image of a distance.
__host__ __device__ inline float nearest(float d, float side) {
    if (d > 0.5f * side) d -= side;
    if (d < -0.5f * side) d += side;
    return d;
}

__global__ void pair_forces(const float4* atoms, const int* sizes, const int* members, float4* forces, Box box, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float4 own = atoms[i];
    int cell = cell_of(own, box);
    int cx = cell % box.cells;
    int cy = cell / box.cells % box.cells;
    int cz = cell / (box.cells * box.cells);
    float4 force = make_float4(0, 0, 0, 0);
    for (int neighbour = 0; neighbour < 27; neighbour++) {
        int nx = (cx + neighbour % 3 - 1 + box.cells) % box.cells;
        int ny = (cy + neighbour / 3 % 3 - 1 + box.cells) % box.cells;
        int nz = (cz + neighbour / 9 - 1 + box.cells) % box.cells;
        int other_cell = (nz * box.cells + ny) * box.cells + nx;
        int size = sizes[other_cell];
        for (int k = 0; k < size; k++) {
            int j = members[other_cell * PER_CELL + k];
            float4 other = atoms[j];
            float dx = nearest(own.x - other.x, box.side);
            float dy = nearest(own.y - other.y, box.side);
            float dz = nearest(own.z - other.z, box.side);
            float square = dx * dx + dy * dy + dz * dz;
            if (j == i || square >= CUTOFF * CUTOFF) continue;
            float inverse = 1.0f / square;
            float sixth = inverse * inverse * inverse;
            float pull = 24.0f * inverse * sixth * (2.0f * sixth - 1.0f);
            force.x += pull * dx;
            force.y += pull * dy;
            force.z += pull * dz;
            force.w += 2.0f * sixth * (sixth - 1.0f);
        }
    }
    forces[i] = force;
}

__global__ void integrate(float4* atoms, float4* velocities, const float4* forces, Box box, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    float4 v = velocities[i];
    float4 f = forces[i];
    float4 a = atoms[i];
    v.x += STEP * f.x;
    v.y += STEP * f.y;
    v.z += STEP * f.z;
    a.x = wrap(a.x + STEP * v.x, box.side);
    a.y = wrap(a.y + STEP * v.y, box.side);
    a.z = wrap(a.z + STEP * v.z, box.side);
    velocities[i] = v;
    atoms[i] = a;
}

int main(int argc, char** argv) {
    Box box;
    box.cells = std::max(3, argument(argc, argv, 1, 4, 256));
    box.side = box.cells * CELL;
    int steps = argument(argc, argv, 2, 2);
    // Four atoms a cell near the corners of a face-centred lattice, shaken a little.
    Random random(1);
    std::vector<float4> atoms, velocities;
    const float corner[4][3] = {{0, 0, 0}, {0.5f, 0.5f, 0}, {0.5f, 0, 0.5f}, {0, 0.5f, 0.5f}};
    for (int cell = 0; cell < box.cells * box.cells * box.cells; cell++)
        for (const float* c : corner) {
            float base[3] = {float(cell % box.cells), float(cell / box.cells % box.cells),
                             float(cell / (box.cells * box.cells))};
            float p[3];
            for (int axis = 0; axis < 3; axis++)
                p[axis] = wrap((base[axis] + c[axis]) * CELL + random.uniform(-0.1f, 0.1f), box.side);
            atoms.push_back(make_float4(p[0], p[1], p[2], 0));
            velocities.push_back(make_float4(random.uniform(-1.0f, 1.0f), random.uniform(-1.0f, 1.0f),
                                             random.uniform(-1.0f, 1.0f), 0));
        }
    int count = static_cast<int>(atoms.size());
    int cells = box.cells * box.cells * box.cells;

    Buffer<float4> device_atoms(atoms), device_velocities(velocities), forces(count);
    Buffer<int> sizes(cells), members(size_t(cells) * PER_CELL), overflow(1);
    overflow.clear();
    int blocks = blocks_for(count, THREADS);
    for (int step = 0; step < steps; step++) {
        empty_cells<<<blocks_for(cells, THREADS), THREADS>>>(sizes, cells);
        fill_cells<<<blocks, THREADS>>>(device_atoms, sizes, members, overflow, box, count);
        pair_forces<<<blocks, THREADS>>>(device_atoms, sizes, members, forces, box, count);
        integrate<<<blocks, THREADS>>>(device_atoms, device_velocities, forces, box, count);
        CHECK_LAUNCH();
    }

    // The host does the same in double precision, over cells that keep the order of atoms.
    struct Vector {
        double x, y, z;
    };
    std::vector<Vector> p(count), v(count), f(count);
    for (int i = 0; i < count; i++) {
        p[i] = {atoms[i].x, atoms[i].y, atoms[i].z};
        v[i] = {velocities[i].x, velocities[i].y, velocities[i].z};
    }
    auto image = [&](double d) { return d > 0.5 * box.side ? d - box.side : d < -0.5 * box.side ? d + box.side : d; };
    auto wrapped = [&](double x) { return x >= box.side ? x - box.side : x < 0 ? x + box.side : x; };
    double potential = 0.0;
    for (int step = 0; step < steps; step++) {
        std::vector<std::vector<int>> lists(cells);
        auto place = [&](double x) { return std::min(int(x / CELL), box.cells - 1); };
        for (int i = 0; i < count; i++)
            lists[(place(p[i].z) * box.cells + place(p[i].y)) * box.cells + place(p[i].x)].push_back(i);
        potential = 0.0;
        for (int i = 0; i < count; i++) {
            Vector sum = {0, 0, 0};
            for (int n = 0; n < 27; n++) {
                int nx = (place(p[i].x) + n % 3 - 1 + box.cells) % box.cells;
                int ny = (place(p[i].y) + n / 3 % 3 - 1 + box.cells) % box.cells;
                int nz = (place(p[i].z) + n / 9 - 1 + box.cells) % box.cells;
                for (int j : lists[(nz * box.cells + ny) * box.cells + nx]) {
                    double dx = image(p[i].x - p[j].x), dy = image(p[i].y - p[j].y), dz = image(p[i].z - p[j].z);
                    double square = dx * dx + dy * dy + dz * dz;
                    if (j == i || square >= CUTOFF * CUTOFF) continue;
                    double sixth = 1.0 / (square * square * square);
                    double pull = 24.0 / square * sixth * (2.0 * sixth - 1.0);
                    sum = {sum.x + pull * dx, sum.y + pull * dy, sum.z + pull * dz};
                    potential += 2.0 * sixth * (sixth - 1.0);
                }
            }
            f[i] = sum;
        }
        for (int i = 0; i < count; i++) {
            v[i] = {v[i].x + STEP * f[i].x, v[i].y + STEP * f[i].y, v[i].z + STEP * f[i].z};
            p[i] = {wrapped(p[i].x + STEP * v[i].x), wrapped(p[i].y + STEP * v[i].y), wrapped(p[i].z + STEP * v[i].z)};
        }
    }
    double got_potential = 0.0;
    for (float4 force : forces.read()) got_potential += force.w;
    std::vector<float4> got = device_atoms.read();
    double worst = 0.0;
    for (int i = 0; i < count; i++) {
        worst = std::fmax(worst, std::fabs(image(got[i].x - p[i].x)));
        worst = std::fmax(worst, std::fabs(image(got[i].y - p[i].y)));
        worst = std::fmax(worst, std::fabs(image(got[i].z - p[i].z)));
    }
    // An atom at the very edge of the cutoff may count on one side only; the step is short enough to hide it.
    bool passed = !overflow.read_one() && worst < 1e-4 && std::fabs(got_potential - potential) < 1e-3 * std::fabs(potential);
    return verdict("molecular_dynamics", passed, "%d atoms, %d steps, worst distance %.2e, energy %.4f (wanted %.4f)", count,
                   steps, worst, got_potential, potential);
}
