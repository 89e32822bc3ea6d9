// Kernels of one warp in which lanes meet in divergent code, and atomics through generic addresses. The first take a
// pattern of trip counts and 32 words for results; `meeting.tsv` has what an H200 left for each.
//
// nvcc -cubin -arch=sm_90a -O3 -std=c++17 meeting.cu -o meeting.sm_90.cubin
#define FULL 0xffffffffu
#define KERNEL extern "C" __global__ void

__device__ __forceinline__ unsigned of(int pattern, int lane) {
    switch (pattern) {
        case 0: return lane;
        case 1: return lane & 3;
        case 2: return 31 - lane;
        case 3: return lane == 5 ? 7 : 2;
        case 4: return (lane * 7 + 3) % 11;
        case 5: return lane < 16 ? 1 : 6;
        case 6: return 3;
        default: {
            unsigned x = lane * 2654435761u + pattern * 40503u;
            x ^= x >> 13;
            x *= 2246822519u;
            return (x >> 20) % 9;
        }
    }
}
__device__ __noinline__ unsigned ballot_of(unsigned n) { return __ballot_sync(FULL, n & 1); }
__device__ __noinline__ unsigned shuffle_of(unsigned v, unsigned n) { return __shfl_xor_sync(FULL, v, 1 + (n & 3)); }
__device__ __noinline__ unsigned pair_of(unsigned v, unsigned n) {
    unsigned r = __shfl_down_sync(FULL, v, 1);
    if (n & 1) r += __popc(__ballot_sync(__activemask(), v & 1));
    __syncwarp();
    return r * 3 + 1;
}
__device__ __noinline__ unsigned group_sum(unsigned mask, unsigned v) {
    unsigned r = 0;
#pragma unroll 1
    for (unsigned m = mask; m; m &= m - 1) r += __shfl_sync(mask, v, __ffs(m) - 1);
    return r;
}
__device__ __noinline__ unsigned by_key(unsigned key, unsigned v) {
    unsigned m = __match_any_sync(FULL, key);
    return __reduce_add_sync(m, v) * 7 + __popc(m);
}
__device__ __noinline__ unsigned deep(unsigned n, unsigned v) {
    if (n == 0) return v;
    unsigned r = deep(n - 1, v + 1);
    return r + (__shfl_xor_sync(FULL, r, 1) & 15);
}
__device__ __noinline__ void meet() { __syncwarp(); }
__device__ __noinline__ float sum(float x) {
    for (int d = 16; d; d /= 2) x += __shfl_xor_sync(FULL, x, d);
    return x;
}

#define LOOP(condition)    \
    _Pragma("unroll 1") for (unsigned i = 0; condition; i++)

