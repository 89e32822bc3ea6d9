// Reads of the same lines by SMs of one GPC: for how long, and how many of them, reach L2 as one.
//
// Blocks of a cluster lie in one GPC and meet at its barrier before every read. Run under a profiler that counts what
// SMs ask of L2, without emptying caches. Every launch of `read_same` prints `launch,parameter,sms`.
#include "common.cuh"

constexpr int LINES = 256;

__device__ void meet() {
    asm volatile("barrier.cluster.arrive.aligned;\n\tbarrier.cluster.wait.aligned;" ::: "memory");
}

// Ranks of the mask read each line, those but the lowest `DELAY` dependent instructions later.
template <int DELAY>
__global__ void read_same(const unsigned* in, unsigned mask, unsigned* sms, unsigned* out) {
    unsigned rank;
    asm volatile("mov.u32 %0,%%cluster_ctarank;" : "=r"(rank));
    if (threadIdx.x == 0) sms[rank] = sm();
    bool reads = mask >> rank & 1, late = rank != __ffs(mask) - 1;
    unsigned sum = 0;
    for (int i = 0; i < LINES; i++) {
        meet();
        unsigned x = sum;
        if (late) {
#pragma unroll
            for (int k = 0; k < DELAY; k++) asm volatile("mad.lo.u32 %0,%0,%1,%1;" : "+r"(x) : "r"(mask));
        }
        if (reads) {
            unsigned value;
            asm volatile("ld.global.cg.u32 %0,[%1];" : "=r"(value) : "l"(in + i * 32 + threadIdx.x + (x == 0x12345678)) : "memory");
            sum += value;
        }
        if (sum == 0x12345678) out[0] = sum;
    }
}

static int launches = 0;

template <int DELAY>
static void run(const unsigned* in, unsigned cluster, unsigned mask, unsigned* sms, unsigned* out) {
    CHECK(launch_clusters(read_same<DELAY>, cluster, cluster, 0, in, mask, sms, out));
    CHECK(cudaDeviceSynchronize());
    std::vector<unsigned> where(cluster);
    CHECK(cudaMemcpy(where.data(), sms, cluster * 4, cudaMemcpyDeviceToHost));
    std::printf("%d,cluster=%u mask=%x delay=%d,", launches++, cluster, mask, DELAY);
    for (unsigned number : where) std::printf(" %u", number);
    std::printf("\n");
    std::fflush(stdout);
}

int main() {
    unsigned *in, *sms, *out;
    CHECK(cudaMalloc(&in, 1 << 20));
    CHECK(cudaMemset(in, 0, 1 << 20));
    CHECK(cudaMalloc(&sms, 4096));
    CHECK(cudaMalloc(&out, 4096));
    for (unsigned mask : {0x1u, 0x3u, 0x5u, 0x9u, 0x11u, 0x21u, 0x41u, 0x81u, 0x7u, 0xfu, 0x1fu, 0x3fu, 0x7fu, 0xffu}) run<0>(in, 8, mask, sms, out);
    for (unsigned mask : {0x1u, 0x101u, 0x1001u, 0x8001u, 0xfffu, 0xffffu, 0x5555u}) run<0>(in, 16, mask, sms, out);
    for (unsigned mask : {0x3u, 0x5u, 0xfu, 0xffu}) {
        run<1>(in, 8, mask, sms, out), run<2>(in, 8, mask, sms, out), run<4>(in, 8, mask, sms, out), run<6>(in, 8, mask, sms, out), run<8>(in, 8, mask, sms, out), run<12>(in, 8, mask, sms, out);
        run<16>(in, 8, mask, sms, out), run<24>(in, 8, mask, sms, out), run<32>(in, 8, mask, sms, out), run<64>(in, 8, mask, sms, out), run<128>(in, 8, mask, sms, out);
    }
    return 0;
}
