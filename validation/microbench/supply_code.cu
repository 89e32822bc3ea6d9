// Cold and warm straight-line code, line by line: when a warp has each line of 128 bytes.
//
// Prints rows `probe,body,state,who,round,line,cycles`: cycles since the first line of the round.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>
#include <cuda_runtime.h>
#define CHECK(call) do { cudaError_t s_ = (call); if (s_ != cudaSuccess) { std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(s_)); std::exit(2); } } while (0)

// A line of eight instructions: a clock, a store of it to shared memory, six others.
#define FAST "mov.u32 %1,%%clock; st.volatile.shared.u32 [%0],%1; add.u32 %0,%0,4; fma.rn.f32 %2,%2,%6,%6; fma.rn.f32 %3,%3,%6,%6; fma.rn.f32 %3,%3,%6,%6; fma.rn.f32 %4,%4,%6,%6; fma.rn.f32 %5,%5,%6,%6; fma.rn.f32 %2,%2,%6,%6;\n"
#define SLOW "mov.u32 %1,%%clock; st.volatile.shared.u32 [%0],%1; add.u32 %0,%0,4; fma.rn.f32 %2,%2,%6,%6; fma.rn.f32 %2,%2,%6,%6; fma.rn.f32 %2,%2,%6,%6; fma.rn.f32 %2,%2,%6,%6; fma.rn.f32 %2,%2,%6,%6; fma.rn.f32 %2,%2,%6,%6;\n"
#define TIMES8(x) x x x x x x x x
#define CODE(body) asm volatile(TIMES8(TIMES8(body)) : "+r"(at), "=r"(clock), "+f"(x), "+f"(y), "+f"(z), "+f"(w) : "f"(a) : "memory")

// COUNT times 64 lines.
template <int COUNT, bool SLOWLY>
struct Repeat {
    static __device__ __forceinline__ void run(unsigned& at, float& x, float& y, float& z, float& w, float a) {
        unsigned clock;
        if (SLOWLY) CODE(SLOW);
        else CODE(FAST);
        Repeat<COUNT - 1, SLOWLY>::run(at, x, y, z, w, a);
    }
};
template <bool SLOWLY>
struct Repeat<0, SLOWLY> {
    static __device__ __forceinline__ void run(unsigned&, float&, float&, float&, float&, float) {}
};

// LINES lines twice; block 0's SM first, then that of `second`; every warp of a block, warp 0 and the last one keep times.
template <int LINES, bool SLOWLY>
__global__ void straight(unsigned* out, volatile int* flag, const int* order, float a) {
    extern __shared__ unsigned times[];
    unsigned sm;
    asm volatile("mov.u32 %0,%%smid;" : "=r"(sm));
    int turn = order[sm];
    if (turn < 0) return;
    int warp = threadIdx.x / 32;
    float x = a, y = a + 1, z = a + 2, w = a + 3;
    // Turns from 100 on run at once and keep no times.
    if (turn > 0 && turn < 100) while (*flag < turn) {}
    for (int round = 0; round < 2; round++) {
        unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(times)) + (warp ? 4 * LINES : 0);
        __syncthreads();
        Repeat<LINES / 64, SLOWLY>::run(at, x, y, z, w, a);
        __syncthreads();
        for (int i = threadIdx.x; turn < 100 && i < LINES; i += blockDim.x) out[(turn * 2 + round) * LINES + i] = times[i] - times[0];
        __syncthreads();
    }
    if (threadIdx.x == 0 && turn < 100) {
        __threadfence();
        *flag = turn + 1;
    }
    if (x + y + z + w == 123.0f) out[0] = 1;
}

__global__ void read_all(const float4* memory, float* out, size_t count) {
    float sum = 0;
    for (size_t i = blockIdx.x * size_t(blockDim.x) + threadIdx.x; i < count; i += size_t(gridDim.x) * blockDim.x) sum += memory[i].x;
    if (sum == 1.2345f) out[0] = sum;
}

__global__ void where(unsigned* gpc_of, int) {
    unsigned sm, rank;
    asm volatile("mov.u32 %0,%%smid;" : "=r"(sm));
    asm volatile("mov.u32 %0,%%clusterid.x;" : "=r"(rank));
    if (threadIdx.x == 0) gpc_of[sm] = rank;
}

// Evicts every instruction cache of every SM: other code of 512 KiB.
__global__ void other_code(unsigned* out, float a) {
    extern __shared__ unsigned times[];
    float x = a, y = a + 1, z = a + 2, w = a + 3;
    unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(times));
    Repeat<64, true>::run(at, x, y, z, w, a);
    if (x + y + z + w == 123.0f) out[0] = 1;
}

static unsigned* out;
static int *flag, *order;
static float4* large;
static const size_t LARGE = 512ull << 20;
static int gpc_of[132];

