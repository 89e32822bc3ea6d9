// Design changes that a real GPU can show: each question asks for the same result in several ways, one launch a way.
//
//   ranking           runs everything
//   ranking QUESTION  one question
//
// Every launch prints `launch,question,variant`, in the order in which a profiler lists kernels; nothing else launches.
// Results of the variants of a question are compared, so that a way that computes something else is noticed.
#include "variants.cuh"

// ---- block size: one element a thread ----
__global__ void scale_add(const float* a, const float* b, float* c, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) c[i] = 2.5f * a[i] + b[i];
}

static void block_size_of_a_stream() {
    const char* question = "stream-block-size";
    if (!asked(question)) return;
    const int count = 1 << 20;
    float *a = filled(count), *b = filled(count), *c = filled(count);
    double reference = 0;
    bool first = true;
    for (int threads : {32, 64, 128, 256, 1024}) {
        scale_add<<<count / threads, threads>>>(a, b, c, count);
        say(question, "block=" + std::to_string(threads));
        compare(question, c, count, reference, first);
        first = false;
    }
    CHECK(cudaFree(a)); CHECK(cudaFree(b)); CHECK(cudaFree(c));
}

// ---- how many elements a thread takes ----
__global__ void scale_add_strided(const float* a, const float* b, float* c, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) c[i] = 2.5f * a[i] + b[i];
}

static void blocks_of_a_stream() {
    const char* question = "stream-grid";
    if (!asked(question)) return;
    const int count = 1 << 20;
    float *a = filled(count), *b = filled(count), *c = filled(count);
    double reference = 0;
    bool first = true;
    for (int blocks : {33, 66, 132, 264, 1056}) {
        scale_add_strided<<<blocks, 256>>>(a, b, c, count);
        say(question, "blocks=" + std::to_string(blocks));
        compare(question, c, count, reference, first);
        first = false;
    }
    CHECK(cudaFree(a)); CHECK(cudaFree(b)); CHECK(cudaFree(c));
}

// ---- width of accesses ----
template <typename T>
__global__ void scale_wide(const T* a, T* c, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    T value = a[i];
    float* lanes = reinterpret_cast<float*>(&value);
#pragma unroll
    for (int lane = 0; lane < int(sizeof(T) / 4); lane++) lanes[lane] *= 1.5f;
    c[i] = value;
}

static void width_of_accesses() {
    const char* question = "access-width";
    if (!asked(question)) return;
    const int count = 1 << 21;
    float *a = filled(count), *c = filled(count);
    double reference = 0;
    scale_wide<float><<<count / 256, 256>>>(a, c, count);
    say(question, "bytes=4");
    compare(question, c, count, reference, true);
    scale_wide<float2><<<count / 512, 256>>>(reinterpret_cast<float2*>(a), reinterpret_cast<float2*>(c), count / 2);
    say(question, "bytes=8");
    compare(question, c, count, reference, false);
    scale_wide<float4><<<count / 1024, 256>>>(reinterpret_cast<float4*>(a), reinterpret_cast<float4*>(c), count / 4);
    say(question, "bytes=16");
    compare(question, c, count, reference, false);
    CHECK(cudaFree(a)); CHECK(cudaFree(c));
}

// ---- stride between lanes ----
__global__ void scale_apart(const float* a, float* c, int count, int stride) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    int rows = count / stride;
    int at = i % rows * stride + i / rows;
    c[at] = a[at] * 1.5f;
}

static void stride_of_lanes() {
    const char* question = "lane-stride";
    if (!asked(question)) return;
    const int count = 1 << 18;
    float *a = filled(count), *c = filled(count);
    double reference = 0;
    bool first = true;
    for (int stride : {1, 2, 4, 8, 32}) {
        scale_apart<<<count / 256, 256>>>(a, c, count, stride);
        say(question, "stride=" + std::to_string(stride));
        compare(question, c, count, reference, first);
        first = false;
    }
    CHECK(cudaFree(a)); CHECK(cudaFree(c));
}

// ---- tile size of a matrix product ----
template <int TILE>
__global__ void multiply(const float* a, const float* b, float* c, int n) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    int row = blockIdx.y * TILE + threadIdx.y, column = blockIdx.x * TILE + threadIdx.x;
    float sum = 0;
    for (int tile = 0; tile < n; tile += TILE) {
        left[threadIdx.y][threadIdx.x] = a[row * n + tile + threadIdx.x];
        right[threadIdx.y][threadIdx.x] = b[(tile + threadIdx.y) * n + column];
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k++) sum += left[threadIdx.y][k] * right[k][threadIdx.x];
        __syncthreads();
    }
    c[row * n + column] = sum;
}

