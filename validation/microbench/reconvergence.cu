// How lanes that parted in calls, jump tables and spin locks are picked up again: kernels of one warp whose instruction
// counts, or whose marks, tell the order.
//
// Usage: reconvergence counts   every kernel with every pattern and no marks, to be counted by ncu
//        reconvergence marks    the same with marks, printed: where, which lanes were active, in the order of the clock
//        Behind either, a kernel's name stands for that kernel alone.
#include "recursive_calls.cuh"

constexpr int PATTERNS = 24;
constexpr int ALL_PATTERNS = 28;
static_assert(ALL_PATTERNS <= MOST_PATTERNS);

// A call in a function that is not recursive itself, reached from two places.
template <bool T>
__device__ __noinline__ unsigned leaf(unsigned value, int n) {
    mark<T>(1);
    if (n & 2) {
        mark<T>(2);
        value = value * 77 + 1;
        asm volatile("" ::: "memory");
    }
    mark<T>(3);
    return value * value;
}
template <bool T>
__global__ void two_callers(int pattern, unsigned* out) {
    begin<T>();
    int n = of(pattern);
    unsigned value = threadIdx.x;
    if (n & 1) {
        value = leaf<T>(value + 1, n) + 3;
        mark<T>(4);
        out[64 + threadIdx.x] = value;
    } else {
        value = leaf<T>(value ^ 9, n) * 5;
        mark<T>(5);
        out[128 + threadIdx.x] = value;
    }
    mark<T>(6);
    out[threadIdx.x] = value;
}

// ---- calls through pointers

typedef unsigned (*Operation)(unsigned);
#define OPERATION(name, place, body)                       \
    template <bool T>                                      \
    __device__ __noinline__ unsigned name(unsigned x) {    \
        mark<T>(place);                                    \
        body;                                              \
        return x;                                          \
    }
OPERATION(operation_0, 10, x += 7)
OPERATION(operation_1, 11, x *= 5)
OPERATION(operation_2, 12, x ^= x >> 4)
OPERATION(operation_3, 13, x = (x ^ 3) * 9 + 1)
OPERATION(operation_4, 14, x = __brev(x) + 1)
OPERATION(operation_5, 15, x = __popc(x) * 3)
OPERATION(operation_6, 16, x = (x << 5) - x)
OPERATION(operation_7, 17, x = ~x * 11)
__device__ Operation operations[8] = {operation_0<false>, operation_1<false>, operation_2<false>, operation_3<false>,
                                      operation_4<false>, operation_5<false>, operation_6<false>, operation_7<false>};
__device__ Operation operations_traced[8] = {operation_0<true>, operation_1<true>, operation_2<true>, operation_3<true>,
                                             operation_4<true>, operation_5<true>, operation_6<true>, operation_7<true>};

template <bool T>
__global__ void pointers(int pattern, unsigned* out, int targets, int rounds) {
    begin<T>();
    int n = of(pattern);
    unsigned value = threadIdx.x;
#pragma unroll 1
    for (int round = 0; round < rounds; round++) {
        value = (T ? operations_traced : operations)[(n + round) % targets](value);
        mark<T>(2);
    }
    out[threadIdx.x] = value;
}
template <bool T>
__global__ void pointers_in_branch(int pattern, unsigned* out, int targets) {
    begin<T>();
    int n = of(pattern);
    unsigned value = threadIdx.x;
    if (n & 1) {
        value = (T ? operations_traced : operations)[(n / 2) % targets](value) + 1;
        mark<T>(2);
    } else {
        value = (T ? operations_traced : operations)[(n / 2 + 1) % targets](value) * 3;
        mark<T>(3);
    }
    mark<T>(4);
    out[threadIdx.x] = value;
}
template <bool T>
__global__ void table(int pattern, unsigned* out) {
    begin<T>();
    int n = of(pattern) % 9;
    unsigned value = threadIdx.x;
    volatile unsigned* place = out + threadIdx.x;
    switch (n) {
        case 0: value = place[64] * 3; mark<T>(10); break;
        case 1: place[32] = value * 5; mark<T>(11); break;
        case 2: value ^= place[96]; place[64] = 4; mark<T>(12); break;
        case 3: place[32] = 1; place[64] = 2; mark<T>(13); break;
        case 4: value = __brev(value) + place[32]; mark<T>(14); break;
        case 5: place[96] = value; value += 77; mark<T>(15); break;
        case 6: place[96] = value; __threadfence_block(); mark<T>(16); break;
        case 7: value = place[32] / (value | 3); mark<T>(17); break;
    }
    mark<T>(2);
    out[threadIdx.x] = value;
}

