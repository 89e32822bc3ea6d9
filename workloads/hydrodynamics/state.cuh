// The mesh and fields of the hydrodynamics mini-app, and how they are set up.
//
// Hexahedra with explicit lists: the eight nodes of an element, its six neighbours, and for each node the element
// corners that meet there. Nothing relies on the mesh being a regular grid once it is built.
#pragma once

#include <algorithm>

#include "../common/workload.cuh"

namespace hydro {

using workload::Buffer;

constexpr int CORNERS = 8;
constexpr int FACES = 6;

// Corners of each face, counter-clockwise seen from outside; faces 2 d and 2 d + 1 face each other.
#define HYDRO_FACES {{0, 4, 7, 3}, {1, 2, 6, 5}, {0, 1, 5, 4}, {3, 7, 6, 2}, {0, 3, 2, 1}, {4, 5, 6, 7}}

// The shapes in which corners can move against each other without changing volume.
#define HYDRO_HOURGLASS \
    {{1, 1, -1, -1, -1, -1, 1, 1}, {1, -1, -1, 1, -1, 1, 1, -1}, {1, -1, 1, -1, 1, -1, 1, -1}, {-1, 1, -1, 1, 1, -1, 1, -1}}

// Everything that kernels touch, as plain pointers: on the device, and once more on the host for the check.
struct State {
    int elements, nodes;
    // Mesh.
    const int* element_nodes;   // 8 an element
    const int* neighbours;      // 6 an element, itself at the border
    const int* corner_offsets;  // nodes + 1
    const int* corners;         // element * 8 + corner
    const int* symmetry[3];     // nodes on the planes x = 0, y = 0, z = 0
    int symmetry_nodes;
    // Nodes: position, velocity, force, acceleration, each by axis.
    double *position[3], *velocity[3], *force[3], *acceleration[3];
    const double* node_mass;
    // Elements.
    const double* reference_volume;
    double *energy, *pressure, *viscosity, *volume, *new_volume, *sound, *stress, *length, *divergence;
    double *change, *compression, *half_compression, *half_energy, *half_pressure, *half_viscosity;
    double *linear_viscosity, *quadratic_viscosity;
    double *jump[3], *limiter[3], *mean_velocity[3];
    // Corners, 8 an element.
    double *corner_area[3], *corner_force[3];
    // Time: the step, the time, and the least limit of each block.
    double *clock, *block_limits;
};

// Owns one copy of the fields, in host vectors or in device buffers.
struct Fields {
    State state{};
    std::vector<std::vector<double>> host;
    std::vector<std::vector<int>> host_indices;
    std::vector<Buffer<double>*> device;
    std::vector<Buffer<int>*> device_indices;

    Fields() = default;
    Fields(const Fields&) = delete;
    Fields& operator=(const Fields&) = delete;
    ~Fields() {
        for (auto* buffer : device) delete buffer;
        for (auto* buffer : device_indices) delete buffer;
    }

