// A hydrodynamics mini-app: a blast wave in a gas on an unstructured mesh of hexahedra that moves with it.
//
// Double precision, gathers through index lists, 26 kernels and 28 launches a time step (one kernel runs once for
// each plane of symmetry). Forces follow from the derivative of an element's volume by the position of its corners,
// so that work and energy agree; shocks are held by an artificial viscosity with a limiter that looks at neighbours.
//
// Usage: hydrodynamics [elements a side] [time steps]; `22 50` is the full size with 1,400 launches
#include "state.cuh"

using namespace workload;
using namespace hydro;

constexpr int THREADS = 128;
constexpr double GAMMA = 5.0 / 3.0;
constexpr double LINEAR = 0.5;            // of the artificial viscosity
constexpr double QUADRATIC = 2.0 / 3.0;
constexpr double HOURGLASS = 0.03;        // damping
constexpr double LEAST_SPEED = 1e-7;      // below it a node stands still
constexpr double LEAST_CHANGE = 1e-10;    // of a volume, below it none

// One body serves as a kernel and as the host's reference: `i` runs over elements, nodes or whatever `count` is.
#define FOR_EACH(name, count)                                             \
    __host__ __device__ inline void name##_body(const State& s, int i);   \
    __global__ void name(State s) {                                       \
        int i = blockIdx.x * blockDim.x + threadIdx.x;                    \
        if (i < s.count) name##_body(s, i);                               \
    }                                                                     \
    static void name##_reference(const State& s) {                        \
        for (int i = 0; i < s.count; i++) name##_body(s, i);              \
    }                                                                     \
    __host__ __device__ inline void name##_body(const State& s, int i)

struct Vector {
    double x, y, z;
};
__host__ __device__ inline Vector operator+(Vector a, Vector b) { return {a.x + b.x, a.y + b.y, a.z + b.z}; }
__host__ __device__ inline Vector operator-(Vector a, Vector b) { return {a.x - b.x, a.y - b.y, a.z - b.z}; }
__host__ __device__ inline Vector operator*(double f, Vector a) { return {f * a.x, f * a.y, f * a.z}; }
__host__ __device__ inline double dot(Vector a, Vector b) { return a.x * b.x + a.y * b.y + a.z * b.z; }
__host__ __device__ inline Vector cross(Vector a, Vector b) {
    return {a.y * b.z - a.z * b.y, a.z * b.x - a.x * b.z, a.x * b.y - a.y * b.x};
}

// A vector field at a node, and at the eight nodes of an element.
__host__ __device__ inline Vector at(double* const field[3], int i) { return {field[0][i], field[1][i], field[2][i]}; }
__host__ __device__ inline void put(double* const field[3], int i, Vector v) {
    field[0][i] = v.x;
    field[1][i] = v.y;
    field[2][i] = v.z;
}
__host__ __device__ inline void gather(const State& s, double* const field[3], int element, Vector out[CORNERS]) {
    for (int corner = 0; corner < CORNERS; corner++) out[corner] = at(field, s.element_nodes[element * CORNERS + corner]);
}

// ---- Forces ----

FOR_EACH(element_stress, elements) { s.stress[i] = s.pressure[i] + s.viscosity[i]; }

// The derivative of the volume by each corner's position. A face is four triangles around its middle, and a
// triangle (c, a, b) adds c . (a x b) / 6 to the volume.
FOR_EACH(corner_areas, elements) {
    const int faces[FACES][4] = HYDRO_FACES;
    Vector p[CORNERS], area[CORNERS];
    gather(s, s.position, i, p);
    for (int corner = 0; corner < CORNERS; corner++) area[corner] = {0, 0, 0};
    for (int face = 0; face < FACES; face++) {
        const int* f = faces[face];
        Vector middle = 0.25 * (p[f[0]] + p[f[1]] + p[f[2]] + p[f[3]]);
        Vector by_middle = {0, 0, 0};
        for (int edge = 0; edge < 4; edge++) {
            int a = f[edge], b = f[(edge + 1) % 4];
            area[a] = area[a] + (1.0 / 6.0) * cross(p[b], middle);
            area[b] = area[b] + (1.0 / 6.0) * cross(middle, p[a]);
            by_middle = by_middle + (1.0 / 24.0) * cross(p[a], p[b]);
        }
        for (int edge = 0; edge < 4; edge++) area[f[edge]] = area[f[edge]] + by_middle;
    }
    for (int corner = 0; corner < CORNERS; corner++) put(s.corner_area, i * CORNERS + corner, area[corner]);
}

