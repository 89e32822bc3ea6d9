// K-means clustering: nearest centre for each point, sums by atomics, new centres; small kernels in a loop.
//
// Usage: kmeans [points] [iterations]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 128;
constexpr int DIMENSIONS = 8;
constexpr int CENTRES = 5;

// Coordinates are whole numbers, so that distances and sums are exact and the clusters of host and device agree.
__host__ __device__ inline int nearest_centre(const int* point, int stride, const int* centres) {
    int best = 0;
    int best_distance = 0x7fffffff;
    for (int c = 0; c < CENTRES; c++) {
        int distance = 0;
        for (int d = 0; d < DIMENSIONS; d++) {
            int difference = point[d * stride] - centres[c * DIMENSIONS + d];
            distance += difference * difference;
        }
        if (distance < best_distance) {
            best_distance = distance;
            best = c;
        }
    }
    return best;
}

// Points are stored by dimension. The centres are read by all threads: shared memory.
__global__ void assign_points(const int* points, const int* centres, int* cluster, int count) {
    __shared__ int local[CENTRES * DIMENSIONS];
    for (int k = threadIdx.x; k < CENTRES * DIMENSIONS; k += THREADS) local[k] = centres[k];
    __syncthreads();
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count) cluster[i] = nearest_centre(points + i, count, local);
}

__global__ void sum_clusters(const int* points, const int* cluster, int* sums, int* sizes, int count) {
    __shared__ int local[CENTRES * (DIMENSIONS + 1)];
    for (int k = threadIdx.x; k < CENTRES * (DIMENSIONS + 1); k += THREADS) local[k] = 0;
    __syncthreads();
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i < count) {
        int c = cluster[i];
        for (int d = 0; d < DIMENSIONS; d++) atomicAdd(&local[c * DIMENSIONS + d], points[d * count + i]);
        atomicAdd(&local[CENTRES * DIMENSIONS + c], 1);
    }
    __syncthreads();
    for (int k = threadIdx.x; k < CENTRES * DIMENSIONS; k += THREADS) atomicAdd(&sums[k], local[k]);
    if (threadIdx.x < CENTRES) atomicAdd(&sizes[threadIdx.x], local[CENTRES * DIMENSIONS + threadIdx.x]);
}

__global__ void move_centres(int* centres, int* sums, int* sizes) {
    int c = threadIdx.x / DIMENSIONS;
    if (c < CENTRES && sizes[c] > 0) centres[threadIdx.x] = sums[threadIdx.x] / sizes[c];
    __syncthreads();
    if (c < CENTRES) sums[threadIdx.x] = 0;
    if (threadIdx.x < CENTRES) sizes[threadIdx.x] = 0;
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 8192, 1 << 20);
    int iterations = argument(argc, argv, 2, 3);
    Random random(1);
    std::vector<int> points(size_t(count) * DIMENSIONS), centres(CENTRES * DIMENSIONS);
    for (int i = 0; i < count; i++) {
        int group = random.below(CENTRES);
        for (int d = 0; d < DIMENSIONS; d++)
            points[size_t(d) * count + i] = 150 * ((group + d) % CENTRES) + random.below(300);
    }
    for (int c = 0; c < CENTRES; c++)
        for (int d = 0; d < DIMENSIONS; d++) centres[c * DIMENSIONS + d] = points[size_t(d) * count + c % count];

    Buffer<int> device_points(points), device_centres(centres), cluster(count), sums(CENTRES * DIMENSIONS), sizes(CENTRES);
    sums.clear();
    sizes.clear();
    std::vector<int> wanted_cluster(count);
    for (int iteration = 0; iteration < iterations; iteration++) {
        int blocks = blocks_for(count, THREADS);
        assign_points<<<blocks, THREADS>>>(device_points, device_centres, cluster, count);
        sum_clusters<<<blocks, THREADS>>>(device_points, cluster, sums, sizes, count);
        move_centres<<<1, 64>>>(device_centres, sums, sizes);
        CHECK_LAUNCH();

        std::vector<int> host_sums(CENTRES * DIMENSIONS, 0), host_sizes(CENTRES, 0);
        for (int i = 0; i < count; i++) {
            int c = wanted_cluster[i] = nearest_centre(&points[i], count, centres.data());
            for (int d = 0; d < DIMENSIONS; d++) host_sums[c * DIMENSIONS + d] += points[size_t(d) * count + i];
            host_sizes[c]++;
        }
        for (int k = 0; k < CENTRES * DIMENSIONS; k++)
            if (host_sizes[k / DIMENSIONS] > 0) centres[k] = host_sums[k] / host_sizes[k / DIMENSIONS];
    }
    size_t wrong_points = mismatches(cluster.read(), wanted_cluster);
    size_t wrong_centres = mismatches(device_centres.read(), centres);
    return verdict("kmeans", wrong_points + wrong_centres == 0, "%d points, %d iterations, wrong: %zu points, %zu centres", count,
                   iterations, wrong_points, wrong_centres);
}
