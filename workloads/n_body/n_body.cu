// Gravity between all pairs of bodies, tile by tile through shared memory, and a leapfrog step.
//
// Usage: n_body [bodies] [steps]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 128;
constexpr float SOFTENING = 0.01f;
constexpr float STEP = 0.001f;

__global__ void accelerate(const float4* bodies, float3* accelerations, int count) {
    __shared__ float4 tile[THREADS];
    int i = blockIdx.x * THREADS + threadIdx.x;
    float4 own = i < count ? bodies[i] : make_float4(0, 0, 0, 0);
    float3 sum = make_float3(0, 0, 0);
    for (int start = 0; start < count; start += THREADS) {
        int other = start + threadIdx.x;
        // A body of no mass pulls nothing.
        tile[threadIdx.x] = other < count ? bodies[other] : make_float4(0, 0, 0, 0);
        __syncthreads();
        for (int k = 0; k < THREADS; k++) {
            float dx = tile[k].x - own.x;
            float dy = tile[k].y - own.y;
            float dz = tile[k].z - own.z;
            float inverse = rsqrtf(dx * dx + dy * dy + dz * dz + SOFTENING);
            float pull = tile[k].w * inverse * inverse * inverse;
            sum.x += pull * dx;
            sum.y += pull * dy;
            sum.z += pull * dz;
        }
        __syncthreads();
    }
    if (i < count) accelerations[i] = sum;
}

__global__ void move(float4* bodies, float3* velocities, const float3* accelerations, int count) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    if (i >= count) return;
    float3 v = velocities[i];
    float3 a = accelerations[i];
    float4 b = bodies[i];
    v = make_float3(v.x + STEP * a.x, v.y + STEP * a.y, v.z + STEP * a.z);
    bodies[i] = make_float4(b.x + STEP * v.x, b.y + STEP * v.y, b.z + STEP * v.z, b.w);
    velocities[i] = v;
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 384, 1 << 20);
    int steps = argument(argc, argv, 2, 1);
    Random random(1);
    std::vector<float4> bodies(count);
    for (float4& b : bodies)
        b = make_float4(random.uniform(-1.0f, 1.0f), random.uniform(-1.0f, 1.0f), random.uniform(-1.0f, 1.0f),
                        random.uniform(0.1f, 1.0f));
    std::vector<double> position(count * 3), velocity(count * 3, 0.0), acceleration(count * 3);
    for (int i = 0; i < count; i++) {
        position[i * 3] = bodies[i].x;
        position[i * 3 + 1] = bodies[i].y;
        position[i * 3 + 2] = bodies[i].z;
    }
    for (int step = 0; step < steps; step++) {
        for (int i = 0; i < count; i++) {
            double sum[3] = {};
            for (int j = 0; j < count; j++) {
                double d[3], square = SOFTENING;
                for (int axis = 0; axis < 3; axis++) {
                    d[axis] = position[j * 3 + axis] - position[i * 3 + axis];
                    square += d[axis] * d[axis];
                }
                double pull = bodies[j].w / (square * std::sqrt(square));
                for (int axis = 0; axis < 3; axis++) sum[axis] += pull * d[axis];
            }
            for (int axis = 0; axis < 3; axis++) acceleration[i * 3 + axis] = sum[axis];
        }
        for (int k = 0; k < count * 3; k++) position[k] += STEP * (velocity[k] += STEP * acceleration[k]);
    }

    Buffer<float4> device_bodies(bodies);
    Buffer<float3> velocities(count), accelerations(count);
    velocities.clear();
    int blocks = blocks_for(count, THREADS);
    for (int step = 0; step < steps; step++) {
        accelerate<<<blocks, THREADS>>>(device_bodies, accelerations, count);
        move<<<blocks, THREADS>>>(device_bodies, velocities, accelerations, count);
        CHECK_LAUNCH();
    }
    std::vector<float4> got = device_bodies.read();
    std::vector<float3> got_velocity = velocities.read();
    std::vector<float> got_flat, velocity_flat;
    for (int i = 0; i < count; i++) {
        got_flat.insert(got_flat.end(), {got[i].x, got[i].y, got[i].z});
        velocity_flat.insert(velocity_flat.end(), {got_velocity[i].x, got_velocity[i].y, got_velocity[i].z});
    }
    double position_error = worst_error(got_flat, position);
    double velocity_error = worst_error(velocity_flat, velocity);
    return verdict("n_body", position_error < 1e-5 && velocity_error < 1e-3,
                   "%d bodies, %d steps, worst error %.2e in position, %.2e in velocity", count, steps, position_error,
                   velocity_error);
}