FOR_EACH(stress_forces, elements) {
    for (int corner = 0; corner < CORNERS; corner++)
        put(s.corner_force, i * CORNERS + corner, s.stress[i] * at(s.corner_area, i * CORNERS + corner));
}

FOR_EACH(mean_velocities, elements) {
    Vector v[CORNERS], sum = {0, 0, 0};
    gather(s, s.velocity, i, v);
    for (int corner = 0; corner < CORNERS; corner++) sum = sum + v[corner];
    put(s.mean_velocity, i, 0.125 * sum);
}

FOR_EACH(hourglass_forces, elements) {
    const double modes[4][CORNERS] = HYDRO_HOURGLASS;
    Vector v[CORNERS];
    gather(s, s.velocity, i, v);
    Vector mean = at(s.mean_velocity, i);
    double size = s.reference_volume[i];
    double damping = HOURGLASS * s.sound[i] * size / cbrt(size * s.volume[i]);
    for (int mode = 0; mode < 4; mode++) {
        Vector amplitude = {0, 0, 0};
        for (int corner = 0; corner < CORNERS; corner++) amplitude = amplitude + modes[mode][corner] * (v[corner] - mean);
        amplitude = (0.125 * damping) * amplitude;
        for (int corner = 0; corner < CORNERS; corner++)
            put(s.corner_force, i * CORNERS + corner,
                at(s.corner_force, i * CORNERS + corner) - modes[mode][corner] * amplitude);
    }
}

FOR_EACH(gather_forces, nodes) {
    Vector sum = {0, 0, 0};
    for (int k = s.corner_offsets[i]; k < s.corner_offsets[i + 1]; k++) sum = sum + at(s.corner_force, s.corners[k]);
    put(s.force, i, sum);
}

// ---- Motion ----

FOR_EACH(accelerate, nodes) { put(s.acceleration, i, (1.0 / s.node_mass[i]) * at(s.force, i)); }

__host__ __device__ inline void fix_symmetry_body(const State& s, int i, int axis) {
    s.acceleration[axis][s.symmetry[axis][i]] = 0.0;
}
__global__ void fix_symmetry(State s, int axis) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < s.symmetry_nodes) fix_symmetry_body(s, i, axis);
}

FOR_EACH(advance_velocities, nodes) {
    Vector v = at(s.velocity, i) + s.clock[0] * at(s.acceleration, i);
    if (fabs(v.x) < LEAST_SPEED) v.x = 0.0;
    if (fabs(v.y) < LEAST_SPEED) v.y = 0.0;
    if (fabs(v.z) < LEAST_SPEED) v.z = 0.0;
    put(s.velocity, i, v);
}

FOR_EACH(advance_positions, nodes) { put(s.position, i, at(s.position, i) + s.clock[0] * at(s.velocity, i)); }

// ---- Shape of elements ----

FOR_EACH(element_volumes, elements) {
    const int faces[FACES][4] = HYDRO_FACES;
    Vector p[CORNERS];
    gather(s, s.position, i, p);
    double volume = 0.0;
    for (int face = 0; face < FACES; face++) {
        const int* f = faces[face];
        Vector middle = 0.25 * (p[f[0]] + p[f[1]] + p[f[2]] + p[f[3]]);
        for (int edge = 0; edge < 4; edge++) volume += dot(middle, cross(p[f[edge]], p[f[(edge + 1) % 4]]));
    }
    s.new_volume[i] = volume / 6.0 / s.reference_volume[i];
}