// Four results a thread, in a column.
template <int TILE>
__global__ void multiply_coarse(const float* a, const float* b, float* c, int n) {
    __shared__ float left[TILE][TILE], right[TILE][TILE];
    int column = blockIdx.x * TILE + threadIdx.x;
    float sums[4] = {};
    for (int tile = 0; tile < n; tile += TILE) {
#pragma unroll
        for (int part = 0; part < 4; part++) {
            int y = threadIdx.y + part * (TILE / 4);
            left[y][threadIdx.x] = a[(blockIdx.y * TILE + y) * n + tile + threadIdx.x];
            right[y][threadIdx.x] = b[(tile + y) * n + column];
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TILE; k++) {
#pragma unroll
            for (int part = 0; part < 4; part++) sums[part] += left[threadIdx.y + part * (TILE / 4)][k] * right[k][threadIdx.x];
        }
        __syncthreads();
    }
#pragma unroll
    for (int part = 0; part < 4; part++) c[(blockIdx.y * TILE + threadIdx.y + part * (TILE / 4)) * n + column] = sums[part];
}

static void tile_of_a_product() {
    const char* question = "product-tile";
    if (!asked(question)) return;
    const int n = 256;
    float *a = filled(n * n), *b = filled(n * n), *c = filled(n * n);
    double reference = 0;
    multiply<4><<<dim3(n / 4, n / 4), dim3(4, 4)>>>(a, b, c, n);
    say(question, "tile=4");
    compare(question, c, n * n, reference, true);
    multiply<8><<<dim3(n / 8, n / 8), dim3(8, 8)>>>(a, b, c, n);
    say(question, "tile=8");
    compare(question, c, n * n, reference, false);
    multiply<16><<<dim3(n / 16, n / 16), dim3(16, 16)>>>(a, b, c, n);
    say(question, "tile=16");
    compare(question, c, n * n, reference, false);
    multiply<32><<<dim3(n / 32, n / 32), dim3(32, 32)>>>(a, b, c, n);
    say(question, "tile=32");
    compare(question, c, n * n, reference, false);
    multiply_coarse<32><<<dim3(n / 32, n / 32), dim3(32, 8)>>>(a, b, c, n);
    say(question, "tile=32 four a thread");
    compare(question, c, n * n, reference, false);
    CHECK(cudaFree(a)); CHECK(cudaFree(b)); CHECK(cudaFree(c));
}

// ---- transposing: tile, padding, rows a thread ----
template <int TILE, int PAD, int ROWS>
__global__ void transpose(const float* in, float* out, int n) {
    __shared__ float tile[TILE][TILE + PAD];
    int x = blockIdx.x * TILE + threadIdx.x, y = blockIdx.y * TILE + threadIdx.y;
#pragma unroll
    for (int row = 0; row < TILE; row += ROWS) tile[threadIdx.y + row][threadIdx.x] = in[(y + row) * n + x];
    __syncthreads();
    x = blockIdx.y * TILE + threadIdx.x, y = blockIdx.x * TILE + threadIdx.y;
#pragma unroll
    for (int row = 0; row < TILE; row += ROWS) out[(y + row) * n + x] = tile[threadIdx.x][threadIdx.y + row];
}

__global__ void transpose_directly(const float* in, float* out, int n) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    out[x * n + y] = in[y * n + x];
}

