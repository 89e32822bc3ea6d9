// Rays through a hierarchy of boxes around spheres: the nearest hit for rays side by side and for rays of all directions,
// whether anything is hit, and the nearest hit with stacks in shared memory.
//
// Usage: ray_traversal [spheres [rays]]
#include <algorithm>

#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 64;
constexpr int DEPTH = 24;
constexpr float FAR = 1e30f;

struct Box {
    float low[3], high[3];
    int left, right;  // a leaf has its sphere in `left` and -1 in `right`
};
struct Sphere {
    float x, y, z, radius;
};
struct Ray {
    float from[3], along[3], inverse[3];
};

// Fused multiply-adds are written out: host and device then round alike, and hits can be compared exactly.
__host__ __device__ inline bool enters(const Box& box, const Ray& ray, float nearest) {
    float begin = 0.0f, end = nearest;
    for (int axis = 0; axis < 3; axis++) {
        float offset = -ray.from[axis] * ray.inverse[axis];
        float a = fmaf(box.low[axis], ray.inverse[axis], offset), b = fmaf(box.high[axis], ray.inverse[axis], offset);
        begin = fmaxf(begin, fminf(a, b));
        end = fminf(end, fmaxf(a, b));
    }
    return begin <= end;
}

// Where the ray passes nearest to the centre, if it passes inside.
__host__ __device__ inline float meets(const Sphere& sphere, const Ray& ray) {
    float x = sphere.x - ray.from[0], y = sphere.y - ray.from[1], z = sphere.z - ray.from[2];
    float along = fmaf(x, ray.along[0], fmaf(y, ray.along[1], z * ray.along[2]));
    float square = fmaf(x, x, fmaf(y, y, z * z)), miss = fmaf(-along, along, square);
    return along > 0.0f && miss < sphere.radius * sphere.radius ? along : FAR;
}

struct Scene {
    const Box* boxes;
    const Sphere* spheres;

    template <class Stack>
    __host__ __device__ int trace(const Ray& ray, bool any, Stack& stack) const {
        float nearest = FAR;
        int hit = -1, depth = 0;
        stack[depth++] = 0;
        while (depth) {
            Box box = boxes[stack[--depth]];
            if (!enters(box, ray, nearest)) continue;
            if (box.right >= 0) {
                stack[depth++] = box.right;
                stack[depth++] = box.left;
                continue;
            }
            float at = meets(spheres[box.left], ray);
            if (at < nearest) {
                nearest = at;
                hit = box.left;
                if (any) break;
            }
        }
        return hit;
    }
};

struct SharedStack {
    int* base;
    __device__ int& operator[](int depth) { return base[depth * THREADS]; }
};

__global__ void trace_nearest(Scene scene, const Ray* rays, int count, int* hits) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, stack[DEPTH];
    if (i < count) hits[i] = scene.trace(rays[i], false, stack);
}
__global__ void trace_any(Scene scene, const Ray* rays, int count, int* hits) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, stack[DEPTH];
    if (i < count) hits[i] = scene.trace(rays[i], true, stack) >= 0;
}
__global__ void trace_with_shared_stack(Scene scene, const Ray* rays, int count, int* hits) {
    __shared__ int stacks[DEPTH * THREADS];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    SharedStack stack{stacks + threadIdx.x};
    if (i < count) hits[i] = scene.trace(rays[i], false, stack);
}

