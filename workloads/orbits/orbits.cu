// Celestial mechanics in double precision and special functions in single: Kepler's equation by Newton's steps, Legendre
// polynomials, Bessel functions as a series, integration of orbits, and angles from vectors.
//
// Usage: orbits [bodies]
#include <algorithm>

#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 128;
constexpr int NEWTON = 4, DEGREE = 16, TERMS = 10, STEPS = 12;

__host__ __device__ inline double kepler(double mean, double eccentricity) {
    double anomaly = mean;
    for (int i = 0; i < NEWTON; i++)
        anomaly -= (anomaly - eccentricity * sin(anomaly) - mean) / (1.0 - eccentricity * cos(anomaly));
    return anomaly;
}

__host__ __device__ inline double legendre(double x) {
    double before = 1.0, now = x, sum = 1.0 + 0.5 * x;
    for (int n = 1; n < DEGREE; n++) {
        double next = ((2 * n + 1) * x * now - n * before) / (n + 1);
        before = now;
        now = next;
        sum += now / (n + 2);
    }
    return sum;
}

__host__ __device__ inline double bessel(double x) {
    double term = 1.0, sum = 1.0, quarter = -0.25 * x * x;
    for (int k = 1; k <= TERMS; k++) {
        term *= quarter / (double(k) * k);
        sum += term;
    }
    return sum;
}

__host__ __device__ inline double orbit(double x, double speed) {
    double y = 0.0, u = 0.0, v = speed;
    for (int i = 0; i < STEPS; i++) {
        double square = x * x + y * y, pull = -0.01 / (square * sqrt(square));
        u += pull * x;
        v += pull * y;
        x += 0.01 * u;
        y += 0.01 * v;
    }
    return x + y;
}

__host__ __device__ inline float angle(float x, float y) {
    return atan2f(y, x) + asinf(0.5f * x) * expf(-y) + log1pf(x * x) + rsqrtf(1.0f + y * y) + powf(1.0f + x, 0.3f);
}

__global__ void solve_kepler(const double* x, const double* y, int count, double* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = kepler(6.0 * x[i], 0.6 * y[i]);
}
__global__ void sum_legendre(const double* x, int count, double* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = legendre(x[i]);
}
__global__ void sum_bessel(const double* x, int count, double* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = bessel(3.0 * x[i]);
}
__global__ void integrate_orbits(const double* x, const double* y, int count, double* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = orbit(1.0 + x[i], 0.5 + y[i]);
}
__global__ void find_angles(const double* x, const double* y, int count, double* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = angle(float(x[i]), float(y[i]));
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 4096, 1 << 22);
    std::vector<double> x = uniform_values<double>(count, 0.0, 1.0, 1), y = uniform_values<double>(count, 0.0, 1.0, 2);
    Buffer<double> device_x(x), device_y(y), solved(count), legendres(count), bessels(count), ended(count), angles(count);
    int blocks = blocks_for(count, THREADS);
    solve_kepler<<<blocks, THREADS>>>(device_x, device_y, count, solved);
    sum_legendre<<<blocks, THREADS>>>(device_x, count, legendres);
    sum_bessel<<<blocks, THREADS>>>(device_x, count, bessels);
    integrate_orbits<<<blocks, THREADS>>>(device_x, device_y, count, ended);
    find_angles<<<blocks, THREADS>>>(device_x, device_y, count, angles);
    CHECK_LAUNCH();
    std::vector<double> wanted[5];
    for (std::vector<double>& one : wanted) one.resize(count);
    for (int i = 0; i < count; i++) {
        wanted[0][i] = kepler(6.0 * x[i], 0.6 * y[i]);
        wanted[1][i] = legendre(x[i]);
        wanted[2][i] = bessel(3.0 * x[i]);
        wanted[3][i] = orbit(1.0 + x[i], 0.5 + y[i]);
        wanted[4][i] = angle(float(x[i]), float(y[i]));
    }
    double exact = std::max({worst_error(solved.read(), wanted[0]), worst_error(legendres.read(), wanted[1]),
                             worst_error(bessels.read(), wanted[2]), worst_error(ended.read(), wanted[3])});
    double single = worst_error(angles.read(), wanted[4]);
    return verdict("orbits", exact < 1e-9 && single < 1e-4, "%d bodies, worst error %.1e, in single precision %.1e", count,
                   exact, single);
}
