// A program whose way depends on what it computes: copies, pinned and managed memory, streams, memory that is freed.
// Usage: resumed LAUNCHES [FILE], where FILE holds a number that the first launch is given.
#include <cstdio>
#include <cstdlib>

#define CHECK(call)                                                                       \
    do {                                                                                  \
        cudaError_t code = (call);                                                        \
        if (code != cudaSuccess) {                                                        \
            std::printf("line %d: %s\n", __LINE__, cudaGetErrorString(code));             \
            std::exit(1);                                                                 \
        }                                                                                 \
    } while (0)

__constant__ unsigned factor;

__global__ void mix(const unsigned *in, unsigned *out, unsigned count, unsigned rounds, unsigned *pinned,
                    unsigned *managed, unsigned *total) {
    __shared__ unsigned sum;
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    unsigned number = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned value = in[number];
    for (unsigned round = 0; round < rounds; ++round) {
        value = value * factor + in[(number + value) % count];
    }
    out[number] = value;
    if (number < 1500) managed[number] ^= value;
    atomicAdd(&sum, value);
    __syncthreads();
    if (threadIdx.x == 0) {
        pinned[blockIdx.x] = sum;
        atomicAdd(total, sum);
    }
}

int main(int arguments, char **words) {
    const int launches = std::atoi(words[1]);
    const unsigned blocks = 24, threads = 128, count = blocks * threads;
    unsigned rounds = 20;
    if (arguments > 2) {
        std::FILE *file = std::fopen(words[2], "r");
        if (!file || std::fscanf(file, "%u", &rounds) != 1) return 2;
        std::fclose(file);
    }
    unsigned *in, *out, *total, *pinned, *managed;
    CHECK(cudaMalloc(&in, count * sizeof(unsigned)));
    CHECK(cudaMalloc(&out, count * sizeof(unsigned)));
    CHECK(cudaMalloc(&total, sizeof(unsigned)));
    CHECK(cudaMallocHost(&pinned, blocks * sizeof(unsigned)));
    CHECK(cudaMallocManaged(&managed, 1500 * sizeof(unsigned)));
    unsigned *start = new unsigned[count];
    for (unsigned number = 0; number < count; ++number) start[number] = number * 2654435761u;
    CHECK(cudaMemcpy(in, start, count * sizeof(unsigned), cudaMemcpyHostToDevice));
    cudaStream_t stream;
    CHECK(cudaStreamCreate(&stream));
    unsigned mixed = 1;
    for (int launch = 0; launch < launches; ++launch) {
        unsigned next = mixed | 1;
        CHECK(cudaMemcpyToSymbol(factor, &next, sizeof next));
        CHECK(cudaMemsetAsync(total, 0, sizeof(unsigned), stream));
        mix<<<blocks, threads, 0, stream>>>(in, out, count, rounds, pinned, managed, total);
        CHECK(cudaStreamSynchronize(stream));
        unsigned sum = 0;
        CHECK(cudaMemcpy(&sum, total, sizeof sum, cudaMemcpyDeviceToHost));
        unsigned check = 0;
        for (unsigned block = 0; block < blocks; ++block) check += pinned[block];
        if (check != sum) {
            std::printf("launch %d: %u in pinned memory, %u copied\n", launch, check, sum);
            return 1;
        }
        for (int number = 0; number < 1500; number += 100) mixed = mixed * 31 + managed[number];
        managed[launch % 1500] += launch;
        mixed = mixed * 1664525 + sum;
        // What comes next depends on what came out.
        rounds = 10 + mixed % 50;
        if (mixed % 3 == 0) {
            void *large;
            CHECK(cudaMalloc(&large, 20 << 20));
            CHECK(cudaMemset(large, launch, 1 << 16));
            CHECK(cudaFree(large));
        }
        unsigned *other = in;
        in = out;
        out = other;
        std::printf("launch %d: %u\n", launch, mixed);
    }
    CHECK(cudaFree(in));
    CHECK(cudaFree(out));
    CHECK(cudaFree(managed));
    CHECK(cudaFreeHost(pinned));
    std::printf("PASSED %u\n", mixed);
    return 0;
}
