// Matrix instructions of a warp: time of a chain, and how many a cycle an SM takes.
#include "common.cuh"

enum Kind { HALF, HALF_SUMS, BFLOAT, TF32, INT8, HALF_8, DOUBLE, KINDS };
static const char* const NAMES[] = {"m16n8k16 f16 to f32", "m16n8k16 f16 to f16", "m16n8k16 bf16", "m16n8k8 tf32", "m16n8k32 s8", "m16n8k8 f16 to f32", "m8n8k4 f64"};

template <int KIND>
__device__ void product(unsigned* d, const unsigned* a, const unsigned* b) {
    if (KIND == HALF) asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};" : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    if (KIND == HALF_SUMS) asm volatile("mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0,%1},{%2,%3,%4,%5},{%6,%7},{%0,%1};" : "+r"(d[0]), "+r"(d[1]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    if (KIND == BFLOAT) asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};" : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    if (KIND == TF32) asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};" : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    if (KIND == INT8) asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3},{%4,%5,%6,%7},{%8,%9},{%0,%1,%2,%3};" : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
    if (KIND == HALF_8) asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3},{%4,%5},{%6},{%0,%1,%2,%3};" : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3]) : "r"(a[0]), "r"(a[1]), "r"(b[0]));
    if (KIND == DOUBLE) {
        double *sums = reinterpret_cast<double*>(d);
        double left = __longlong_as_double((long long)(a[0]) << 32), right = __longlong_as_double((long long)(b[0]) << 32);
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1},{%2},{%3},{%0,%1};" : "+d"(sums[0]), "+d"(sums[1]) : "d"(left), "d"(right));
    }
}

template <int KIND, int CHAINS>
__global__ void products(long long* out, unsigned seed, int steps) {
    alignas(8) unsigned d[CHAINS][4] = {};
    unsigned a[4] = {seed, seed, seed, seed}, b[2] = {seed, seed};
    long long took = 0;
    for (int round = 0; round < 2; round++) {
        __syncthreads();
        long long begin = clock64();
        for (int i = 0; i < steps; i++) {
#pragma unroll
            for (int repeat = 0; repeat < 8; repeat++) {
#pragma unroll
                for (int chain = 0; chain < CHAINS; chain++) product<KIND>(d[chain], a, b);
            }
        }
        unsigned all = 0;
#pragma unroll
        for (int chain = 0; chain < CHAINS; chain++) all |= d[chain][0] | d[chain][1];
        if (all == 0x12345678) out[1] = 1;
        __syncthreads();
        took = clock64() - begin;
    }
    if (threadIdx.x == 0) out[0] = took;
}

template <int KIND>
void measure(const Clock& clock) {
    const int steps = 16;
    double chain = clock.median_of([&](long long* out) { products<KIND, 1><<<1, 32>>>(out, 0, steps); });
    row("matrix_latency", NAMES[KIND], chain / (steps * 8), "cycles");
    for (int warps : {1, 4, 8, 16}) {
        double cycles = clock.median_of([&](long long* out) { products<KIND, 4><<<1, 32 * warps>>>(out, 0, steps); });
        row("matrix_interval", text("%s warps=%d", NAMES[KIND], warps), cycles / (steps * 8 * 4) / (warps < 4 ? 1 : warps / 4), "cycles/inst/sub-core");
    }
}

int main() {
    warm_up();
    Clock clock;
    measure<HALF>(clock);
    measure<HALF_SUMS>(clock);
    measure<BFLOAT>(clock);
    measure<TF32>(clock);
    measure<INT8>(clock);
    measure<HALF_8>(clock);
    measure<DOUBLE>(clock);
    return 0;
}