// ---- locks

__device__ __forceinline__ bool take(int* lock) { return atomicCAS(lock, 0, 1) == 0; }
enum End { EXITS, LANES_SYNC, BLOCK_SYNC, GOES_ON };

// `while (!take(lock));` by lanes `first` to 31 (the others end or wait behind); what the winner comes to afterwards differs.
template <bool T, bool SHARED, End END, int SLEEP>
__global__ void lock_wait(unsigned* out, int* global_locks, int lanes, int locks) {
    __shared__ int shared_locks[8];
    if (SHARED && threadIdx.x < 8) shared_locks[threadIdx.x] = 0;
    begin<T>();
    __syncthreads();
    int* lock = (SHARED ? shared_locks : global_locks) + threadIdx.x % locks;
    volatile unsigned* sum = out;
    if (threadIdx.x >= lanes) return;
    mark<T>(1);
    while (!take(lock)) {
        mark<T>(2);
        if (SLEEP) __nanosleep(SLEEP);
    }
    mark<T>(3);
    __threadfence_block();
    sum[0] = sum[0] + 1;
    __threadfence_block();
    atomicExch(lock, 0);
    mark<T>(4);
    if (END == LANES_SYNC) __syncwarp();
    if (END == BLOCK_SYNC) __syncthreads();
    if (END == EXITS) return;
    mark<T>(5);
    out[32 + threadIdx.x] = sum[0];
}
// The release inside the loop.
template <bool T, bool SHARED>
__global__ void lock_try(unsigned* out, int* global_locks, int lanes, int locks) {
    __shared__ int shared_locks[8];
    if (SHARED && threadIdx.x < 8) shared_locks[threadIdx.x] = 0;
    begin<T>();
    __syncthreads();
    int* lock = (SHARED ? shared_locks : global_locks) + threadIdx.x % locks;
    volatile unsigned* sum = out;
    if (threadIdx.x >= lanes) return;
    bool done = false;
    mark<T>(1);
    while (!done) {
        mark<T>(2);
        if (take(lock)) {
            mark<T>(3);
            sum[0] = sum[0] + 1;
            __threadfence_block();
            atomicExch(lock, 0);
            done = true;
        }
        mark<T>(4);
    }
    mark<T>(5);
    out[32 + threadIdx.x] = sum[0];
}
// Each lane waits for the one below (or above) it.
template <bool T, bool UP>
__global__ void turns(unsigned* out, int lanes) {
    __shared__ volatile int turn;
    turn = UP ? 0 : lanes - 1;
    begin<T>();
    __syncthreads();
    if (threadIdx.x >= lanes) return;
    mark<T>(1);
    while (turn != threadIdx.x) mark<T>(2);
    mark<T>(3);
    out[threadIdx.x] = turn;
    turn = turn + (UP ? 1 : -1);
    mark<T>(4);
    out[32 + threadIdx.x] = turn;
}
// One lane writes, the others wait for it; who writes is on either side of the branch.
template <bool T>
__global__ void flag(unsigned* out, int writer, int form) {
    __shared__ volatile int ready;
    ready = 0;
    begin<T>();
    __syncthreads();
    mark<T>(1);
    bool mine = form & 1 ? threadIdx.x >= writer : threadIdx.x == writer;
    if (mine) {
        mark<T>(2);
        ready = 1;
        if (form & 2) __threadfence_block();
    } else {
        while (ready == 0) mark<T>(3);
        mark<T>(4);
    }
    mark<T>(5);
    out[threadIdx.x] = ready;
}

// ---- meetings of lanes by mask