// Volume over the largest face: the way a wave needs to cross the element.
FOR_EACH(element_lengths, elements) {
    const int faces[FACES][4] = HYDRO_FACES;
    Vector p[CORNERS];
    gather(s, s.position, i, p);
    double largest = 0.0;
    for (int face = 0; face < FACES; face++) {
        const int* f = faces[face];
        Vector normal = cross(p[f[2]] - p[f[0]], p[f[3]] - p[f[1]]);
        largest = fmax(largest, 0.25 * dot(normal, normal));
    }
    s.length[i] = s.new_volume[i] * s.reference_volume[i] / sqrt(largest);
}

FOR_EACH(velocity_divergence, elements) {
    Vector v[CORNERS];
    gather(s, s.velocity, i, v);
    double rate = 0.0;
    for (int corner = 0; corner < CORNERS; corner++) rate += dot(at(s.corner_area, i * CORNERS + corner), v[corner]);
    s.divergence[i] = rate / (s.new_volume[i] * s.reference_volume[i]);
}

// ---- Artificial viscosity ----

// The velocity of one face against the one opposite, along the line between them.
FOR_EACH(velocity_jumps, elements) {
    const int faces[FACES][4] = HYDRO_FACES;
    Vector p[CORNERS], v[CORNERS];
    gather(s, s.position, i, p);
    gather(s, s.velocity, i, v);
    for (int direction = 0; direction < 3; direction++) {
        Vector way = {0, 0, 0}, speed = {0, 0, 0};
        for (int k = 0; k < 4; k++) {
            int near = faces[2 * direction][k], far = faces[2 * direction + 1][k];
            way = way + (p[far] - p[near]);
            speed = speed + (v[far] - v[near]);
        }
        s.jump[direction][i] = 0.25 * dot(speed, way) / sqrt(dot(way, way));
    }
}

// 1 where the jump continues smoothly into both neighbours, 0 at a shock.
FOR_EACH(limit_jumps, elements) {
    for (int direction = 0; direction < 3; direction++) {
        double jump = s.jump[direction][i];
        double scale = 1.0 / (jump < 0.0 ? jump - 1e-30 : jump + 1e-30);
        double before = s.jump[direction][s.neighbours[i * FACES + 2 * direction]] * scale;
        double after = s.jump[direction][s.neighbours[i * FACES + 2 * direction + 1]] * scale;
        double smooth = fmin(fmin(0.5 * (before + after), 2.0 * before), fmin(2.0 * after, 1.0));
        s.limiter[direction][i] = fmax(smooth, 0.0);
    }
}

FOR_EACH(artificial_viscosity, elements) {
    double linear = 0.0, quadratic = 0.0, density = 1.0 / s.new_volume[i];
    if (s.divergence[i] < 0.0)
        for (int direction = 0; direction < 3; direction++) {
            double jump = fmin(s.jump[direction][i], 0.0);
            double limiter = s.limiter[direction][i];
            linear -= LINEAR * density * jump * (1.0 - limiter);
            quadratic += QUADRATIC * density * jump * jump * (1.0 - limiter * limiter);
        }
    s.linear_viscosity[i] = linear;
    s.quadratic_viscosity[i] = quadratic;
}

// ---- Equation of state: half a step ahead, then the whole step with what was found there ----

__host__ __device__ inline double gas_pressure(double energy, double compression) {
    return fmax((GAMMA - 1.0) * energy * (1.0 + compression), 0.0);
}
__host__ __device__ inline double sound_of(double pressure, double compression) {
    return sqrt(fmax(GAMMA * pressure / (1.0 + compression), 1e-20));
}