static int build(std::vector<Box>& boxes, const std::vector<Sphere>& spheres, std::vector<int>& order, int first, int last) {
    int at = int(boxes.size());
    Box box;
    for (int axis = 0; axis < 3; axis++) box.low[axis] = FAR, box.high[axis] = -FAR;
    for (int i = first; i < last; i++) {
        const float* centre = &spheres[order[i]].x;
        for (int axis = 0; axis < 3; axis++) {
            box.low[axis] = std::min(box.low[axis], centre[axis] - spheres[order[i]].radius);
            box.high[axis] = std::max(box.high[axis], centre[axis] + spheres[order[i]].radius);
        }
    }
    box.left = order[first];
    box.right = -1;
    boxes.push_back(box);
    if (last - first == 1) return at;
    int longest = 0, middle = (first + last) / 2;
    for (int axis = 1; axis < 3; axis++)
        if (box.high[axis] - box.low[axis] > box.high[longest] - box.low[longest]) longest = axis;
    std::nth_element(order.begin() + first, order.begin() + middle, order.begin() + last, [&](int a, int b) {
        float left = (&spheres[a].x)[longest], right = (&spheres[b].x)[longest];
        return left != right ? left < right : a < b;
    });
    int left = build(boxes, spheres, order, first, middle), right = build(boxes, spheres, order, middle, last);
    boxes[at].left = left;
    boxes[at].right = right;
    return at;
}

static Ray ray_along(float x, float y, float z, float u, float v, float w) {
    float length = std::sqrt(u * u + v * v + w * w);
    Ray ray = {{x, y, z}, {u / length, v / length, w / length}, {}};
    for (int axis = 0; axis < 3; axis++) ray.inverse[axis] = 1.0f / ray.along[axis];
    return ray;
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 512, 1 << 18), rays = argument(argc, argv, 2, 1024, 1 << 20);
    Random random(31);
    std::vector<Sphere> spheres(count);
    for (Sphere& sphere : spheres)
        sphere = {random.uniform(0.0f, 10.0f), random.uniform(0.0f, 10.0f), random.uniform(0.0f, 10.0f), random.uniform(0.05f, 0.4f)};
    std::vector<int> order(count);
    for (int i = 0; i < count; i++) order[i] = i;
    std::vector<Box> boxes;
    build(boxes, spheres, order, 0, count);
    int side = 1;
    while (side * side < rays) side++;
    std::vector<Ray> beside, everywhere;
    for (int i = 0; i < rays; i++) {
        beside.push_back(ray_along(5.0f, 5.0f, -10.0f, (i % side - side * 0.5f) / side + 0.001f, (i / side - side * 0.5f) / side + 0.001f, 1.0f));
        everywhere.push_back(ray_along(random.uniform(0.0f, 10.0f), random.uniform(0.0f, 10.0f), random.uniform(0.0f, 10.0f),
                                       random.uniform(-1.0f, 1.0f), random.uniform(-1.0f, 1.0f), random.uniform(0.1f, 1.0f)));
    }
    Buffer<Box> device_boxes(boxes);
    Buffer<Sphere> device_spheres(spheres);
    Buffer<Ray> device_beside(beside), device_everywhere(everywhere);
    Buffer<int> first(rays), second(rays), third(rays), fourth(rays);
    Scene scene{device_boxes, device_spheres}, host{boxes.data(), spheres.data()};
    int blocks = blocks_for(rays, THREADS);
    trace_nearest<<<blocks, THREADS>>>(scene, device_beside, rays, first);
    trace_nearest<<<blocks, THREADS>>>(scene, device_everywhere, rays, second);
    trace_any<<<blocks, THREADS>>>(scene, device_everywhere, rays, third);
    trace_with_shared_stack<<<blocks, THREADS>>>(scene, device_everywhere, rays, fourth);
    CHECK_LAUNCH();
    std::vector<int> wanted[3];
    int stack[DEPTH * 2], hits = 0;
    for (int i = 0; i < rays; i++) {
        wanted[0].push_back(host.trace(beside[i], false, stack));
        wanted[1].push_back(host.trace(everywhere[i], false, stack));
        wanted[2].push_back(host.trace(everywhere[i], true, stack) >= 0);
        hits += wanted[1].back() >= 0;
    }
    size_t wrong = mismatches(first.read(), wanted[0]) + mismatches(second.read(), wanted[1]) +
                   mismatches(third.read(), wanted[2]) + mismatches(fourth.read(), wanted[1]);
    return verdict("ray_traversal", wrong == 0, "%d spheres, %d rays, %d hits, %zu wrong", count, rays, hits, wrong);
}
