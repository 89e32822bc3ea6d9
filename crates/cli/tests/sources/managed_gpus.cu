// GPUs that use the same managed memory, in a way that the first argument names. Values are checked
// here; where pages were is in the run folder.
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>

static const unsigned COUNT = 32 << 10;  // 128 KiB
static const size_t BYTES = COUNT * sizeof(unsigned);

__global__ void add(unsigned *words, unsigned value) {
    words[blockIdx.x * blockDim.x + threadIdx.x] += value;
}

__global__ void sum(const unsigned *words, unsigned *out) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] += words[i];
}

// Parts of 512 words in turn belong to two GPUs: each page to both.
__global__ void add_slowly(unsigned *words, unsigned gpu, unsigned rounds) {
    volatile unsigned *own = words + (2 * blockIdx.x + gpu) * 512 + threadIdx.x;
    for (unsigned round = 0; round < rounds; round++) {
        *own += 1;
        __nanosleep(100000);
    }
}

static void on(int gpu) { cudaSetDevice(gpu); }

static void add_on(int gpu, unsigned *words, unsigned value) {
    on(gpu);
    add<<<COUNT / 256, 256>>>(words, value);
}

static unsigned wrong(const unsigned *words, unsigned factor, unsigned more) {
    unsigned count = 0;
    for (unsigned i = 0; i < COUNT; i++) count += words[i] != factor * i + more;
    return count;
}

#if CUDART_VERSION >= 13000
static cudaMemLocation place(int gpu) {
    cudaMemLocation location = {};
    location.type = gpu < 0 ? cudaMemLocationTypeHost : cudaMemLocationTypeDevice;
    location.id = gpu < 0 ? 0 : gpu;
    return location;
}
static void prefetch(unsigned *words, int gpu) { cudaMemPrefetchAsync(words, BYTES, place(gpu), 0); }
#else
static int place(int gpu) { return gpu < 0 ? cudaCpuDeviceId : gpu; }
static void prefetch(unsigned *words, int gpu) { cudaMemPrefetchAsync(words, BYTES, place(gpu)); }
#endif
static void advise(unsigned *words, cudaMemoryAdvise advice, int gpu) {
    cudaMemAdvise(words, BYTES, advice, place(gpu));
}

int main(int argc, char **argv) {
    const char *way = argv[1];
    auto is = [&](const char *name) { return std::strcmp(way, name) == 0; };
    int gpus = 0;
    cudaGetDeviceCount(&gpus);
    unsigned *words;
    cudaMallocManaged(&words, BYTES);
    for (unsigned i = 0; i < COUNT; i++) words[i] = i;
    unsigned bad = 0;
    if (is("ping-pong")) {
        for (int round = 0; round < 4; round++) {
            add_on(round % gpus, words, 1);
            cudaDeviceSynchronize();
        }
        bad = wrong(words, 1, 4);
    } else if (is("at-once")) {
        for (int gpu = 0; gpu < 2; gpu++) on(gpu), add_slowly<<<COUNT / 1024, 512>>>(words, gpu, 6);
        for (int gpu = 0; gpu < 2; gpu++) on(gpu), cudaDeviceSynchronize();
        bad = wrong(words, 1, 6);
    } else if (is("copies")) {
        advise(words, cudaMemAdviseSetReadMostly, 0);
        unsigned *out[2];
        for (int round = 0; round < 2; round++)
            for (int gpu = 0; gpu < 2; gpu++) {
                on(gpu);
                if (round == 0) cudaMalloc(&out[gpu], BYTES), cudaMemset(out[gpu], 0, BYTES);
                sum<<<COUNT / 256, 256>>>(words, out[gpu]);
                cudaDeviceSynchronize();
            }
        // One writes: the copy of the other is gone.
        add_on(1, words, 5);
        cudaDeviceSynchronize();
        on(0);
        sum<<<COUNT / 256, 256>>>(words, out[0]);
        static unsigned sums[COUNT];
        cudaMemcpy(sums, out[0], BYTES, cudaMemcpyDeviceToHost);
        bad = wrong(sums, 3, 5) + wrong(words, 1, 5);
    } else if (is("prefetch")) {
        on(0);
        prefetch(words, 0);
        add_on(0, words, 1);
        cudaDeviceSynchronize();
        on(1);
        prefetch(words, 1);
        add_on(1, words, 1);
        prefetch(words, -1);
        cudaDeviceSynchronize();
        bad = wrong(words, 1, 2);
    } else if (is("preferred")) {
        advise(words, cudaMemAdviseSetPreferredLocation, 1);
        add_on(1, words, 1);
        cudaDeviceSynchronize();
        add_on(0, words, 1);
        cudaDeviceSynchronize();
        bad = wrong(words, 1, 2);
    } else if (is("accessed-by")) {
        advise(words, cudaMemAdviseSetAccessedBy, 0);
        add_on(1, words, 1);
        cudaDeviceSynchronize();
        add_on(0, words, 1);
        cudaDeviceSynchronize();
        bad = wrong(words, 1, 2);
    } else {
        bad = 1;
    }
    cudaError_t error = cudaGetLastError();
    bool passed = bad == 0 && error == cudaSuccess;
    printf("%s: %u wrong, %s: %s\n", way, bad, cudaGetErrorString(error), passed ? "PASS" : "FAIL");
    cudaFree(words);
    return !passed;
}
