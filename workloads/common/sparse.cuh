// Reproducible sparse matrices, for the sparse-algebra workloads.
#pragma once

#include "workload.cuh"

namespace workload {

template <typename T>
struct SparseMatrix {
    std::vector<int> offsets;  // row r is entries offsets[r] .. offsets[r + 1]
    std::vector<int> columns;
    std::vector<T> values;
    int rows() const { return static_cast<int>(offsets.size()) - 1; }
    int entries() const { return static_cast<int>(columns.size()); }

    std::vector<T> multiply(const std::vector<T>& x) const {
        std::vector<T> y(rows());
        for (int row = 0; row < rows(); row++) {
            double sum = 0.0;
            for (int i = offsets[row]; i < offsets[row + 1]; i++) sum += double(values[i]) * x[columns[i]];
            y[row] = static_cast<T>(sum);
        }
        return y;
    }
};

// Rows of very different length: most short, one in 32 long.
template <typename T>
SparseMatrix<T> irregular_matrix(int rows, int mean, uint64_t seed) {
    Random random(seed);
    SparseMatrix<T> matrix;
    matrix.offsets.push_back(0);
    for (int row = 0; row < rows; row++) {
        int length = 1 + random.below(2 * mean);
        if (random.below(32) == 0) length += 8 * mean;
        for (int i = 0; i < length; i++) {
            matrix.columns.push_back(random.below(rows));
            matrix.values.push_back(random.uniform(T(-1), T(1)));
        }
        matrix.offsets.push_back(matrix.entries());
    }
    return matrix;
}

// The five-point Laplacian of a square grid: symmetric and positive definite.
template <typename T>
SparseMatrix<T> laplacian_matrix(int side) {
    SparseMatrix<T> matrix;
    matrix.offsets.push_back(0);
    for (int y = 0; y < side; y++)
        for (int x = 0; x < side; x++) {
            auto add = [&](int column, T value) {
                matrix.columns.push_back(column);
                matrix.values.push_back(value);
            };
            int i = y * side + x;
            if (y > 0) add(i - side, T(-1));
            if (x > 0) add(i - 1, T(-1));
            add(i, T(4));
            if (x < side - 1) add(i + 1, T(-1));
            if (y < side - 1) add(i + side, T(-1));
            matrix.offsets.push_back(matrix.entries());
        }
    return matrix;
}

}  // namespace workload