static void flush(const char* state) {
    if (state[0] != 'l') return;  // first launch, or warm: as left by the run before
    other_code<<<132, 32, 20 << 10>>>(out, 0.5f);
    if (state[2] == 'c') read_all<<<1056, 256>>>(large, reinterpret_cast<float*>(out), LARGE / 16);  // l2cold
    CHECK(cudaDeviceSynchronize());
}

template <int LINES, bool SLOWLY>
static void measure(const char* state, const char* who, std::vector<int> sms, int warps) {
    std::vector<int> turns(132, -1);
    bool together = who[0] == 'a';
    for (size_t i = 0; i < sms.size(); i++) turns[sms[i]] = together ? (i ? 100 : 0) : int(i);
    CHECK(cudaMemcpy(order, turns.data(), 132 * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMemset(flag, 0, 4));
    CHECK(cudaFuncSetAttribute(straight<LINES, SLOWLY>, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 << 10));
    flush(state);
    straight<LINES, SLOWLY><<<132, warps * 32, 200 << 10>>>(out, flag, order, 0.5f);
    CHECK(cudaDeviceSynchronize());
    int turn_count = together ? 1 : int(sms.size());
    std::vector<unsigned> times(turn_count * 2 * LINES);
    CHECK(cudaMemcpy(times.data(), out, times.size() * 4, cudaMemcpyDeviceToHost));
    for (int turn = 0; turn < turn_count; turn++)
        for (int round = 0; round < 2; round++)
            for (int line = 0; line < LINES; line++)
                if (line < 96 || line % 16 == 0 || line == LINES - 1 || (line >= 1000 && line < 1064))
                    std::printf("straight%d,%s,%s,%s warps=%d turn=%d,%d,%d,%u\n", LINES, SLOWLY ? "slow" : "fast", state, who, warps, turn, round, line, times[(turn * 2 + round) * LINES + line]);
}

int main() {
    CHECK(cudaMalloc(&out, 1 << 20));
    CHECK(cudaMalloc(&flag, 4));
    CHECK(cudaMalloc(&order, 132 * 4));
    CHECK(cudaMalloc(&large, LARGE));
    CHECK(cudaMemset(large, 0, LARGE));
    // Which SMs share a GPC: clusters of 16 never leave one; SM numbers of one TPC are neighbours.
    unsigned* numbers;
    CHECK(cudaMalloc(&numbers, 132 * 4));
    CHECK(cudaMemset(numbers, 0xff, 132 * 4));
    CHECK(cudaFuncSetAttribute(where, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
    cudaLaunchAttribute attribute = {};
    attribute.id = cudaLaunchAttributeClusterDimension;
    attribute.val.clusterDim.x = 16, attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    cudaLaunchConfig_t config = {};
    config.gridDim = dim3(16 * 7), config.blockDim = dim3(1024), config.attrs = &attribute, config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, where, numbers, 0));
    CHECK(cudaMemcpy(gpc_of, numbers, sizeof gpc_of, cudaMemcpyDeviceToHost));
    int first = 0, other = -1, same = -1;
    while (first < 132 && gpc_of[first] < 0) first += 2;
    for (int i = 0; i < 132; i++) {
        if (gpc_of[i] < 0 || i / 2 == first / 2) continue;
        if (gpc_of[i] == gpc_of[first] && same < 0) same = i;
        if (gpc_of[i] != gpc_of[first] && other < 0) other = i;
    }
    for (int i = 0; i < 132; i++) std::printf("where,%d,%d\n", i, gpc_of[i]);
    std::vector<int> one = {first}, chain = {first, first + 1, same, other}, all;
    for (int i = 0; i < 132; i++) all.push_back(i);
    measure<64, false>("first launch", "one", one, 1);
    measure<2048, false>("first launch", "one", one, 1);
    for (const char* state : {"l2cold", "l2warm", "warm"}) {
        measure<64, false>(state, "one", one, 1);
        measure<512, false>(state, "one", one, 1);
        measure<512, true>(state, "one", one, 1);
        measure<1024, false>(state, "one", one, 1);
        measure<2048, false>(state, "one", one, 1);
        measure<2048, true>(state, "one", one, 1);
        measure<8192, true>(state, "one", one, 1);
        measure<2048, false>(state, "one", one, 2);
        measure<2048, false>(state, "one", one, 4);
        measure<2048, false>(state, "one", one, 8);
        measure<512, false>(state, "first; same TPC; same GPC; other GPC", chain, 1);
        measure<2048, false>(state, "first; same TPC; same GPC; other GPC", chain, 1);
        measure<2048, false>(state, "all", all, 1);
        measure<512, true>(state, "all", all, 1);
        measure<2048, false>(state, "a TPC together", {first, first + 1}, 1);
        measure<2048, false>(state, "a GPC's two TPCs together", {first, same}, 1);
    }
    return 0;
}