static void tile_of_a_transpose() {
    const char* question = "transpose-tile";
    if (!asked(question)) return;
    const int n = 1024;
    float *a = filled(n * n), *c = filled(n * n);
    double reference = 0;
    transpose_directly<<<dim3(n / 32, n / 8), dim3(32, 8)>>>(a, c, n);
    say(question, "without a tile");
    compare(question, c, n * n, reference, true);
    transpose<8, 0, 8><<<dim3(n / 8, n / 8), dim3(8, 8)>>>(a, c, n);
    say(question, "tile=8");
    compare(question, c, n * n, reference, false);
    transpose<16, 0, 16><<<dim3(n / 16, n / 16), dim3(16, 16)>>>(a, c, n);
    say(question, "tile=16");
    compare(question, c, n * n, reference, false);
    transpose<32, 0, 32><<<dim3(n / 32, n / 32), dim3(32, 32)>>>(a, c, n);
    say(question, "tile=32");
    compare(question, c, n * n, reference, false);
    transpose<32, 1, 32><<<dim3(n / 32, n / 32), dim3(32, 32)>>>(a, c, n);
    say(question, "tile=32 padded");
    compare(question, c, n * n, reference, false);
    transpose<32, 1, 8><<<dim3(n / 32, n / 32), dim3(32, 8)>>>(a, c, n);
    say(question, "tile=32 padded four a thread");
    compare(question, c, n * n, reference, false);
    CHECK(cudaFree(a)); CHECK(cudaFree(c));
}

// ---- shape of the blocks of a stencil ----
__global__ void blur(const float* in, float* out, int n) {
    int x = blockIdx.x * blockDim.x + threadIdx.x, y = blockIdx.y * blockDim.y + threadIdx.y;
    float sum = 0;
    for (int dy = -2; dy <= 2; dy++)
        for (int dx = -2; dx <= 2; dx++) {
            int sx = min(max(x + dx, 0), n - 1), sy = min(max(y + dy, 0), n - 1);
            sum += in[sy * n + sx];
        }
    out[y * n + x] = sum * 0.04f;
}

static void shape_of_blocks() {
    const char* question = "stencil-block-shape";
    if (!asked(question)) return;
    const int n = 512;
    float *a = filled(n * n), *c = filled(n * n);
    double reference = 0;
    bool first = true;
    for (dim3 block : {dim3(256, 1), dim3(32, 8), dim3(16, 16), dim3(4, 64), dim3(1, 256)}) {
        blur<<<dim3(n / block.x, n / block.y), block>>>(a, c, n);
        say(question, "block=" + std::to_string(block.x) + "x" + std::to_string(block.y));
        compare(question, c, n * n, reference, first);
        first = false;
    }
    CHECK(cudaFree(a)); CHECK(cudaFree(c));
}

// ---- block size of a reduction through shared memory ----
__global__ void reduce(const float* in, float* out, int each) {
    extern __shared__ float sums[];
    const float* mine = in + size_t(blockIdx.x) * blockDim.x * each;
    float sum = 0;
    for (int i = 0; i < each; i++) sum += mine[i * blockDim.x + threadIdx.x];
    sums[threadIdx.x] = sum;
    __syncthreads();
    for (int step = blockDim.x / 2; step > 0; step /= 2) {
        if (threadIdx.x < step) sums[threadIdx.x] += sums[threadIdx.x + step];
        __syncthreads();
    }
    if (threadIdx.x == 0) out[blockIdx.x] = sums[0];
}

static void block_size_of_a_reduction() {
    const char* question = "reduction-block-size";
    if (!asked(question)) return;
    const int count = 1 << 20;
    float *a = filled(count), *c = filled(count / 64);
    CHECK(cudaMemset(c, 0, count / 64 * sizeof(float)));
    double reference = 0;
    bool first = true;
    for (int threads : {64, 128, 256, 512, 1024}) {
        reduce<<<count / threads / 4, threads, threads * 4>>>(a, c, 4);
        say(question, "block=" + std::to_string(threads));
        compare(question, c, count / 64, reference, first);
        first = false;
    }
    CHECK(cudaFree(a)); CHECK(cudaFree(c));
}

// ---- occupancy, limited by dynamic shared memory: loads that depend on each other ----
__global__ void follow(const int* next, float* out, int steps) {
    int at = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < steps; i++) at = next[at];
    out[blockIdx.x * blockDim.x + threadIdx.x] = float(at & 1023);
}

static void occupancy_of_dependent_loads() {
    const char* question = "occupancy-latency";
    if (!asked(question)) return;
    const int count = 1 << 17;
    std::vector<int> host(count);
    for (int i = 0; i < count; i++) host[i] = int((i * 40503u + 12345u) & (count - 1));
    int* next;
    CHECK(cudaMalloc(&next, count * sizeof(int)));
    CHECK(cudaMemcpy(next, host.data(), count * sizeof(int), cudaMemcpyHostToDevice));
    float* out = filled(count);
    CHECK(cudaFuncSetAttribute(follow, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024));
    double reference = 0;
    bool first = true;
    for (int kilobytes : {0, 54, 74, 110, 220}) {
        follow<<<count / 128, 128, kilobytes * 1024>>>(next, out, 8);
        say(question, "shared=" + std::to_string(kilobytes) + "KiB");
        compare(question, out, count, reference, first);
        first = false;
    }
    CHECK(cudaFree(next)); CHECK(cudaFree(out));
}

