// Which lane's value stays when lanes of one instruction write one place, and in which order the lanes of one atomic
// instruction take effect.
//
//     nvcc -O3 -std=c++17 -arch=sm_90 same_address.cu -o same_address && ./same_address > same_address.csv
//
// Columns: what was executed, bytes of an access, mask of the lanes that take part, how many share a place, whether
// neighbours share or lanes far apart, and the result: for stores the lane whose value stayed, place by place; for
// atomics the lanes in the order in which they took effect.

#include <cstdint>
#include <cstdio>

template <typename Value> struct Made {
    static __device__ Value of(unsigned lane) { return static_cast<Value>(lane + 1); }
};
template <> struct Made<uint2> {
    static __device__ uint2 of(unsigned lane) { return {lane + 1, lane + 1}; }
};
template <> struct Made<uint4> {
    static __device__ uint4 of(unsigned lane) { return {lane + 1, lane + 1, lane + 1, lane + 1}; }
};

__device__ unsigned place_of(unsigned lane, unsigned sharing, bool apart) {
    return apart ? lane % (32 / sharing) : lane / sharing;
}

template <typename Value> __global__ void store_global(Value *to, unsigned lanes, unsigned sharing, bool apart) {
    unsigned lane = threadIdx.x;
    if (lanes >> lane & 1) to[place_of(lane, sharing, apart)] = Made<Value>::of(lane);
}

template <typename Value> __global__ void store_shared(Value *to, unsigned lanes, unsigned sharing, bool apart) {
    __shared__ Value here[32];
    unsigned lane = threadIdx.x;
    here[lane] = Value();
    __syncthreads();
    if (lanes >> lane & 1) here[place_of(lane, sharing, apart)] = Made<Value>::of(lane);
    __syncthreads();
    to[lane] = here[lane];
}

// The lane before each one: what an exchange answers, less one; 32 for the first.
__global__ void exchange_global(uint32_t *word, uint32_t *before, unsigned lanes) {
    unsigned lane = threadIdx.x;
    if (lanes >> lane & 1) before[lane] = atomicExch(word, lane + 1);
}

__global__ void exchange_shared(uint32_t *, uint32_t *before, unsigned lanes) {
    __shared__ uint32_t word;
    unsigned lane = threadIdx.x;
    if (lane == 0) word = 0;
    __syncthreads();
    if (lanes >> lane & 1) before[lane] = atomicExch(&word, lane + 1);
}

__global__ void add_global(uint32_t *word, uint32_t *before, unsigned lanes) {
    unsigned lane = threadIdx.x;
    if (lanes >> lane & 1) before[lane] = atomicAdd(word, lane + 1);
}

static const unsigned MASKS[] = {0xffffffff, 0xfffffffe, 0x7fffffff, 0x0000ffff, 0xffff0000, 0x11111111,
                                 0xeeeeeeee, 0x55555555, 0xaaaaaaaa, 0x80000001, 0x00018000, 0x3c3c3c3c};

template <typename Value, typename Kernel> void stores(const char *what, Kernel kernel, char *memory) {
    for (unsigned sharing : {2u, 4u, 8u, 32u})
        for (bool apart : {false, true})
            for (unsigned lanes : MASKS) {
                cudaMemset(memory, 0, 1024);
                kernel<<<1, 32>>>(reinterpret_cast<Value *>(memory), lanes, sharing, apart);
                Value host[32];
                cudaMemcpy(host, memory, sizeof(host), cudaMemcpyDeviceToHost);
                printf("%s,%zu,%08x,%u,%s,", what, sizeof(Value), lanes, sharing, apart ? "apart" : "neighbours");
                for (unsigned place = 0; place < 32 / sharing; place++) {
                    const uint8_t *bytes = reinterpret_cast<const uint8_t *>(&host[place]);
                    printf("%s", place ? " " : "");
                    if (bytes[0]) printf("%d", bytes[0] - 1);
                    else printf("-");
                }
                printf("\n");
            }
}

template <typename Kernel> void atomics(const char *what, Kernel kernel, char *memory, bool sums) {
    for (unsigned lanes : MASKS) {
        cudaMemset(memory, 0, 1024);
        uint32_t *before = reinterpret_cast<uint32_t *>(memory) + 32;
        kernel<<<1, 32>>>(reinterpret_cast<uint32_t *>(memory), before, lanes);
        uint32_t host[32];
        cudaMemcpy(host, before, sizeof(host), cudaMemcpyDeviceToHost);
        printf("%s,4,%08x,32,neighbours,", what, lanes);
        uint32_t state = 0;
        for (int step = 0; step < __builtin_popcount(lanes); step++) {
            int next = -1;
            for (int lane = 0; lane < 32; lane++)
                if ((lanes >> lane & 1) && host[lane] == state) next = lane;
            if (next < 0) break;
            printf("%s%d", step ? " " : "", next);
            host[next] = 0xffffffff;
            state = sums ? state + next + 1 : next + 1;
        }
        printf("\n");
    }
}

int main() {
    char *memory;
    if (cudaMalloc(&memory, 4096) != cudaSuccess) return 1;
    printf("what,bytes,lanes,sharing,who,result\n");
    stores<uint8_t>("store_global", store_global<uint8_t>, memory);
    stores<uint16_t>("store_global", store_global<uint16_t>, memory);
    stores<uint32_t>("store_global", store_global<uint32_t>, memory);
    stores<uint2>("store_global", store_global<uint2>, memory);
    stores<uint4>("store_global", store_global<uint4>, memory);
    stores<uint8_t>("store_shared", store_shared<uint8_t>, memory);
    stores<uint16_t>("store_shared", store_shared<uint16_t>, memory);
    stores<uint32_t>("store_shared", store_shared<uint32_t>, memory);
    stores<uint2>("store_shared", store_shared<uint2>, memory);
    stores<uint4>("store_shared", store_shared<uint4>, memory);
    atomics("exchange_global", exchange_global, memory, false);
    atomics("exchange_shared", exchange_shared, memory, false);
    atomics("add_global", add_global, memory, true);
    return cudaDeviceSynchronize() == cudaSuccess ? 0 : 1;
}
