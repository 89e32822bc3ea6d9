// Walks of a balanced tree of points in the plane, with a stack a thread: points in a rectangle, the nearest point, a sum
// with far nodes taken as one, and plain descents. Stacks lie in local memory or in shared memory.
//
// Usage: tree_walks [points [questions]]
#include <algorithm>

#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 128;
constexpr int SIDE = 1 << 14;
constexpr int DEPTH = 24;

// Children of node n are 2n + 1 and 2n + 2; x divides at even levels, y at odd ones. `sum` is that of the whole subtree.
struct Node {
    int x, y, level, sum;
};

struct Walk {
    const Node* nodes;
    int count;

    template <class Stack>
    __host__ __device__ int in_rectangle(int x, int y, int reach, Stack& stack) const {
        int found = 0, depth = 0;
        stack[depth++] = 0;
        while (depth) {
            int at = stack[--depth];
            Node node = nodes[at];
            found += abs(node.x - x) <= reach && abs(node.y - y) <= reach;
            int middle = node.level % 2 ? node.y : node.x, own = node.level % 2 ? y : x;
            if (2 * at + 2 < count && own + reach >= middle) stack[depth++] = 2 * at + 2;
            if (2 * at + 1 < count && own - reach <= middle) stack[depth++] = 2 * at + 1;
        }
        return found;
    }

    template <class Stack>
    __host__ __device__ int nearest(int x, int y, Stack& stack) const {
        int best = 0x7fffffff, depth = 0;
        stack[depth++] = 0;
        while (depth) {
            int at = stack[--depth];
            Node node = nodes[at];
            best = min(best, (node.x - x) * (node.x - x) + (node.y - y) * (node.y - y));
            int apart = node.level % 2 ? y - node.y : x - node.x, near = apart > 0 ? 2 * at + 2 : 2 * at + 1, far = 4 * at + 3 - near;
            if (far < count && apart * apart < best) stack[depth++] = far;
            if (near < count) stack[depth++] = near;
        }
        return best;
    }

    // A node whose subtree is small against its distance stands for all of it.
    template <class Stack>
    __host__ __device__ int far_sum(int x, int y, Stack& stack) const {
        int sum = 0, depth = 0;
        stack[depth++] = 0;
        while (depth) {
            int at = stack[--depth];
            Node node = nodes[at];
            int distance = max(abs(node.x - x), abs(node.y - y)), size = SIDE >> (node.level / 2);
            bool inner = 2 * at + 1 < count;
            if (!inner || size < distance) {
                sum += node.sum / (1 + distance / 256);
                continue;
            }
            if (2 * at + 2 < count) stack[depth++] = 2 * at + 2;
            stack[depth++] = 2 * at + 1;
        }
        return sum;
    }

    __host__ __device__ int descend(int x, int y) const {
        int at = 0, seen = 0;
        while (at < count) {
            Node node = nodes[at];
            seen = seen * 3 + node.sum;
            at = 2 * at + 1 + ((node.level % 2 ? y - node.y : x - node.x) > 0);
        }
        return seen;
    }
};

struct SharedStack {
    int* base;
    __device__ int& operator[](int depth) { return base[depth * THREADS]; }
};

static __host__ __device__ int question_x(int i) { return int(unsigned(i) * 2654435761u >> 18); }
static __host__ __device__ int question_y(int i) { return int(unsigned(i) * 2246822519u >> 18); }

__global__ void count_in_rectangles(Walk walk, int questions, int reach, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, stack[DEPTH];
    if (i < questions) out[i] = walk.in_rectangle(question_x(i), question_y(i), reach, stack);
}
__global__ void find_nearest(Walk walk, int questions, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, stack[DEPTH];
    if (i < questions) out[i] = walk.nearest(question_x(i), question_y(i), stack);
}
__global__ void sum_far_nodes(Walk walk, int questions, int* out) {
    __shared__ int stacks[DEPTH * THREADS];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    SharedStack stack{stacks + threadIdx.x};
    if (i < questions) out[i] = walk.far_sum(question_x(i), question_y(i), stack);
}
__global__ void descend(Walk walk, int questions, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < questions) out[i] = walk.descend(question_x(i), question_y(i));
}

struct Point {
    int x, y;
};

// A left-balanced tree: node n takes the median, so that the array has no holes.
static void build(std::vector<Node>& nodes, std::vector<Point>& points, int first, int last, size_t at, int level) {
    int count = last - first;
    if (count <= 0) return;
    int full = 1;
    while (full * 2 <= count + 1) full *= 2;
    int left = (full - 1) / 2 + std::min(full / 2, count - (full - 1));
    std::nth_element(points.begin() + first, points.begin() + first + left, points.begin() + last, [&](Point a, Point b) {
        return level % 2 ? (a.y != b.y ? a.y < b.y : a.x < b.x) : (a.x != b.x ? a.x < b.x : a.y < b.y);
    });
    Point middle = points[first + left];
    build(nodes, points, first, first + left, 2 * at + 1, level + 1);
    build(nodes, points, first + left + 1, last, 2 * at + 2, level + 1);
    int sum = int(at % 7) + 1;
    for (size_t child : {2 * at + 1, 2 * at + 2})
        if (child < nodes.size()) sum += nodes[child].sum;
    nodes[at] = {middle.x, middle.y, level, sum};
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 2047, 1 << 20), questions = argument(argc, argv, 2, 1024, 1 << 20);
    Random random(21);
    std::vector<Point> points(count);
    for (Point& point : points) point = {random.below(SIDE), random.below(SIDE)};
    std::vector<Node> nodes(count);
    build(nodes, points, 0, count, 0, 0);
    int reach = SIDE / 32, blocks = blocks_for(questions, THREADS);
    Buffer<Node> device(nodes);
    Buffer<int> inside(questions), nearest(questions), sums(questions), descents(questions);
    Walk walk{device, count};
    count_in_rectangles<<<blocks, THREADS>>>(walk, questions, reach, inside);
    find_nearest<<<blocks, THREADS>>>(walk, questions, nearest);
    sum_far_nodes<<<blocks, THREADS>>>(walk, questions, sums);
    descend<<<blocks, THREADS>>>(walk, questions, descents);
    CHECK_LAUNCH();
    Walk host{nodes.data(), count};
    std::vector<int> wanted[4];
    int stack[DEPTH * 2];
    for (int i = 0; i < questions; i++) {
        int x = question_x(i), y = question_y(i);
        wanted[0].push_back(host.in_rectangle(x, y, reach, stack));
        wanted[1].push_back(host.nearest(x, y, stack));
        wanted[2].push_back(host.far_sum(x, y, stack));
        wanted[3].push_back(host.descend(x, y));
    }
    size_t wrong = mismatches(inside.read(), wanted[0]) + mismatches(nearest.read(), wanted[1]) +
                   mismatches(sums.read(), wanted[2]) + mismatches(descents.read(), wanted[3]);
    return verdict("tree_walks", wrong == 0, "%d points, %d questions, %zu answers wrong", count, questions, wrong);
}