KERNEL sync_in_branch(int pattern, unsigned* o) {
    int t = threadIdx.x;
    unsigned n = of(pattern, t), v = t;
    __shared__ unsigned s[32];
    s[t] = t;
    if (n & 1) {
        s[t] += 100;
        __syncwarp();
        v = s[t ^ 1];
    }
    o[t] = v;
}
KERNEL ballots_in_loop_of_calls(int pattern, unsigned* o) {
    int t = threadIdx.x;
    unsigned n = of(pattern, t), v = t;
    LOOP(i < n) v += ballot_of(i + t) & 0xffff;
    o[t] = v;
}
KERNEL shuffles_in_loop_of_calls(int pattern, unsigned* o) {
    int t = threadIdx.x;
    unsigned n = of(pattern, t), v = t;
    LOOP(i < n) v += shuffle_of(v, i);
    o[t] = v;
}
KERNEL calls_on_both_sides(int pattern, unsigned* o) {
    int t = threadIdx.x;
    unsigned n = of(pattern, t), v = t;
    LOOP(i < 4) {
        if ((n + i) & 1)
            v += ballot_of(i + t);
        else
            v ^= ballot_of(n);
    }
    o[t] = v;
}
KERNEL ballots_on_both_sides(int pattern, unsigned* o) {
    int t = threadIdx.x;
    unsigned n = of(pattern, t), v = t;
    LOOP(i < 4) {
        if ((n + i) & 1) {
            v += __ballot_sync(FULL, t & 1);
            v *= 3;
        } else {
            v ^= __ballot_sync(FULL, n & 1);
            v += 5;
        }
    }
    o[t] = v;
}
KERNEL shuffles_on_both_sides(int pattern, unsigned* o) {
    int t = threadIdx.x;
    unsigned n = of(pattern, t), v = t;
    v = t * 3 + 1;
    LOOP(i < 4) {
        if ((n + i) & 1) {
            v += __shfl_xor_sync(FULL, v, 1);
            v *= 3;
        } else {
            v ^= __shfl_xor_sync(FULL, v, 1);
            v += 5;
        }
    }
    o[t] = v;
}
KERNEL several_collectives_in_calls(int pattern, unsigned* o) {
    int t = threadIdx.x;
    unsigned n = of(pattern, t), v = t;
    LOOP(i < n) v += pair_of(v, i + n);
    o[t] = v;
}
KERNEL sums_of_groups(int pattern, unsigned* o) {
    int t = threadIdx.x;
    unsigned n = of(pattern, t), v = t;
    LOOP(i < 9) {
        unsigned m = __ballot_sync(FULL, i < n);
        if (i < n) v += group_sum(m, v + i);
    }
    o[t] = v;
}
KERNEL reductions_by_key(int pattern, unsigned* o) {
    int t = threadIdx.x;
    unsigned n = of(pattern, t), v = t;
    LOOP(i < 5) {
        v += by_key((v + n) & 3, v & 255);
        if ((v ^ n) & 4) v += __popc(v);
    }
    o[t] = v;
}
KERNEL unequal_numbers_of_syncs(int pattern, unsigned* o) {
    int t = threadIdx.x;
    unsigned n = of(pattern, t), v = t;
    volatile __shared__ unsigned s[32];
    s[t] = t;
    if (n & 1) {
        s[t] = s[t] * 2;
        __syncwarp();
        s[t] = s[t] + s[t ^ 1];
        __syncwarp();
        s[t] += 7;
    } else {
        s[t] = s[t] * 3;
        __syncwarp();
        s[t] += 9;
    }
    o[t] = s[t];
}
KERNEL ends_and_breaks(int pattern, unsigned* o) {
    int t = threadIdx.x;
    unsigned n = of(pattern, t), v = t;
    if (n == 2) {
        o[t] = 77;
        return;
    }
    LOOP(i < n) {
        if (i == 3) break;
        v += ballot_of(i ^ t);
    }
    o[t] = v;
}
KERNEL recursion_with_shuffles(int pattern, unsigned* o) {
    int t = threadIdx.x;
    unsigned n = of(pattern, t), v = t;
    o[t] = deep(n & 7, t);
}
KERNEL shuffle_in_branch(int pattern, unsigned* o) {
    int t = threadIdx.x;
    unsigned n = of(pattern, t), v = t;
    v = t + 50;
    if (n & 1) v += __shfl_down_sync(FULL, v, 1);
    o[t] = v;
}
KERNEL ballot_in_branch(int pattern, unsigned* o) {
    int t = threadIdx.x;
    unsigned n = of(pattern, t), v = t;
    v = t + 50;
    if (n & 1) v += __ballot_sync(FULL, n & 2);
    o[t] = v;
}
KERNEL breaks_around_syncs_in_calls(int pattern, unsigned* o) {
    int t = threadIdx.x;
    unsigned n = of(pattern, t), v = t;
    v = 0;
    LOOP(i < 9) {
        if (i == n) break;
        v += i;
        meet();
        if ((v + t) % 5 == 0) continue;
        v ^= 3;
        meet();
    }
    o[t] = v;
}
KERNEL reductions_of_floats(int pattern, unsigned* o) {
    int t = threadIdx.x;
    unsigned n = of(pattern, t), v = t;
    float x = t;
    LOOP(i < 6) {
        if ((n + i) % 3 == 0) x = sqrtf(x + i);
        float s = sum(x);
        if (x < s)
            x += s / 7;
        else
            x -= 1;
    }
    o[t] = __float_as_uint(x);
}
KERNEL divisions_beside_ballots(int pattern, unsigned* o) {
    int t = threadIdx.x;
    unsigned n = of(pattern, t), v = t;
    n += 1;
    double x = t + 1;
    LOOP(i < n) {
        x = (x + i) / (n + i);
        unsigned m = __activemask();
        x += __popc(m & __ballot_sync(m, i & 1));
    }
    o[t] = (unsigned)(x * 1000);
}

// Sums through an address of shared or global memory, which the compiler cannot tell.
template <typename T>
__device__ T* either(T* shared, T* global, int which) {
    return which ? shared : global;
}
KERNEL add_doubles(int which, double* global, double* o) {
    __shared__ double s[32];
    s[threadIdx.x] = 0;
    __syncthreads();
    double* p = either(s, global, which);
    double old = atomicAdd(&p[threadIdx.x / 4], 1.0 + threadIdx.x);
    __syncthreads();
    o[threadIdx.x] = p[threadIdx.x];
    o[threadIdx.x + 32] = old;
}
KERNEL add_floats(int which, float* global, float* o) {
    __shared__ float s[32];
    s[threadIdx.x] = 0;
    __syncthreads();
    float* p = either(s, global, which);
    float old = atomicAdd(&p[threadIdx.x / 4], 1.0f + threadIdx.x);
    __syncthreads();
    o[threadIdx.x] = p[threadIdx.x];
    o[threadIdx.x + 32] = old;
}
KERNEL wide_integers(int which, unsigned long long* global, unsigned long long* o) {
    __shared__ unsigned long long s[64];
    s[threadIdx.x] = s[threadIdx.x + 32] = 0;
    __syncthreads();
    unsigned long long* p = either(s, global, which);
    unsigned long long x = (threadIdx.x + 1ull) << 33;
    atomicAdd(&p[0], x);
    atomicMax(&p[1], x);
    atomicOr(&p[2], x);
    atomicXor(&p[3], x);
    atomicExch(&p[4 + threadIdx.x], x);
    atomicCAS(&p[4 + threadIdx.x], x, x + 1);
    __syncthreads();
    o[threadIdx.x] = p[threadIdx.x];
}
