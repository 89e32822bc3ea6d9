// Lanes that sleep or yield in functions called by pointer: which lanes a match behind the call has together.
//
//   nvcc -O3 -arch=sm_90 yield_in_calls.cu -o yield_in_calls
#include <cstdio>
#include <cstdlib>
__device__ __noinline__ unsigned f(unsigned x, unsigned ns) { unsigned h = x * 77u; __nanosleep(ns); return h + 3; }
__device__ __noinline__ unsigned g(unsigned x, unsigned ns) { return x * 5u / (x % 7 + 1); }
__device__ __noinline__ unsigned e(unsigned x, unsigned ns) { return __popc(x) * g(x, ns); }
__device__ __noinline__ unsigned v(unsigned x, unsigned ns) { volatile unsigned y = x; return y * __popc(x) + *(volatile unsigned *)&y; }
typedef unsigned (*fn)(unsigned, unsigned);
__constant__ fn table[4] = {f, g, e, v};
__global__ void called(unsigned *o, unsigned pattern, unsigned kinds, unsigned ns)
{
    unsigned t = threadIdx.x;
    unsigned lanes = t >> 5 == 1u ? 1u : 0xffffffffu;
    unsigned which = ((pattern >> t) + (pattern >> (t * 7 % 32)) * 2) % kinds;
    unsigned members = __match_any_sync(lanes, which);
    unsigned x = table[which](members, ns);
    o[t] = __match_any_sync(lanes, 0ull);
    o[t + 64] = x;
}
__global__ void looped(unsigned *o, unsigned pattern, unsigned kinds, unsigned ns)
{
    unsigned t = threadIdx.x;
    unsigned lanes = t >> 5 == 1u ? 1u : 0xffffffffu;
    unsigned which = ((pattern >> t) + (pattern >> (t * 7 % 32)) * 2) % kinds;
    unsigned members = __match_any_sync(lanes, which);
    unsigned x = 0;
    for (unsigned i = 0; i <= which; i++) { if (members >> i & 1) __nanosleep(ns); x += g(members + i, ns); }
    o[t] = __match_any_sync(lanes, 0ull);
    o[t + 64] = x;
}
int main()
{
    unsigned *o, host[128];
    cudaMalloc(&o, 512);
    unsigned seed = 12345;
    for (int i = 0; i < 60; i++) {
        seed = seed * 1664525u + 1013904223u;
        unsigned pattern = seed ^ seed >> 13, kinds = 2 + i % 3, ns = (const unsigned[]){0, 1, 30, 1000, 20000}[i / 3 % 5];
        for (int form = 0; form < 2; form++) {
            cudaMemset(o, 0, 512);
            if (form) looped<<<1, 33>>>(o, pattern, kinds, ns);
            else called<<<1, 33>>>(o, pattern, kinds, ns);
            cudaMemcpy(host, o, 512, cudaMemcpyDeviceToHost);
            printf("%d %08x %u %u:", form, pattern, kinds, ns);
            unsigned all = 1;
            for (int t = 0; t < 32; t++) all &= host[t] == 0xffffffffu;
            if (all) printf(" all");
            else for (int t = 0; t < 32; t++) { bool first = true; for (int s = 0; s < t; s++) first &= host[s] != host[t]; if (first) printf(" %08x", host[t]); }
            puts("");
        }
    }
}
