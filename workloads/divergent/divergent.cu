// Divergence: loops whose length differs by lane (Mandelbrot, Collatz), a tree of branches, and a switch whose cases
// call each other's code paths.
//
// Usage: divergent [side of the picture]
#include "../common/workload.cuh"

using namespace workload;

// Fixed point with 24 fractional bits: exact on host and device.
__host__ __device__ inline int escape_steps(int x, int y, int side, int limit) {
    long long cr = -(2ll << 24) + (3ll << 24) * x / side;
    long long ci = -(3ll << 23) + (3ll << 24) * y / side;
    long long zr = 0, zi = 0;
    int step = 0;
    while (step < limit) {
        long long rr = zr * zr >> 24, ii = zi * zi >> 24;
        if (rr + ii > 4ll << 24) break;
        zi = (zr * zi >> 23) + ci;
        zr = rr - ii + cr;
        step++;
    }
    return step;
}

__host__ __device__ inline int collatz_steps(unsigned n) {
    int steps = 0;
    while (n != 1 && steps < 200) {
        n = n % 2 == 0 ? n / 2 : 3 * n + 1;
        steps++;
    }
    return steps;
}

// A path through eight branches, each taken by half of the values, with early ways out.
__host__ __device__ inline unsigned branch_tree(unsigned v) {
    unsigned result = v;
    for (int level = 0; level < 8; level++) {
        if (v >> level & 1) {
            result = result * 3 + 1;
            if (result % 11 == 0) return result;
        } else {
            result ^= result >> 3;
            if (result % 13 == 0) continue;
            result += level;
        }
    }
    return result;
}

__host__ __device__ inline unsigned small_machine(unsigned program) {
    unsigned a = program, b = program >> 7, pc = 0;
    for (int step = 0; step < 24; step++) {
        switch (program >> (pc % 29) & 7) {
            case 0: a += b; break;
            case 1: b ^= a << 1; break;
            case 2: a = a * 5 + 3; break;
            case 3: if (a & 1) pc += 3; break;
            case 4: { unsigned t = a; a = b; b = t; break; }
            case 5: b -= a >> 2; break;
            case 6: if (b > a) a++; else b++; break;
            default: pc += a & 3; break;
        }
        pc++;
    }
    return a ^ b;
}

__global__ void mandelbrot(int* steps, int side) {
    int x = blockIdx.x * blockDim.x + threadIdx.x;
    int y = blockIdx.y * blockDim.y + threadIdx.y;
    if (x < side && y < side) steps[y * side + x] = escape_steps(x, y, side, 64);
}

__global__ void collatz(int* steps, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) steps[i] = collatz_steps(i + 1);
}

__global__ void branches(unsigned* results, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) results[i] = branch_tree(i * 2654435761u) + small_machine(i * 2246822519u);
}

int main(int argc, char** argv) {
    int side = argument(argc, argv, 1, 64, 4096);
    int count = side * side;
    std::vector<int> wanted_mandelbrot(count), wanted_collatz(count);
    std::vector<unsigned> wanted_branches(count);
    for (int i = 0; i < count; i++) {
        wanted_mandelbrot[i] = escape_steps(i % side, i / side, side, 64);
        wanted_collatz[i] = collatz_steps(i + 1);
        wanted_branches[i] = branch_tree(i * 2654435761u) + small_machine(i * 2246822519u);
    }
    Buffer<int> picture(count), steps(count);
    Buffer<unsigned> results(count);
    mandelbrot<<<dim3(blocks_for(side, 16), blocks_for(side, 8)), dim3(16, 8)>>>(picture, side);
    collatz<<<blocks_for(count, 128), 128>>>(steps, count);
    branches<<<blocks_for(count, 128), 128>>>(results, count);
    CHECK_LAUNCH();
    size_t wrong[3] = {mismatches(picture.read(), wanted_mandelbrot), mismatches(steps.read(), wanted_collatz),
                       mismatches(results.read(), wanted_branches)};
    return verdict("divergent", wrong[0] + wrong[1] + wrong[2] == 0, "%d values, wrong: %zu Mandelbrot, %zu Collatz, %zu branches",
                   count, wrong[0], wrong[1], wrong[2]);
}
