// What a kernel pays that finds every cache empty: code, first loads and stores, streams of several widths.
//
// Run under a profiler that empties caches before each launch and counts its cycles (measured again without emptying,
// the difference is what the caches cost). Every launch prints `launch,kernel,parameter`.
#include "common.cuh"

static int launches = 0;

static void say(const char* kernel, const std::string& parameter) {
    CHECK(cudaGetLastError());
    CHECK(cudaDeviceSynchronize());
    std::printf("%d,%s,%s\n", launches++, kernel, parameter.c_str());
    std::fflush(stdout);
}

__global__ void nothing() {}

// COUNT dependent multiply-adds in a row: code of 16 bytes each, no loop.
template <int COUNT>
__global__ void straight(float* out, float a) {
    float x = a;
#pragma unroll
    for (int i = 0; i < COUNT; i++) asm volatile("fma.rn.f32 %0,%0,%1,%1;" : "+f"(x) : "f"(a));
    if (x == 123.0f) out[0] = x;
}

// As many, but every second piece of 64 is jumped over.
template <int COUNT>
__global__ void jumping(float* out, float a, int never) {
    float x = a;
#pragma unroll
    for (int i = 0; i < COUNT / 128; i++) {
#pragma unroll
        for (int j = 0; j < 64; j++) asm volatile("fma.rn.f32 %0,%0,%1,%1;" : "+f"(x) : "f"(a));
        if (never) {
#pragma unroll
            for (int j = 0; j < 64; j++) asm volatile("fma.rn.f32 %0,%0,%1,%1;" : "+f"(x) : "f"(a));
        }
    }
    if (x == 123.0f) out[0] = x;
}

__global__ void load_own(const float* in, float* out) {
    float value = in[blockIdx.x * blockDim.x + threadIdx.x];
    if (value == 123.0f) out[0] = value;
}

__global__ void load_same(const float* in, float* out) {
    float value = in[threadIdx.x % 32];
    if (value == 123.0f) out[0] = value;
}

__global__ void load_twice(const int* in, float* out) {
    int at = in[blockIdx.x * blockDim.x + threadIdx.x];
    at = in[at + 524288 + blockIdx.x * blockDim.x + threadIdx.x];
    if (at == 123) out[0] = at;
}

__global__ void store_own(float* out) { out[blockIdx.x * blockDim.x + threadIdx.x] = 1.0f; }

__constant__ float table[4096];

__global__ void read_constants(float* out, int count) {
    float sum = 0;
    for (int i = 0; i < count; i++) sum += table[i * 16];
    if (sum == 123.0f) out[0] = sum;
}

template <typename T>
__device__ float first_of(T value) {
    return *reinterpret_cast<float*>(&value);
}

template <typename T>
__global__ void read_stream(const T* in, float* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && first_of(in[i]) == 123.0f) out[0] = 1;
}

template <typename T>
__global__ void read_two(const T* a, const T* b, float* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count && first_of(a[i]) + first_of(b[i]) == 123.0f) out[0] = 1;
}

template <typename T>
__global__ void write_stream(T* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = T{};
}

template <typename T>
__global__ void copy_stream(const T* in, T* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = in[i];
}

template <int COUNT>
static void code(float* out) {
    for (int blocks : {1, 132, 132}) {
        straight<COUNT><<<blocks, 32>>>(out, 0.5f);
        say("straight", text("instructions=%d blocks=%d", COUNT, blocks));
    }
    jumping<COUNT><<<132, 32>>>(out, 0.5f, 0);
    say("jumping", text("instructions=%d blocks=132", COUNT));
}

template <typename T>
static void streams(char* memory, float* out) {
    for (int megabytes : {1, 4, 16, 32}) {
        int count = (megabytes << 20) / sizeof(T);
        T* a = reinterpret_cast<T*>(memory);
        T* b = reinterpret_cast<T*>(memory + (64 << 20));
        std::string what = text("width=%zu MiB=%d", sizeof(T), megabytes);
        read_stream<T><<<count / 256, 256>>>(a, out, count);
        say("read_stream", what);
        read_two<T><<<count / 256, 256>>>(a, b, out, count);
        say("read_two", what);
        write_stream<T><<<count / 256, 256>>>(a, count);
        say("write_stream", what);
        copy_stream<T><<<count / 256, 256>>>(a, b, count);
        say("copy_stream", what);
    }
}

int main() {
    char* memory;
    CHECK(cudaMalloc(&memory, 128 << 20));
    CHECK(cudaMemset(memory, 0, 128 << 20));
    float* out;
    CHECK(cudaMalloc(&out, 4096));
    for (int blocks : {1, 132, 1056}) {
        nothing<<<blocks, 256>>>();
        say("nothing", text("blocks=%d", blocks));
    }
    code<16>(out), code<64>(out), code<128>(out), code<256>(out), code<512>(out), code<1024>(out), code<2048>(out), code<4096>(out), code<8192>(out);
    for (int blocks : {1, 132, 264, 528, 1056}) {
        load_own<<<blocks, 256>>>(reinterpret_cast<float*>(memory), out);
        say("load_own", text("blocks=%d", blocks));
        load_same<<<blocks, 256>>>(reinterpret_cast<float*>(memory), out);
        say("load_same", text("blocks=%d", blocks));
        load_twice<<<blocks, 256>>>(reinterpret_cast<int*>(memory), out);
        say("load_twice", text("blocks=%d", blocks));
        store_own<<<blocks, 256>>>(reinterpret_cast<float*>(memory + (16 << 20)));
        say("store_own", text("blocks=%d", blocks));
    }
    // Pages that no kernel has touched, then once more.
    for (int page : {20, 21, 22, 20, 21, 22}) {
        load_same<<<1, 32>>>(reinterpret_cast<float*>(memory + (size_t(page) << 21)), out);
        say("load_page", text("page=%d", page));
    }
    for (int count : {1, 16, 64, 256}) {
        read_constants<<<132, 32>>>(out, count);
        say("read_constants", text("lines=%d", count));
    }
    streams<float>(memory, out);
    streams<float2>(memory, out);
    streams<float4>(memory, out);
    return 0;
}