    double* real(const std::vector<double>& values, bool on_device) {
        if (on_device) {
            device.push_back(new Buffer<double>(values));
            return *device.back();
        }
        host.push_back(values);
        return host.back().data();
    }
    int* indices(const std::vector<int>& values, bool on_device) {
        if (on_device) {
            device_indices.push_back(new Buffer<int>(values));
            return *device_indices.back();
        }
        host_indices.push_back(values);
        return host_indices.back().data();
    }
};

// A cube of n x n x n elements at rest, with all energy in the element at the corner of the symmetry planes.
inline void build(Fields& fields, int n, int block_size, bool on_device) {
    constexpr double SIDE = 1.125, TOTAL_ENERGY = 0.1;
    State& s = fields.state;
    int m = n + 1;
    s.elements = n * n * n;
    s.nodes = m * m * m;
    s.symmetry_nodes = m * m;
    fields.host.reserve(64);
    fields.host_indices.reserve(16);
    auto real = [&](const std::vector<double>& values) { return fields.real(values, on_device); };
    auto indices = [&](const std::vector<int>& values) { return fields.indices(values, on_device); };

    std::vector<int> element_nodes, neighbours;
    const int offset[CORNERS][3] = {{0, 0, 0}, {1, 0, 0}, {1, 1, 0}, {0, 1, 0}, {0, 0, 1}, {1, 0, 1}, {1, 1, 1}, {0, 1, 1}};
    for (int z = 0; z < n; z++)
        for (int y = 0; y < n; y++)
            for (int x = 0; x < n; x++) {
                for (const int* o : offset) element_nodes.push_back(((z + o[2]) * m + y + o[1]) * m + x + o[0]);
                auto element = [&](int ex, int ey, int ez) {
                    auto inside = [&](int v) { return std::min(std::max(v, 0), n - 1); };
                    return (inside(ez) * n + inside(ey)) * n + inside(ex);
                };
                neighbours.insert(neighbours.end(), {element(x - 1, y, z), element(x + 1, y, z), element(x, y - 1, z),
                                                     element(x, y + 1, z), element(x, y, z - 1), element(x, y, z + 1)});
            }
    std::vector<int> corner_offsets(s.nodes + 1, 0), corners(element_nodes.size());
    for (int node : element_nodes) corner_offsets[node + 1]++;
    for (int node = 0; node < s.nodes; node++) corner_offsets[node + 1] += corner_offsets[node];
    std::vector<int> next(corner_offsets.begin(), corner_offsets.end() - 1);
    for (size_t corner = 0; corner < element_nodes.size(); corner++) corners[next[element_nodes[corner]]++] = int(corner);
    std::vector<int> planes[3];
    for (int b = 0; b < m; b++)
        for (int a = 0; a < m; a++) {
            planes[0].push_back((b * m + a) * m);
            planes[1].push_back(b * m * m + a);
            planes[2].push_back(b * m + a);
        }
    std::vector<double> position[3], mass(s.nodes, 0.0);
    double volume = std::pow(SIDE / n, 3);
    for (int node = 0; node < s.nodes; node++) {
        position[0].push_back(SIDE * (node % m) / n);
        position[1].push_back(SIDE * (node / m % m) / n);
        position[2].push_back(SIDE * (node / (m * m)) / n);
    }
    for (int node : element_nodes) mass[node] += volume / CORNERS;

    s.element_nodes = indices(element_nodes);
    s.neighbours = indices(neighbours);
    s.corner_offsets = indices(corner_offsets);
    s.corners = indices(corners);
    std::vector<double> node_zero(s.nodes, 0.0), zero(s.elements, 0.0), corner_zero(element_nodes.size(), 0.0);
    for (int axis = 0; axis < 3; axis++) {
        s.symmetry[axis] = indices(planes[axis]);
        s.position[axis] = real(position[axis]);
        s.velocity[axis] = real(node_zero);
        s.force[axis] = real(node_zero);
        s.acceleration[axis] = real(node_zero);
        s.jump[axis] = real(zero);
        s.limiter[axis] = real(zero);
        s.mean_velocity[axis] = real(zero);
        s.corner_area[axis] = real(corner_zero);
        s.corner_force[axis] = real(corner_zero);
    }
    s.node_mass = real(mass);
    s.reference_volume = real(std::vector<double>(s.elements, volume));
    std::vector<double> energy = zero;
    energy[0] = TOTAL_ENERGY / volume;
    s.energy = real(energy);
    // A monatomic gas: pressure is two thirds of the energy.
    for (double& e : energy) e *= 2.0 / 3.0;
    s.pressure = real(energy);
    for (double** field : {&s.viscosity, &s.new_volume, &s.stress, &s.length, &s.divergence, &s.change, &s.compression,
                           &s.half_compression, &s.half_energy, &s.half_pressure, &s.half_viscosity, &s.linear_viscosity,
                           &s.quadratic_viscosity})
        *field = real(zero);
    s.volume = real(std::vector<double>(s.elements, 1.0));
    std::vector<double> sound = zero;
    sound[0] = std::sqrt(5.0 / 3.0 * energy[0]);
    s.sound = real(sound);
    s.clock = real({0.1 * std::cbrt(volume) / sound[0], 0.0});
    s.block_limits = real(std::vector<double>((s.elements + block_size - 1) / block_size, 0.0));
}

}  // namespace hydro