FOR_EACH(compressions, elements) {
    double change = s.new_volume[i] - s.volume[i];
    s.change[i] = change;
    s.compression[i] = 1.0 / s.new_volume[i] - 1.0;
    s.half_compression[i] = 1.0 / (s.new_volume[i] - 0.5 * change) - 1.0;
}

FOR_EACH(predict_energies, elements) {
    s.half_energy[i] = fmax(s.energy[i] - 0.5 * s.change[i] * (s.pressure[i] + s.viscosity[i]), 0.0);
}

FOR_EACH(half_pressures, elements) { s.half_pressure[i] = gas_pressure(s.half_energy[i], s.half_compression[i]); }

FOR_EACH(half_viscosities, elements) {
    double sound = sound_of(s.half_pressure[i], s.half_compression[i]);
    s.half_viscosity[i] = s.change[i] > 0.0 ? 0.0 : s.linear_viscosity[i] * sound + s.quadratic_viscosity[i];
}

FOR_EACH(correct_energies, elements) {
    s.energy[i] = fmax(s.energy[i] - s.change[i] * (s.half_pressure[i] + s.half_viscosity[i]), 0.0);
}

FOR_EACH(final_pressures, elements) { s.pressure[i] = gas_pressure(s.energy[i], s.compression[i]); }

FOR_EACH(sound_speeds, elements) {
    double sound = sound_of(s.pressure[i], s.compression[i]);
    s.sound[i] = sound;
    s.viscosity[i] = s.change[i] > 0.0 ? 0.0 : s.linear_viscosity[i] * sound + s.quadratic_viscosity[i];
}

FOR_EACH(accept_volumes, elements) {
    s.volume[i] = fabs(s.new_volume[i] - 1.0) < LEAST_CHANGE ? 1.0 : s.new_volume[i];
}

// ---- The next time step ----

// The time in which a wave crosses the element or its volume changes by a tenth.
__host__ __device__ inline double limit_of(const State& s, int i) {
    double wave = s.sound[i] * s.sound[i];
    double squeeze = fmin(s.divergence[i], 0.0) * s.length[i];
    wave += 4.0 * QUADRATIC * QUADRATIC * squeeze * squeeze;
    return fmin(0.5 * s.length[i] / sqrt(wave), 0.1 / (fabs(s.divergence[i]) + 1e-20));
}

__global__ void limit_time_step(State s) {
    __shared__ double least[THREADS];
    int i = blockIdx.x * THREADS + threadIdx.x;
    least[threadIdx.x] = i < s.elements ? limit_of(s, i) : 1e20;
    __syncthreads();
    for (int stride = THREADS / 2; stride > 0; stride /= 2) {
        if (threadIdx.x < stride) least[threadIdx.x] = fmin(least[threadIdx.x], least[threadIdx.x + stride]);
        __syncthreads();
    }
    if (threadIdx.x == 0) s.block_limits[blockIdx.x] = least[0];
}

__host__ __device__ inline void set_clock(const State& s, double limit) {
    s.clock[1] += s.clock[0];
    s.clock[0] = fmin(limit, 1.1 * s.clock[0]);
}

// One warp looks through the blocks' limits.
__global__ void next_time_step(State s, int blocks) {
    double least = 1e20;
    for (int block = threadIdx.x; block < blocks; block += 32) least = fmin(least, s.block_limits[block]);
    for (int distance = 16; distance > 0; distance /= 2)
        least = fmin(least, __shfl_xor_sync(0xffffffffu, least, distance));
    if (threadIdx.x == 0) set_clock(s, least);
}

// The steps of one iteration, in order: kernels over elements or nodes, on the device or on the host.
#define ON_DEVICE(name, count) name<<<blocks_for(s.count, THREADS), THREADS>>>(s)
#define ON_HOST(name, count) name##_reference(s)
#define FORCE_STEPS(RUN)                                                                              \
    RUN(element_stress, elements); RUN(corner_areas, elements); RUN(stress_forces, elements);         \
    RUN(mean_velocities, elements); RUN(hourglass_forces, elements); RUN(gather_forces, nodes);       \
    RUN(accelerate, nodes)