template <bool T>
__global__ void meet(int pattern, unsigned* out, int form) {
    begin<T>();
    int n = of(pattern);
    unsigned value = threadIdx.x;
    unsigned odd = __ballot_sync(~0u, n & 1);
    mark<T>(1);
    if (n & 1) {
        mark<T>(2);
        value = __shfl_xor_sync(form == 0 ? odd : __activemask(), value, 1) + 5;
        if (form == 2) __syncwarp();
        mark<T>(3);
        out[64 + threadIdx.x] = value;
    } else {
        mark<T>(4);
        out[128 + threadIdx.x] = value;
        if (form == 2) __syncwarp();
        mark<T>(5);
        value *= 3;
    }
    if (form == 1) __syncwarp();
    mark<T>(6);
    out[threadIdx.x] = value;
}
// Lanes end inside a loop; the rest goes on and meets.
template <bool T>
__global__ void ends(int pattern, unsigned* out) {
    begin<T>();
    int n = of(pattern) % 10;
    unsigned value = threadIdx.x;
    volatile unsigned* place = out + threadIdx.x;
#pragma unroll 1
    for (int i = 0; i < 12; i++) {
        mark<T>(1);
        if (i == n) {
            mark<T>(2);
            *place = value;
            return;
        }
        if ((value >> (i & 3)) & 1) {
            mark<T>(3);
            *place = i;
        }
        value = value * 5 + 1;
    }
    mark<T>(4);
    out[threadIdx.x] = value;
}

// ---- launches

static unsigned* out;
static int* locks_memory;
static const char* only;

#define LAUNCH(name, kernel_false, kernel_true, ...)                                  \
    do {                                                                              \
        if (only && strcmp(only, name)) {                                             \
            launches++;                                                               \
            break;                                                                    \
        }                                                                             \
        cudaMemset(out, 0, 4096);                                                     \
        cudaMemset(locks_memory, 0, 4096);                                            \
        if (printed)                                                                   \
            kernel_true;                                                              \
        else                                                                          \
            kernel_false;                                                             \
        print(name, {__VA_ARGS__});                                                   \
    } while (0)
