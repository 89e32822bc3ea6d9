// Double precision: division, roots and elementary functions; Newton's method with a varying number of steps; and
// small dense systems solved by a thread each with local arrays.
//
// Usage: fp64_math [elements]
#include "../common/workload.cuh"

using namespace workload;

constexpr int FUNCTIONS = 8;
constexpr int ORDER = 4;

__global__ void double_functions(const double* x, double* y, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    double v = x[i];
    double positive = fabs(v) + 0.01;
    double* out = y + i;
    out[0 * count] = 1.0 / positive;
    out[1 * count] = sqrt(positive);
    out[2 * count] = exp(v);
    out[3 * count] = log(positive);
    out[4 * count] = sin(v * 20.0);
    out[5 * count] = cos(v * 20.0);
    out[6 * count] = pow(positive, v);
    out[7 * count] = atan2(v, positive);
}

// Kepler's equation: e - eccentricity sin e = m.
__device__ __host__ inline double kepler(double m, double eccentricity, int* steps) {
    double e = m;
    for (*steps = 0; *steps < 50; ++*steps) {
        double correction = (e - eccentricity * sin(e) - m) / (1.0 - eccentricity * cos(e));
        e -= correction;
        if (fabs(correction) < 1e-13) break;
    }
    return e;
}

__global__ void solve_kepler(const double* x, double* y, int* steps, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    y[i] = kepler(x[i] + 3.0, 0.05 + 0.8 * (i % 32) / 32.0, &steps[i]);
}

// Gaussian elimination with row pivoting, so that indices are not known when it is compiled.
__device__ __host__ inline void solve(double a[ORDER][ORDER + 1], double* x) {
    for (int column = 0; column < ORDER; column++) {
        int pivot = column;
        for (int row = column + 1; row < ORDER; row++)
            if (fabs(a[row][column]) > fabs(a[pivot][column])) pivot = row;
        for (int k = 0; k <= ORDER; k++) {
            double t = a[column][k];
            a[column][k] = a[pivot][k];
            a[pivot][k] = t;
        }
        for (int row = column + 1; row < ORDER; row++) {
            double factor = a[row][column] / a[column][column];
            for (int k = column; k <= ORDER; k++) a[row][k] -= factor * a[column][k];
        }
    }
    for (int row = ORDER - 1; row >= 0; row--) {
        double sum = a[row][ORDER];
        for (int k = row + 1; k < ORDER; k++) sum -= a[row][k] * x[k];
        x[row] = sum / a[row][row];
    }
}

__device__ __host__ inline void make_system(double seed, double a[ORDER][ORDER + 1]) {
    for (int row = 0; row < ORDER; row++)
        for (int column = 0; column <= ORDER; column++)
            a[row][column] = seed * (row + 1) - column * column + (row == (column + 1) % ORDER ? 9.0 : 0.0) + row * 0.5;
}

__global__ void small_systems(const double* x, double* y, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    double a[ORDER][ORDER + 1], solution[ORDER];
    make_system(x[i], a);
    solve(a, solution);
    double sum = 0.0;
    for (int k = 0; k < ORDER; k++) sum += solution[k] * (k + 1);
    y[i] = sum;
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 2048);
    std::vector<double> x = uniform_values(count, -3.0, 3.0, 1);
    std::vector<double> wanted(size_t(FUNCTIONS) * count), wanted_kepler(count), wanted_systems(count);
    for (int i = 0; i < count; i++) {
        double v = x[i];
        double positive = std::fabs(v) + 0.01;
        const double values[FUNCTIONS] = {1.0 / positive,     std::sqrt(positive),   std::exp(v),          std::log(positive),
                                          std::sin(v * 20.0), std::cos(v * 20.0), std::pow(positive, v), std::atan2(v, positive)};
        for (int f = 0; f < FUNCTIONS; f++) wanted[size_t(f) * count + i] = values[f];
        int steps;
        wanted_kepler[i] = kepler(v + 3.0, 0.05 + 0.8 * (i % 32) / 32.0, &steps);
        double a[ORDER][ORDER + 1], solution[ORDER];
        make_system(v, a);
        solve(a, solution);
        wanted_systems[i] = 0.0;
        for (int k = 0; k < ORDER; k++) wanted_systems[i] += solution[k] * (k + 1);
    }
    Buffer<double> device_x(x), y(size_t(FUNCTIONS) * count), roots(count), systems(count);
    Buffer<int> steps(count);
    int blocks = blocks_for(count, 128);
    double_functions<<<blocks, 128>>>(device_x, y, count);
    solve_kepler<<<blocks, 128>>>(device_x, roots, steps, count);
    small_systems<<<blocks, 128>>>(device_x, systems, count);
    CHECK_LAUNCH();
    double functions_error = worst_error(y.read(), wanted);
    double kepler_error = worst_error(roots.read(), wanted_kepler);
    double systems_error = worst_error(systems.read(), wanted_systems);
    return verdict("fp64_math", functions_error < 1e-13 && kepler_error < 1e-11 && systems_error < 1e-8,
                   "%d elements, worst error %.2e functions, %.2e Kepler, %.2e systems", count, functions_error, kepler_error,
                   systems_error);
}
