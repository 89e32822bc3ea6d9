// Triangular factors of a matrix, computed on the host.
#pragma once

#include <vector>

#include "workload.cuh"

namespace workload {

// n x n values whose dominant diagonal makes pivoting unnecessary.
inline std::vector<float> dominant_matrix(int n) {
    std::vector<float> matrix = uniform_values(size_t(n) * n, -1.0f, 1.0f, 1);
    for (int i = 0; i < n; i++) matrix[size_t(i) * n + i] += n;
    return matrix;
}

// L below the diagonal and U on and above it.
inline std::vector<double> triangular_factors(const std::vector<float>& matrix, int n) {
    std::vector<double> factors(matrix.begin(), matrix.end());
    for (int k = 0; k < n; k++)
        for (int row = k + 1; row < n; row++) {
            double factor = factors[size_t(row) * n + k] /= factors[size_t(k) * n + k];
            for (int column = k + 1; column < n; column++)
                factors[size_t(row) * n + column] -= factor * factors[size_t(k) * n + column];
        }
    return factors;
}

}  // namespace workload