#define WITH_PATTERN(kernel)                                                                                                  \
    for (int p = 0; p < PATTERNS; p++) LAUNCH(#kernel, (kernel<false><<<1, 32>>>(p, out)), (kernel<true><<<1, 32>>>(p, out)), p)
#define WITH_PATTERN_AND(kernel, ...)                                                     \
    for (int p = 0; p < PATTERNS; p++)                                                    \
    LAUNCH(#kernel, (kernel<false><<<1, 32>>>(p, out, __VA_ARGS__)), (kernel<true><<<1, 32>>>(p, out, __VA_ARGS__)), p, __VA_ARGS__)

template <bool SHARED, End END, int SLEEP>
static void lock_waits(const char* name) {
    for (int locks : {1, 2, 3})
        for (int lanes : {1, 2, 3, 4, 5, 8, 31, 32}) {
            if (locks > 1 && (lanes < 3 || lanes == 31)) continue;
            LAUNCH(name, (lock_wait<false, SHARED, END, SLEEP><<<1, 32>>>(out, locks_memory, lanes, locks)),
                   (lock_wait<true, SHARED, END, SLEEP><<<1, 32>>>(out, locks_memory, lanes, locks)), lanes, locks);
        }
}

int main(int argc, char** argv) {
    printed = argc > 1 && !strcmp(argv[1], "marks");
    only = argc > 2 ? argv[2] : nullptr;
    static int host[ALL_PATTERNS * 32];
    unsigned random = 7;
    for (int p = 0; p < ALL_PATTERNS; p++)
        for (int l = 0; l < 32; l++) {
            int v = 3;
            random = random * 1664525u + 1013904223u;
            switch (p) {
                case 0: v = 3; break;
                case 1: v = l == 0 ? 1 : 4; break;
                case 2: v = l == 31 ? 1 : 4; break;
                case 3: v = l < 16 ? 2 : 5; break;
                case 4: v = l < 16 ? 5 : 2; break;
                case 5: v = l; break;
                case 6: v = 31 - l; break;
                case 7: v = l / 4; break;
                case 8: v = l % 4; break;
                case 9: v = l % 3; break;
                case 10: v = l == 5 ? 6 : 4; break;
                case 11: v = l < 8 ? 1 : l < 24 ? 4 : 2; break;
                case 12: v = l < 2 ? 0 : l < 12 ? 3 : 5; break;
                case 13: v = l < 10 ? 5 : l < 22 ? 3 : 1; break;
                case 14: v = l & 1; break;
                case 15: v = l & 1 ? 3 : 6; break;
                case 24: v = l < 20 ? 0 : l < 24 ? 1 : 2; break;
                case 25: v = l % 8 ? 0 : 1 + l / 8; break;
                case 26: v = l < 18 ? 3 : l % 3; break;
                case 27: v = l == 0 || l > 9 ? 5 : l % 5; break;
                default: v = (random >> 16) % (p < 18 ? 2 : p < 20 ? 3 : p < 22 ? 5 : 8);
            }
            host[p * 32 + l] = v;
        }
    cudaDeviceSetLimit(cudaLimitStackSize, 8192);
    cudaMemcpyToSymbol(patterns, host, sizeof host);
    cudaMalloc(&out, 4096);
    cudaMalloc(&locks_memory, 4096);
    WITH_PATTERN(recursion);
    WITH_PATTERN(two_calls);
    WITH_PATTERN(loop_of_calls);
    WITH_PATTERN(two_callers);
    for (int targets : {2, 3, 5, 8}) WITH_PATTERN_AND(pointers, targets, 1);
    WITH_PATTERN_AND(pointers, 3, 3);
    WITH_PATTERN_AND(pointers_in_branch, 3);
    WITH_PATTERN(table);
    lock_waits<false, EXITS, 0>("lock_wait_global_exits");
    lock_waits<false, LANES_SYNC, 0>("lock_wait_global_lanes_sync");
    lock_waits<false, BLOCK_SYNC, 0>("lock_wait_global_block_sync");
    lock_waits<false, GOES_ON, 0>("lock_wait_global_goes_on");
    lock_waits<true, EXITS, 0>("lock_wait_shared_exits");
    lock_waits<true, LANES_SYNC, 0>("lock_wait_shared_lanes_sync");
    lock_waits<true, BLOCK_SYNC, 0>("lock_wait_shared_block_sync");
    lock_waits<true, GOES_ON, 0>("lock_wait_shared_goes_on");
    lock_waits<true, EXITS, 100>("lock_wait_shared_exits_sleep");
    lock_waits<true, LANES_SYNC, 100>("lock_wait_shared_lanes_sync_sleep");
    for (int locks : {1, 2})
        for (int lanes : {1, 2, 3, 4, 8, 32}) {
            LAUNCH("lock_try_global", (lock_try<false, false><<<1, 32>>>(out, locks_memory, lanes, locks)),
                   (lock_try<true, false><<<1, 32>>>(out, locks_memory, lanes, locks)), lanes, locks);
            LAUNCH("lock_try_shared", (lock_try<false, true><<<1, 32>>>(out, locks_memory, lanes, locks)),
                   (lock_try<true, true><<<1, 32>>>(out, locks_memory, lanes, locks)), lanes, locks);
        }
    for (int lanes : {1, 2, 3, 4, 8, 32}) {
        LAUNCH("turns_up", (turns<false, true><<<1, 32>>>(out, lanes)), (turns<true, true><<<1, 32>>>(out, lanes)), lanes);
        LAUNCH("turns_down", (turns<false, false><<<1, 32>>>(out, lanes)), (turns<true, false><<<1, 32>>>(out, lanes)), lanes);
    }
    for (int form = 0; form < 4; form++)
        for (int writer : {0, 1, 5, 16, 20, 31})
            LAUNCH("flag", (flag<false><<<1, 32>>>(out, writer, form)), (flag<true><<<1, 32>>>(out, writer, form)), writer, form);
    for (int form = 0; form < 3; form++) WITH_PATTERN_AND(meet, form);
    WITH_PATTERN(ends);
    for (int size = 4; size <= 8; size++)
        for (int first = 0; first < size * size; first += 16)
            LAUNCH("queens", (queens<false><<<1, 32>>>(out, size, first)), (queens<true><<<1, 32>>>(out, size, first)), size, first);
    // Many lanes share the lowest lane's target, the others have several.
    for (int p = PATTERNS; p < ALL_PATTERNS; p++)
        for (int targets : {3, 4, 8})
            LAUNCH("pointers", (pointers<false><<<1, 32>>>(p, out, targets, 1)), (pointers<true><<<1, 32>>>(p, out, targets, 1)), p, targets, 1);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
