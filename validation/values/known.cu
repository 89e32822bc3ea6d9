// Kernels that once had another value, a hang or a fault here and not on an H200, one line each. `known.txt` is what an
// H200 prints, whatever the compiler's options.
//
//   known          all of them
#include <cooperative_groups.h>
#include <cstdio>
#include <cuda_fp16.h>

namespace cg = cooperative_groups;
using u32 = unsigned;
using u64 = unsigned long long;

static void* memory;

// Runs a kernel of one block on cleared memory and prints the first words that it leaves.
template <typename T, typename... Given>
static void show(const char* name, const char* format, int count, int threads, void (*kernel)(T*, Given...), Given... given) {
    static T result[256];
    cudaMemset(memory, 0, 4096);
    kernel<<<1, threads>>>(static_cast<T*>(memory), given...);
    cudaError_t status = cudaMemcpy(result, memory, sizeof result, cudaMemcpyDeviceToHost);
    printf("%s:", name);
    if (status != cudaSuccess) printf(" %s", cudaGetErrorName(status));
    for (int index = 0; index < count; index++) {
        printf(" ");
        printf(format, result[index]);
    }
    printf("\n");
}

// Constant banks whose size is no multiple of a word, and their address.

__constant__ unsigned char odd_bytes[6] = {1, 2, 3, 4, 5, 6};

__global__ void constant_tail(int* out, int first) {
    out[threadIdx.x] = odd_bytes[first + threadIdx.x];
    if (threadIdx.x == 0) out[6] = odd_bytes[first + 5];
}

__constant__ u64 bank_words[4] = {11, 22, 33, 44};

__global__ void constant_address(u64* out, const u64* symbol, int which) {
    const u64* pointer = which ? bank_words : nullptr;
    out[0] = pointer == symbol;
    out[1] = pointer ? pointer[which + 1] : 99;
    out[2] = *(volatile const u64*)(symbol + threadIdx.x + 3);
}

__constant__ int indices[64] = {5, 6, 7, 8};

__global__ void constant_index(u32* out, const u32* in) {
    short local[16];
    for (u32 i = 0; i < 16; i++) local[i] = i;
    for (u32 i = 0; i < 2; i++) local[(u32)indices[in[i] % 64] % 16] = (short)in[i + 1];
    u32 sum = 0;
    for (u32 i = 0; i < 16; i++) sum = sum * 3 + local[i];
    out[0] = sum;
}

// Votes, matches and shuffles with masks that differ between lanes.

__global__ void match_in_match(u32* out) {
    u32 t = threadIdx.x, mask = __match_any_sync(~0u, t >> 2);
    u32 any = __any_sync(mask, t == 99), all = __all_sync(mask, t < 99);
    out[t] = __match_any_sync(mask, t & 1) + any + 1 - all;
}

__global__ void ballot_in_match(u32* out, const u32* in) {
    u32 t = threadIdx.x;
    out[t] = __ballot_sync(__match_any_sync(~0u, t % 3), in[t % 3] != 99);
}

__global__ void vote_in_match(u32* out) {
    u32 t = threadIdx.x, mask = __match_any_sync(~0u, t % 3);
    out[t] = __any_sync(mask, t == 7) + 2 * __all_sync(mask, t != 9) + 8 * __match_any_sync(mask, t & 1);
}

__global__ void tile_match(u32* out) {
    auto tile = cg::tiled_partition<4>(cg::this_thread_block());
    u32 match = tile.match_any(threadIdx.x * 7 % 3);
    out[threadIdx.x] = match + 100 * tile.ballot(threadIdx.x * 7 & match);
}

// Lanes that return from recursive calls apart from each other, and a barrier behind.

__device__ __noinline__ u64 descend(u32 value, u32 depth) {
    if (depth == 0) return value;
    u64 got = value & 1 ? descend(value * 21117u + 1, depth - 1) : descend(value >> 1, depth >> 1) * 3 + 1;
    if ((value >> 3) % 5 == 0) got ^= descend(value ^ 38555u, depth - 1);
    return got + value;
}

__global__ void recursion_then_barrier(u64* out, u32 seed, u32 depths) {
    u32 value = (threadIdx.x + seed) * 2654435761u;
    value ^= value >> 15;
    value *= 0x2c1b3c6du;
    value ^= value >> 13;
    u64 got = descend(value, value % depths);
    __syncthreads();
    out[threadIdx.x] = got;
}

// Conversions with 64-bit immediates and with upper halves.

