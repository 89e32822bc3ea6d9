// When stores to the same sectors leave an SM together: launches for
// `ncu --metrics lts__t_sectors_srcunit_tex_op_write.sum,...`; the row that is printed for each says what it does.
//
// A warp stores words to the first halves of some sectors, something happens, and it (or another warp) stores to the
// second halves: sectors written at L2 are once or twice what was touched.
#include "common.cuh"

enum Between { NOTHING, STORES, LOADS, NEW_LOADS, FENCE, SHARED, BARRIER };
static const char* const NAMES[] = {"nothing", "stores", "loads", "new loads", "fence", "shared", "barrier"};

constexpr int ROUNDS = 64;

struct Job {
    int lanes;        // that store
    int apart;        // words between lanes
    int shift;        // words from the first store to the second
    int between;      // kind
    int count;        // how many of them
    int wait;         // cycles
    int times;        // stores to each place, at least two
    int turn;         // how many warps on the second store comes from: 0 the same
};

__device__ __forceinline__ void store(unsigned* at, unsigned value) {
    asm volatile("st.global.u32 [%0],%1;" ::"l"(at), "r"(value) : "memory");
}

__global__ void pairs(unsigned* memory, unsigned* other, Job job) {
    __shared__ unsigned own[1024];
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    unsigned span = 32 * job.apart > 32 ? 32 * job.apart : 32;
    unsigned used = 0;
    for (int round = 0; round < ROUNDS; round++) {
        for (int time = 0; time < job.times; time++) {
            unsigned as = (warp + time * job.turn) % warps;
            unsigned* base = memory + ((size_t)(blockIdx.x) * warps * ROUNDS + as * ROUNDS + round) * span;
            if (lane < job.lanes) store(base + lane * job.apart + time * job.shift, round);
            if (time == job.times - 1) break;
            for (int i = 0; i < job.count; i++) {
                size_t place = ((size_t)(blockIdx.x * warps + warp) * ROUNDS + round) * job.count + i;
                if (job.between == STORES) store(other + place * 32 + lane, i);
                if (job.between == LOADS) used += *(volatile unsigned*)(other + lane);
                if (job.between == NEW_LOADS) used += *(volatile unsigned*)(other + place * 32 + lane);
                if (job.between == FENCE) __threadfence();
                if (job.between == SHARED) ((volatile unsigned*)own)[threadIdx.x] = i;
                if (job.between == BARRIER) __syncthreads();
            }
            if (job.wait) {
                long long begin = clock64();
                while (clock64() - begin < job.wait) {}
            }
        }
    }
    if (used == 0x12345678) *other = own[lane];
}

// The same without anything between the stores: they issue one behind the other.
template <int TIMES>
__global__ void at_once(unsigned* memory, int apart, int shift) {
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32, span = 32 * apart;
    for (int round = 0; round < ROUNDS; round++) {
        unsigned* at = memory + ((size_t)(blockIdx.x * warps + warp) * ROUNDS + round) * span + lane * apart;
#pragma unroll
        for (int time = 0; time < TIMES; time++) store(at + time * shift, round);
    }
}

static unsigned *memory, *other;
static int number = 0;

static void run(int blocks, int warps, Job job) {
    pairs<<<blocks, warps * 32>>>(memory, other, job);
    CHECK(cudaDeviceSynchronize());
    std::printf("pairs,%d,blocks=%d warps=%d lanes=%d apart=%d shift=%d between=%s x %d wait=%d times=%d turn=%d\n", number++, blocks, warps,
                job.lanes, job.apart, job.shift, NAMES[job.between], job.count, job.wait, job.times, job.turn);
}

template <int TIMES>
static void run_at_once(int blocks, int warps, int apart, int shift) {
    at_once<TIMES><<<blocks, warps * 32>>>(memory, apart, shift);
    CHECK(cudaDeviceSynchronize());
    std::printf("at_once,%d,blocks=%d warps=%d apart=%d shift=%d times=%d\n", number++, blocks, warps, apart, shift, TIMES);
}

int main() {
    CHECK(cudaMalloc(&memory, 512 << 20));
    CHECK(cudaMalloc(&other, 512 << 20));
    // Time alone.
    for (int wait : {0, 30, 60, 100, 200, 400, 800, 2000, 10000}) run(1, 1, {32, 4, 1, NOTHING, 0, wait, 2, 0});
    // How many lines a store has.
    for (int apart : {1, 2, 4, 8, 16, 32}) run(1, 1, {32, apart, apart > 1 ? 1 : 0, NOTHING, 0, 0, 2, 0});
    for (int lanes : {1, 2, 4, 8, 16}) run(1, 1, {lanes, 32, 1, NOTHING, 0, 0, 2, 0});
    // The same word again, and many times.
    run(1, 1, {32, 4, 0, NOTHING, 0, 0, 2, 0});
    for (int times : {3, 4, 8}) run(1, 1, {32, 8, 1, NOTHING, 0, 0, times, 0});
    for (int times : {4, 8}) run(1, 1, {32, 8, 1, NOTHING, 0, 100, times, 0});
    // What happens between.
    for (int between : {STORES, LOADS, NEW_LOADS, FENCE, SHARED})
        for (int count : {1, 2, 4, 8, 16, 32}) run(1, 1, {32, 4, 1, between, count, 0, 2, 0});
    // Several warps: each its own, and each what another one began.
    for (int warps : {2, 4, 8, 16, 32})
        for (int apart : {2, 4, 8}) run(1, warps, {32, apart, 1, NOTHING, 0, 0, 2, 0});
    for (int warps : {2, 4, 8})
        for (int count : {0, 1}) run(1, warps, {32, 4, 1, BARRIER, count, 0, 2, 1});
    for (int warps : {4, 16}) run(1, warps, {32, 8, 1, NOTHING, 0, 0, 8, 0});
    for (int warps : {1, 4, 8, 16, 32}) {
        run_at_once<2>(1, warps, 2, 1);
        run_at_once<2>(1, warps, 4, 1);
        run_at_once<4>(1, warps, 4, 1);
        run_at_once<8>(1, warps, 8, 1);
        run_at_once<2>(1, warps, 32, 1);
        run_at_once<8>(1, warps, 64, 32);
    }
    // Everywhere.
    for (int warps : {1, 8, 32})
        for (int apart : {2, 4}) run(132, warps, {32, apart, 1, NOTHING, 0, 0, 2, 0});
    return 0;
}