// ---- the same for chains of arithmetic ----
__global__ void chain(float* out, int steps) {
    float x = float(threadIdx.x) * 0.001f;
    for (int i = 0; i < steps; i++) {
#pragma unroll
        for (int j = 0; j < 32; j++) x = x * 0.999f + 0.001f;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = x;
}

static void occupancy_of_arithmetic() {
    const char* question = "occupancy-arithmetic";
    if (!asked(question)) return;
    const int count = 132 * 8 * 128;
    float* out = filled(count);
    CHECK(cudaFuncSetAttribute(chain, cudaFuncAttributeMaxDynamicSharedMemorySize, 227 * 1024));
    double reference = 0;
    bool first = true;
    for (int kilobytes : {24, 54, 74, 110, 220}) {
        chain<<<132 * 8, 128, kilobytes * 1024>>>(out, 16);
        say(question, "shared=" + std::to_string(kilobytes) + "KiB");
        compare(question, out, count, reference, first);
        first = false;
    }
    CHECK(cudaFree(out));
}

// ---- carve-out: how much of the unified memory is L1 ----
// Each block reads its own region several times; with a small L1 it does not stay there.
__global__ void reread(const float* in, float* out, int words, int rounds) {
    const float* mine = in + size_t(blockIdx.x) * words;
    float sum = 0;
    for (int round = 0; round < rounds; round++) {
        for (int i = threadIdx.x; i < words; i += blockDim.x) sum += mine[i];
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

static void carve_out(const char* question, int kilobytes) {
    if (!asked(question)) return;
    const int words = kilobytes * 256, blocks = 132, threads = 512;
    float* in = filled(size_t(words) * blocks);
    float* out = filled(blocks * threads);
    double reference = 0;
    bool first = true;
    for (int percent : {0, 44, 72, 100}) {
        CHECK(cudaFuncSetAttribute(reread, cudaFuncAttributePreferredSharedMemoryCarveout, percent));
        reread<<<blocks, threads>>>(in, out, words, 8);
        say(question, "shared=" + std::to_string(percent) + "%");
        compare(question, out, blocks * threads, reference, first);
        first = false;
    }
    CHECK(cudaFree(in)); CHECK(cudaFree(out));
}

// ---- carve-out against occupancy: more blocks, less L1 ----
__global__ void reread_shared(const float* in, float* out, int words, int rounds) {
    extern __shared__ float staged[];
    const float* mine = in + size_t(blockIdx.x) * words;
    float sum = 0;
    for (int i = threadIdx.x; i < words; i += blockDim.x) staged[i] = mine[i];
    __syncthreads();
    for (int round = 0; round < rounds; round++) {
        for (int i = threadIdx.x; i < words; i += blockDim.x) sum += staged[i];
        __syncthreads();
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

static void stage_or_cache() {
    const char* question = "stage-or-cache";
    if (!asked(question)) return;
    const int words = 96 * 256, blocks = 264, threads = 256;
    float* in = filled(size_t(words) * blocks);
    float* out = filled(blocks * threads);
    CHECK(cudaFuncSetAttribute(reread_shared, cudaFuncAttributeMaxDynamicSharedMemorySize, words * 4));
    double reference = 0;
    CHECK(cudaFuncSetAttribute(reread, cudaFuncAttributePreferredSharedMemoryCarveout, 0));
    reread<<<blocks, threads>>>(in, out, words, 8);
    say(question, "cached, all for L1");
    compare(question, out, blocks * threads, reference, true);
    CHECK(cudaFuncSetAttribute(reread, cudaFuncAttributePreferredSharedMemoryCarveout, 100));
    reread<<<blocks, threads>>>(in, out, words, 8);
    say(question, "cached, little for L1");
    compare(question, out, blocks * threads, reference, false);
    reread_shared<<<blocks, threads, words * 4>>>(in, out, words, 8);
    say(question, "staged in shared memory");
    compare(question, out, blocks * threads, reference, false);
    CHECK(cudaFree(in)); CHECK(cudaFree(out));
}

// ---- bank conflicts ----
__global__ void conflicts(float* out, int stride, int rounds) {
    __shared__ float bank[32 * 33];
    for (int i = threadIdx.x; i < 32 * 33; i += blockDim.x) bank[i] = float(i % 32);
    __syncthreads();
    float sum = 0;
    int lane = threadIdx.x % 32;
    for (int round = 0; round < rounds; round++) {
#pragma unroll
        for (int i = 0; i < 8; i++) sum += bank[(lane * stride + i + round) % (32 * 33)] * 0.f + 1.f;
    }
    out[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

static void stride_in_shared_memory() {
    const char* question = "bank-stride";
    if (!asked(question)) return;
    const int count = 132 * 2 * 256;
    float* out = filled(count);
    double reference = 0;
    bool first = true;
    for (int stride : {1, 2, 8, 32}) {
        conflicts<<<132 * 2, 256>>>(out, stride, 16);
        say(question, "stride=" + std::to_string(stride));
        compare(question, out, count, reference, first);
        first = false;
    }
    CHECK(cudaFree(out));
}

// ---- counting: copies of the counters ----
__global__ void count_shared(const unsigned* values, float* out, int each, int copies) {
    __shared__ unsigned bins[64 * 8];
    for (int i = threadIdx.x; i < 64 * copies; i += blockDim.x) bins[i] = 0;
    __syncthreads();
    unsigned* mine = bins + threadIdx.x / 32 % copies * 64;
    for (int i = 0; i < each; i++) atomicAdd(&mine[values[(blockIdx.x * each + i) * blockDim.x + threadIdx.x] % 64], 1u);
    __syncthreads();
    for (int i = threadIdx.x; i < 64; i += blockDim.x) {
        unsigned sum = 0;
        for (int copy = 0; copy < copies; copy++) sum += bins[copy * 64 + i];
        atomicAdd(&out[i], float(sum));
    }
}

__global__ void count_global(const unsigned* values, unsigned* out, int each) {
    for (int i = 0; i < each; i++) atomicAdd(&out[values[(blockIdx.x * each + i) * blockDim.x + threadIdx.x] % 64], 1u);
}

static void where_counters_lie() {
    const char* question = "counter-place";
    if (!asked(question)) return;
    const int count = 1 << 18;
    std::vector<unsigned> host(count);
    for (int i = 0; i < count; i++) host[i] = unsigned(i * 2654435761u >> 7);
    unsigned *values, *bins;
    CHECK(cudaMalloc(&values, count * 4));
    CHECK(cudaMemcpy(values, host.data(), count * 4, cudaMemcpyHostToDevice));
    CHECK(cudaMalloc(&bins, 64 * 4));
    CHECK(cudaMemset(bins, 0, 64 * 4));
    float* out = filled(64);
    CHECK(cudaMemset(out, 0, 64 * 4));
    count_global<<<count / 256 / 4, 256>>>(values, bins, 4);
    say(question, "global");
    double reference = 0;
    count_shared<<<count / 256 / 4, 256>>>(values, out, 4, 1);
    say(question, "shared");
    compare(question, out, 64, reference, true);
    count_shared<<<count / 256 / 4, 256>>>(values, out, 4, 8);
    say(question, "shared eight copies");
    compare(question, out, 64, reference, false);
    count_shared<<<count / 256 / 16, 256>>>(values, out, 16, 1);
    say(question, "shared sixteen a thread");
    compare(question, out, 64, reference, false);
    CHECK(cudaFree(values)); CHECK(cudaFree(bins)); CHECK(cudaFree(out));
}

int main(int argc, char** argv) {
    if (argc > 1) chosen = argv[1];
    block_size_of_a_stream();
    blocks_of_a_stream();
    width_of_accesses();
    stride_of_lanes();
    tile_of_a_product();
    tile_of_a_transpose();
    shape_of_blocks();
    block_size_of_a_reduction();
    occupancy_of_dependent_loads();
    occupancy_of_arithmetic();
    carve_out("carve-out-40KiB", 40);
    carve_out("carve-out-112KiB", 112);
    carve_out("carve-out-208KiB", 208);
    stage_or_cache();
    stride_in_shared_memory();
    where_counters_lie();
    std::printf(failed ? "FAIL\n" : "PASS\n");
    return failed;
}