__global__ void immediate_conversions(double* out) {
    float f;
    int i;
    long long l;
    double d;
    asm("cvt.rz.f32.f64 %0, %1;" : "=f"(f) : "d"(3.25));
    out[0] = f;
    asm("cvt.rn.f32.f64 %0, %1;" : "=f"(f) : "d"(-1.5));
    out[1] = f;
    asm("cvt.rni.s32.f64 %0, %1;" : "=r"(i) : "d"(1000.5));
    out[2] = i;
    asm("cvt.rpi.s64.f64 %0, %1;" : "=l"(l) : "d"(1000.5));
    out[3] = l;
    asm("cvt.rmi.f64.f64 %0, %1;" : "=d"(d) : "d"(7.5));
    out[4] = d;
    asm("cvt.rz.f32.u64 %0, %1;" : "=f"(f) : "l"(0x40000000000ull));
    out[5] = f;
    asm("cvt.rz.f64.s64 %0, %1;" : "=d"(d) : "l"(0x500000000ll));
    out[6] = d;
}

__global__ void upper_half_conversions(long long* out, u32 pair) {
    long long a, b;
    double c;
    int d;
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.rzi.u64.f16 %0, h;}" : "=l"(a) : "r"(pair + threadIdx.x));
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.rzi.s64.f16 %0, h;}" : "=l"(b) : "r"(pair + threadIdx.x));
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.f64.f16 %0, h;}" : "=d"(c) : "r"(pair + threadIdx.x));
    asm("{.reg .b16 l, h; mov.b32 {l, h}, %1; cvt.rzi.s32.f16 %0, l;}" : "=r"(d) : "r"(pair + threadIdx.x));
    out[0] = a, out[1] = b, out[2] = (long long)c, out[3] = d;
}

__global__ void clamped_and_packed(u32* out, int x, int y, u32 above) {
    u32 packed;
    out[0] = __vimax_s32_relu(x, y);
    asm("cvt.pack.sat.s4.s32.b32 %0, %1, %2, %3;" : "=r"(packed) : "r"(x), "r"(y), "r"(above));
    out[1] = packed;
}

__global__ void half_of_three(u32* out) {
    u32 t = threadIdx.x;
    auto pair = [](u32 n) { return __floats2half2_rn(n % 7, -float(n % 5)); };
    __half2 most = __hmax2(__hmax2(pair(t), pair(t + 32)), pair(t + 64));
    __half2 least = __hmin2(__hmin2(pair(t), pair(t + 32)), pair(t + 64));
    out[t] = *reinterpret_cast<u32*>(&most) ^ *reinterpret_cast<u32*>(&least);
}

// Loads and atomics whose result overwrites the address, as code that is not optimised has them.

__global__ void atomic_sum(u32* out) {
    for (int i = 0; i < 4; i++) out[8 + threadIdx.x] = atomicAdd(out + 1, 1u) / 32;
}

__global__ void volatile_loads(u32* out) {
    u32 sum = 0;
    for (u32 i = 0; i <= threadIdx.x % 3; i++) sum += *(volatile u32*)(out + 200) + i;
    out[threadIdx.x] = sum;
}

__global__ void chain_of_exchanges(u32* out) {
    while (atomicCAS(out, threadIdx.x, threadIdx.x + 1) != threadIdx.x) {}
}

__global__ void spin_lock(u32* out) {
    for (bool done = false; !done;)
        if (atomicCAS(out, 0u, 1u) == 0) {
            __threadfence();
            volatile u32* sum = out + 1;
            *sum = *sum + threadIdx.x + 1;
            __threadfence();
            atomicExch(out, 0u);
            done = true;
        }
}

int main() {
    cudaMalloc(&memory, 4096);
    cudaDeviceSetLimit(cudaLimitStackSize, 8192);
    show("constant_tail", "%d", 7, 6, constant_tail, 0);
    u64* symbol = nullptr;
    cudaGetSymbolAddress(reinterpret_cast<void**>(&symbol), bank_words);
    show("constant_address", "%llu", 3, 1, constant_address, static_cast<const u64*>(symbol), 1);
    u32 given[] = {1, 2, 3}, *in = nullptr;
    cudaMalloc(&in, sizeof given);
    cudaMemcpy(in, given, sizeof given, cudaMemcpyHostToDevice);
    show("constant_index", "%u", 1, 1, constant_index, static_cast<const u32*>(in));
    show("match_in_match", "%x", 8, 32, match_in_match);
    show("ballot_in_match", "%x", 4, 32, ballot_in_match, static_cast<const u32*>(in));
    show("vote_in_match", "%x", 4, 32, vote_in_match);
    show("tile_match", "%u", 12, 32, tile_match);
    show("recursion_then_barrier", "%llx", 8, 8, recursion_then_barrier, 39000u, 4u);
    show("immediate_conversions", "%g", 7, 1, immediate_conversions);
    show("upper_half_conversions", "%lld", 4, 1, upper_half_conversions, 0x4200c500u);
    show("clamped_and_packed", "%x", 2, 1, clamped_and_packed, -3, 5, 9u);
    show("half_of_three", "%x", 8, 32, half_of_three);
    show("atomic_sum", "%u", 40, 32, atomic_sum);
    show("volatile_loads", "%u", 8, 32, volatile_loads);
    show("chain_of_exchanges", "%u", 1, 32, chain_of_exchanges);
    show("spin_lock", "%u", 2, 32, spin_lock);
    printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