#define REST_STEPS(RUN)                                                                               \
    RUN(advance_velocities, nodes); RUN(advance_positions, nodes); RUN(element_volumes, elements);    \
    RUN(element_lengths, elements); RUN(velocity_divergence, elements); RUN(velocity_jumps, elements); \
    RUN(limit_jumps, elements); RUN(artificial_viscosity, elements); RUN(compressions, elements);     \
    RUN(predict_energies, elements); RUN(half_pressures, elements); RUN(half_viscosities, elements);  \
    RUN(correct_energies, elements); RUN(final_pressures, elements); RUN(sound_speeds, elements);     \
    RUN(accept_volumes, elements)

static void step_on_device(const State& s) {
    FORCE_STEPS(ON_DEVICE);
    for (int axis = 0; axis < 3; axis++) fix_symmetry<<<blocks_for(s.symmetry_nodes, THREADS), THREADS>>>(s, axis);
    REST_STEPS(ON_DEVICE);
    int blocks = blocks_for(s.elements, THREADS);
    limit_time_step<<<blocks, THREADS>>>(s);
    next_time_step<<<1, 32>>>(s, blocks);
    CHECK_LAUNCH();
}

static void step_on_host(const State& s) {
    FORCE_STEPS(ON_HOST);
    for (int axis = 0; axis < 3; axis++)
        for (int i = 0; i < s.symmetry_nodes; i++) fix_symmetry_body(s, i, axis);
    REST_STEPS(ON_HOST);
    double least = 1e20;
    for (int i = 0; i < s.elements; i++) least = std::fmin(least, limit_of(s, i));
    set_clock(s, least);
}

// The largest difference relative to the largest value of the field.
static double difference(const double* device, const double* host, int count) {
    std::vector<double> got(count);
    CHECK(cudaMemcpy(got.data(), device, count * sizeof(double), cudaMemcpyDeviceToHost));
    double worst = 0.0, largest = 1e-300;
    for (int i = 0; i < count; i++) {
        double error = std::fabs(got[i] - host[i]);
        if (!(error <= worst)) worst = std::isfinite(error) ? error : INFINITY;
        largest = std::fmax(largest, std::fabs(host[i]));
    }
    return worst / largest;
}

int main(int argc, char** argv) {
    int n = argument(argc, argv, 1, 6, 200);
    int steps = argument(argc, argv, 2, 3, 100000);
    Fields on_device, on_host;
    build(on_device, n, THREADS, true);
    build(on_host, n, THREADS, false);
    for (int step = 0; step < steps; step++) {
        step_on_device(on_device.state);
        step_on_host(on_host.state);
    }
    const State& device = on_device.state;
    const State& host = on_host.state;
    double worst = difference(device.energy, host.energy, host.elements);
    for (int axis = 0; axis < 3; axis++) {
        worst = std::fmax(worst, difference(device.position[axis], host.position[axis], host.nodes));
        worst = std::fmax(worst, difference(device.velocity[axis], host.velocity[axis], host.nodes));
    }
    double clock_error = difference(device.clock, host.clock, 2);
    // What the blast had at first must still be there, as heat or as motion.
    double energy = 0.0;
    for (int i = 0; i < host.elements; i++) energy += host.energy[i] * host.reference_volume[i];
    for (int i = 0; i < host.nodes; i++)
        for (int axis = 0; axis < 3; axis++) energy += 0.5 * host.node_mass[i] * host.velocity[axis][i] * host.velocity[axis][i];
    bool passed = worst < 1e-9 && clock_error < 1e-9 && energy > 0.09 && energy < 0.11;
    return verdict("hydrodynamics", passed, "%d cubed, %d steps, time %.4e, energy %.4f of 0.1, worst difference %.2e", n, steps,
                   host.clock[1], energy, worst);
}
