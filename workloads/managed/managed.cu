// Seven programs that touch memory the way unified memory was studied with: graph search, a heat
// stencil, dynamic programming over rows, a layer of a neural network, diffusion, sequence
// alignment, finite differences. Each runs on managed memory or on plain copies; both print the
// same checksum.
//
//   managed BENCHMARK managed|copy|prefetch [published|seed|small|tiny] [repetitions]
//
// `published` has the inputs of UVMSmart's runs, `seed` those of the UVM report (hotspot
// 256, where the report has 30: 30 x 30 cells are one page an array, 256 x 256 the least power of two
// whose trees can bring more than a block; nw and fdtd 512, of which it says nothing), `small` the
// least that has several trees of pages to choose from when memory is short. With repetitions,
// every run prints the time of its kernels: allocations are fresh and written by the host each
// time.
//
// What is managed, how many steps a kernel takes and when the host waits are as in UVMSmart's
// programs: pathfinder and hotspot take several steps a launch, backprop's second kernel works on
// matrices of its own, srad's image alone is managed, and the host reads a corner of it before
// each iteration.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <utility>
#include <vector>

#include <cuda_runtime.h>

#define CHECK(call)                                                                       \
    do {                                                                                  \
        cudaError_t error = (call);                                                       \
        if (error != cudaSuccess) {                                                       \
            std::fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
            std::exit(1);                                                                 \
        }                                                                                 \
    } while (0)

enum Mode { MANAGED, COPY, PREFETCH };
static Mode mode = MANAGED;

// An array that lives in managed memory, or twice.
template <typename T> struct Array {
    T *host = nullptr;
    T *device = nullptr;
    size_t count = 0;

    explicit Array(size_t elements) : count(elements) {
        if (mode == COPY) {
            host = static_cast<T *>(std::malloc(bytes()));
            CHECK(cudaMalloc(&device, bytes()));
        } else {
            CHECK(cudaMallocManaged(&host, bytes()));
            device = host;
        }
        std::memset(host, 0, bytes());
    }
    ~Array() {
        if (mode == COPY)
            std::free(host);
        CHECK(cudaFree(device));
    }
    size_t bytes() const { return count * sizeof(T); }
    void to_device() {
        if (mode == COPY)
            CHECK(cudaMemcpy(device, host, bytes(), cudaMemcpyHostToDevice));
        if (mode == PREFETCH) {
            cudaMemLocation where = {cudaMemLocationTypeDevice, 0};
            CHECK(cudaMemPrefetchAsync(host, bytes(), where, 0, 0));
        }
    }
    // The host may look at it.
    void to_host() {
        if (mode == COPY)
            CHECK(cudaMemcpy(host, device, bytes(), cudaMemcpyDeviceToHost));
        else
            CHECK(cudaDeviceSynchronize());
    }
};

// An array that only kernels use: never managed.
template <typename T> struct Scratch {
    T *device = nullptr;
    explicit Scratch(size_t elements) { CHECK(cudaMalloc(&device, elements * sizeof(T))); }
    ~Scratch() { CHECK(cudaFree(device)); }
};

// Times what is launched while it lives. Nothing waits for it before all is over.
struct Timer {
    struct Span {
        cudaEvent_t begin, end;
    };
    static std::vector<Span> spans;
    Timer() {
        Span span;
        CHECK(cudaEventCreate(&span.begin));
        CHECK(cudaEventCreate(&span.end));
        spans.push_back(span);
        CHECK(cudaEventRecord(span.begin));
    }
    ~Timer() { CHECK(cudaEventRecord(spans.back().end)); }
    static float milliseconds() {
        float sum = 0;
        CHECK(cudaDeviceSynchronize());
        for (Span &span : spans) {
            float took = 0;
            CHECK(cudaEventElapsedTime(&took, span.begin, span.end));
            sum += took;
            CHECK(cudaEventDestroy(span.begin));
            CHECK(cudaEventDestroy(span.end));
        }
        spans.clear();
        return sum;
    }
};
std::vector<Timer::Span> Timer::spans;

static uint32_t random_state = 1;
static uint32_t next_random() {
    random_state = random_state * 1664525u + 1013904223u;
    return random_state >> 8;
}

template <typename T> static uint64_t checksum(const T *values, size_t count) {
    uint64_t sum = 1469598103934665603ull;
    const uint8_t *bytes = reinterpret_cast<const uint8_t *>(values);
    for (size_t i = 0; i < count * sizeof(T); i++)
        sum = (sum ^ bytes[i]) * 1099511628211ull;
    return sum;
}

// ---- bfs -------------------------------------------------------------------------------------

struct Node {
    int first, edges;
};

__global__ void bfs_visit(const Node *nodes, const int *edges, bool *frontier, bool *next,
                          const bool *visited, int *cost, int count) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node >= count || !frontier[node])
        return;
    frontier[node] = false;
    Node own = nodes[node];
    for (int edge = own.first; edge < own.first + own.edges; edge++) {
        int target = edges[edge];
        if (!visited[target]) {
            cost[target] = cost[node] + 1;
            next[target] = true;
        }
    }
}

__global__ void bfs_advance(bool *frontier, bool *next, bool *visited, bool *again, int count) {
    int node = blockIdx.x * blockDim.x + threadIdx.x;
    if (node < count && next[node]) {
        frontier[node] = true;
        visited[node] = true;
        next[node] = false;
        *again = true;
    }
}

static uint64_t bfs(int count, int edge_count) {
    Array<Node> nodes(count);
    Array<int> edges(edge_count);
    Array<bool> frontier(count), next(count), visited(count);
    Array<int> cost(count);
    random_state = 7;
    for (int node = 0; node < count; node++) {
        int first = (int)((int64_t)node * edge_count / count);
        int last = (int)((int64_t)(node + 1) * edge_count / count);
        nodes.host[node] = {first, last - first};
        cost.host[node] = -1;
    }
    for (int edge = 0; edge < edge_count; edge++)
        edges.host[edge] = next_random() % count;
    frontier.host[0] = visited.host[0] = true;
    cost.host[0] = 0;
    nodes.to_device(), edges.to_device(), frontier.to_device(), next.to_device();
    visited.to_device(), cost.to_device();
    int blocks = (count + 511) / 512;
    // The flag is copied, as in UVMSmart's program: on managed memory it would move to and fro.
    bool *again = nullptr;
    CHECK(cudaMalloc(&again, sizeof *again));
    bool more = true;
    while (more) {
        more = false;
        CHECK(cudaMemcpy(again, &more, sizeof more, cudaMemcpyHostToDevice));
        {
            Timer timer;
            bfs_visit<<<blocks, 512>>>(nodes.device, edges.device, frontier.device, next.device,
                                       visited.device, cost.device, count);
            bfs_advance<<<blocks, 512>>>(frontier.device, next.device, visited.device,
                                         again, count);
        }
        CHECK(cudaMemcpy(&more, again, sizeof more, cudaMemcpyDeviceToHost));
    }
    CHECK(cudaFree(again));
    cost.to_host();
    return checksum(cost.host, count);
}

// ---- hotspot ---------------------------------------------------------------------------------

const int HOTSPOT_TILE = 16;

// Several steps of a tile with as many cells around it as there are steps: those cells are computed
// by neighbours as well, so that blocks need not meet between steps.
__global__ void hotspot_steps(const float *power, const float *from, float *to, int size,
                              int steps) {
    __shared__ float tile[HOTSPOT_TILE][HOTSPOT_TILE];
    int inner = HOTSPOT_TILE - 2 * steps, tx = threadIdx.x, ty = threadIdx.y;
    int x = blockIdx.x * inner - steps + tx, y = blockIdx.y * inner - steps + ty;
    bool inside = x >= 0 && x < size && y >= 0 && y < size;
    int at = y * size + x;
    float heat = inside ? power[at] : 0.0f;
    tile[ty][tx] = inside ? from[at] : 0.0f;
    __syncthreads();
    for (int step = 1; step <= steps; step++) {
        bool computes = inside && tx >= step && tx < HOTSPOT_TILE - step && ty >= step &&
                        ty < HOTSPOT_TILE - step;
        float value = 0.0f;
        if (computes) {
            float own = tile[ty][tx];
            float north = y > 0 ? tile[ty - 1][tx] : own;
            float south = y < size - 1 ? tile[ty + 1][tx] : own;
            float west = x > 0 ? tile[ty][tx - 1] : own;
            float east = x < size - 1 ? tile[ty][tx + 1] : own;
            value = own + 0.125f * (heat + (north + south - 2.0f * own) * 0.1f +
                                    (west + east - 2.0f * own) * 0.1f + (80.0f - own) * 0.00005f);
        }
        __syncthreads();
        if (computes)
            tile[ty][tx] = value;
        __syncthreads();
    }
    if (inside && tx >= steps && tx < HOTSPOT_TILE - steps && ty >= steps &&
        ty < HOTSPOT_TILE - steps)
        to[at] = tile[ty][tx];
}

static uint64_t hotspot(int size, int height, int iterations) {
    size_t cells = (size_t)size * size;
    Array<float> power(cells), first(cells), second(cells);
    random_state = 11;
    for (size_t i = 0; i < cells; i++) {
        power.host[i] = (next_random() & 255) * 0.001f;
        first.host[i] = 320.0f + (next_random() & 255) * 0.1f;
    }
    power.to_device(), first.to_device(), second.to_device();
    dim3 block(HOTSPOT_TILE, HOTSPOT_TILE);
    float *from = first.device, *to = second.device;
    bool in_second = false;
    {
        Timer timer;
        for (int i = 0; i < iterations; i += height) {
            int steps = std::min(height, iterations - i), inner = HOTSPOT_TILE - 2 * steps;
            dim3 grid((size + inner - 1) / inner, (size + inner - 1) / inner);
            hotspot_steps<<<grid, block>>>(power.device, from, to, size, steps);
            std::swap(from, to);
            in_second = !in_second;
        }
    }
    Array<float> &result = in_second ? second : first;
    result.to_host();
    return checksum(result.host, cells);
}

// ---- pathfinder ------------------------------------------------------------------------------

const int PATHFINDER_BLOCK = 256;

// Several rows at once: a block begins with as many columns more on either side as it takes rows,
// so that blocks need not meet between rows.
__global__ void pathfinder_rows(const int *wall, const int *from, int *to, int columns, int rows) {
    __shared__ int best[PATHFINDER_BLOCK];
    int inner = PATHFINDER_BLOCK - 2 * rows, x = threadIdx.x;
    int column = (int)blockIdx.x * inner - rows + x;
    bool inside = column >= 0 && column < columns;
    if (inside)
        best[x] = from[column];
    __syncthreads();
    for (int row = 0; row < rows; row++) {
        bool computes = inside && x > row && x < PATHFINDER_BLOCK - 1 - row;
        int value = 0;
        if (computes) {
            int least = best[x];
            if (column > 0)
                least = min(least, best[x - 1]);
            if (column < columns - 1)
                least = min(least, best[x + 1]);
            value = least + wall[(size_t)row * columns + column];
        }
        __syncthreads();
        if (computes)
            best[x] = value;
        __syncthreads();
    }
    if (inside && x >= rows && x < PATHFINDER_BLOCK - rows)
        to[column] = best[x];
}

static uint64_t pathfinder(int columns, int rows, int height) {
    Array<int> wall((size_t)columns * (rows - 1));
    Array<int> first(columns), second(columns);
    random_state = 13;
    for (size_t i = 0; i < wall.count; i++)
        wall.host[i] = next_random() % 10;
    for (int i = 0; i < columns; i++)
        first.host[i] = next_random() % 10;
    wall.to_device(), first.to_device(), second.to_device();
    int *from = first.device, *to = second.device;
    bool in_second = false;
    {
        Timer timer;
        for (int row = 0; row < rows - 1; row += height) {
            int taken = std::min(height, rows - 1 - row), inner = PATHFINDER_BLOCK - 2 * taken;
            pathfinder_rows<<<(columns + inner - 1) / inner, PATHFINDER_BLOCK>>>(
                wall.device + (size_t)row * columns, from, to, columns, taken);
            std::swap(from, to);
            in_second = !in_second;
        }
    }
    Array<int> &result = in_second ? second : first;
    result.to_host();
    return checksum(result.host, columns);
}

// ---- backprop --------------------------------------------------------------------------------

const int HIDDEN = 16;

// Sums of inputs times weights, by blocks of 16 inputs. What the sums are made of stays in place of
// the weights: the second kernel has a copy of its own.
__global__ void layer_forward(const float *input, float *weights, float *partial, int inputs) {
    __shared__ float own[16];
    __shared__ float sums[16][HIDDEN];
    int tx = threadIdx.x, ty = threadIdx.y;
    int row = blockIdx.x * 16 + ty;
    size_t at = (size_t)(row + 1) * (HIDDEN + 1) + tx + 1;
    bool inside = row < inputs;
    if (tx == 0)
        own[ty] = inside ? input[row + 1] : 0.0f;
    __syncthreads();
    sums[ty][tx] = inside ? own[ty] * weights[at] : 0.0f;
    __syncthreads();
    for (int step = 1; step < 16; step *= 2) {
        if (ty % (2 * step) == 0)
            sums[ty][tx] += sums[ty + step][tx];
        __syncthreads();
    }
    if (inside)
        weights[at] = sums[ty][tx];
    if (tx == 0)
        partial[blockIdx.x * HIDDEN + ty] = sums[0][ty];
}

__global__ void adjust_weights(const float *delta, const float *input, float *weights,
                               float *previous, int inputs) {
    int tx = threadIdx.x, row = blockIdx.x * 16 + threadIdx.y;
    if (row >= inputs)
        return;
    size_t at = (size_t)(row + 1) * (HIDDEN + 1) + tx + 1;
    weights[at] += 0.3f * delta[tx + 1] * input[row + 1] + 0.3f * previous[at];
    // Read once more: for all that the compiler knows, the store changed it.
    previous[at] = 0.3f * delta[tx + 1] * input[row + 1] + 0.3f * previous[at];
}

static uint64_t backprop(int inputs) {
    size_t matrix = (size_t)(inputs + 1) * (HIDDEN + 1);
    Array<float> input(inputs + 1), delta(HIDDEN + 1), weights(matrix), adjusted(matrix),
        previous(matrix);
    int blocks = (inputs + 15) / 16;
    Array<float> partial((size_t)blocks * HIDDEN);
    random_state = 17;
    for (size_t i = 0; i < input.count; i++)
        input.host[i] = (next_random() & 1023) / 1024.0f;
    for (size_t i = 0; i < matrix; i++)
        adjusted.host[i] = weights.host[i] = (next_random() & 1023) / 1024.0f;
    input.to_device(), weights.to_device(), partial.to_device();
    {
        Timer timer;
        layer_forward<<<blocks, dim3(HIDDEN, 16)>>>(input.device, weights.device, partial.device,
                                                    inputs);
    }
    partial.to_host();
    for (int unit = 0; unit < HIDDEN; unit++) {
        float sum = 0;
        for (int block = 0; block < blocks; block++)
            sum += partial.host[block * HIDDEN + unit];
        delta.host[unit + 1] = sum / (1.0f + sum * sum);
    }
    delta.to_device(), adjusted.to_device(), previous.to_device();
    {
        Timer timer;
        adjust_weights<<<blocks, dim3(HIDDEN, 16)>>>(delta.device, input.device, adjusted.device,
                                                     previous.device, inputs);
    }
    weights.to_host(), adjusted.to_host(), previous.to_host();
    return checksum(weights.host, matrix) ^ checksum(adjusted.host, matrix) ^
           checksum(previous.host, matrix);
}

// ---- srad ------------------------------------------------------------------------------------

const int SRAD_TILE = 16;

// What lies around a cell, less the cell; and how much of it is to flow. Every thread brings a cell
// of its tile and one of each side of it.
__global__ void srad_gradient(const float *image, float *coefficient, float *north, float *south,
                              float *west, float *east, int size, float scale) {
    __shared__ float tile[SRAD_TILE][SRAD_TILE], above[SRAD_TILE][SRAD_TILE],
        below[SRAD_TILE][SRAD_TILE], before[SRAD_TILE][SRAD_TILE], after[SRAD_TILE][SRAD_TILE];
    int tx = threadIdx.x, ty = threadIdx.y, last = SRAD_TILE - 1;
    int left = blockIdx.x * SRAD_TILE, top = blockIdx.y * SRAD_TILE;
    int x = left + tx, y = top + ty, at = y * size + x;
    above[ty][tx] = image[max(top - 1, 0) * size + x];
    below[ty][tx] = image[min(top + SRAD_TILE, size - 1) * size + x];
    __syncthreads();
    before[ty][tx] = image[y * size + max(left - 1, 0)];
    after[ty][tx] = image[y * size + min(left + SRAD_TILE, size - 1)];
    __syncthreads();
    tile[ty][tx] = image[at];
    __syncthreads();
    float own = tile[ty][tx];
    float n = (ty > 0 ? tile[ty - 1][tx] : above[ty][tx]) - own;
    float s = (ty < last ? tile[ty + 1][tx] : below[ty][tx]) - own;
    float w = (tx > 0 ? tile[ty][tx - 1] : before[ty][tx]) - own;
    float e = (tx < last ? tile[ty][tx + 1] : after[ty][tx]) - own;
    float squares = (n * n + s * s + w * w + e * e) / (own * own);
    float laplace = (n + s + w + e) / own;
    float number = 0.5f * squares - 0.0625f * laplace * laplace;
    float root = 1.0f + 0.25f * laplace;
    float q = number / (root * root);
    float value = 1.0f / (1.0f + (q - scale) / (scale * (1.0f + scale)));
    coefficient[at] = fminf(fmaxf(value, 0.0f), 1.0f);
    north[at] = n, south[at] = s, west[at] = w, east[at] = e;
}

__global__ void srad_update(float *image, const float *coefficient, const float *north,
                            const float *south, const float *west, const float *east, int size,
                            float lambda) {
    int x = blockIdx.x * SRAD_TILE + threadIdx.x, y = blockIdx.y * SRAD_TILE + threadIdx.y;
    int at = y * size + x;
    float own = image[at], flow = coefficient[at];
    float below = coefficient[min(y + 1, size - 1) * size + x];
    float after = coefficient[y * size + min(x + 1, size - 1)];
    float sum = flow * north[at] + below * south[at] + flow * west[at] + after * east[at];
    image[at] = own + 0.25f * lambda * sum;
}

// `size` is a multiple of the tile's.
static uint64_t srad(int size, int iterations) {
    size_t cells = (size_t)size * size;
    Array<float> image(cells);
    Scratch<float> coefficient(cells), north(cells), south(cells), west(cells), east(cells);
    random_state = 19;
    for (size_t i = 0; i < cells; i++)
        image.host[i] = 1.0f + (next_random() & 255) / 256.0f;
    image.to_device();
    dim3 grid(size / SRAD_TILE, size / SRAD_TILE), block(SRAD_TILE, SRAD_TILE);
    for (int i = 0; i < iterations; i++) {
        // How much a corner of the image varies says what is noise.
        int corner = std::min(size, 128);
        float sum = 0, squares = 0;
        for (int y = 0; y < corner; y++)
            for (int x = 0; x < corner; x++) {
                float value = image.host[(size_t)y * size + x];
                sum += value, squares += value * value;
            }
        float mean = sum / (corner * corner);
        float scale = (squares / (corner * corner) - mean * mean) / (mean * mean);
        if (mode == PREFETCH)
            image.to_device();
        {
            Timer timer;
            srad_gradient<<<grid, block>>>(image.device, coefficient.device, north.device,
                                           south.device, west.device, east.device, size, scale);
            srad_update<<<grid, block>>>(image.device, coefficient.device, north.device,
                                         south.device, west.device, east.device, size, 0.5f);
        }
        image.to_host();
    }
    return checksum(image.host, cells);
}

// ---- nw --------------------------------------------------------------------------------------

const int NW_TILE = 16;

// One tile of a diagonal of tiles: what it needs is brought into shared memory, and the diagonals
// of the tile itself are computed there.
__global__ void nw_tiles(const int *reference, int *scores, int size, int diagonal, int first,
                         int penalty) {
    __shared__ int tile[NW_TILE + 1][NW_TILE + 1];
    __shared__ int own[NW_TILE][NW_TILE];
    int tile_x = first + blockIdx.x, tile_y = diagonal - tile_x;
    int width = size + 1, x = threadIdx.x;
    size_t corner = (size_t)tile_y * NW_TILE * width + tile_x * NW_TILE;
    for (int y = 0; y < NW_TILE; y++)
        own[y][x] = reference[corner + (size_t)(y + 1) * width + x + 1];
    tile[0][x + 1] = scores[corner + x + 1];
    tile[x + 1][0] = scores[corner + (size_t)(x + 1) * width];
    if (x == 0)
        tile[0][0] = scores[corner];
    __syncthreads();
    for (int step = 0; step < 2 * NW_TILE - 1; step++) {
        int y = step - x;
        if (y >= 0 && y < NW_TILE) {
            int best = tile[y][x] + own[y][x];
            best = max(best, tile[y + 1][x] - penalty);
            tile[y + 1][x + 1] = max(best, tile[y][x + 1] - penalty);
        }
        __syncthreads();
    }
    for (int y = 0; y < NW_TILE; y++)
        scores[corner + (size_t)(y + 1) * width + x + 1] = tile[y + 1][x + 1];
}

// `size` is a multiple of the tile's.
static uint64_t nw(int size, int penalty) {
    size_t cells = (size_t)(size + 1) * (size + 1);
    Array<int> reference(cells), scores(cells);
    random_state = 23;
    for (size_t i = 0; i < cells; i++)
        reference.host[i] = (int)(next_random() % 21) - 10;
    for (int i = 0; i <= size; i++) {
        scores.host[i] = -i * penalty;
        scores.host[(size_t)i * (size + 1)] = -i * penalty;
    }
    reference.to_device(), scores.to_device();
    int tiles = size / NW_TILE;
    {
        Timer timer;
        for (int diagonal = 0; diagonal < 2 * tiles - 1; diagonal++) {
            int first = diagonal < tiles ? 0 : diagonal - tiles + 1;
            int last = diagonal < tiles ? diagonal : tiles - 1;
            nw_tiles<<<last - first + 1, NW_TILE>>>(reference.device, scores.device, size, diagonal,
                                               first, penalty);
        }
    }
    scores.to_host();
    return checksum(scores.host, cells);
}

// ---- fdtd ------------------------------------------------------------------------------------

__global__ void fdtd_y(const float *source, float *ey, const float *hz, int size, int step) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x >= size || y >= size)
        return;
    int at = y * size + x;
    ey[at] = y == 0 ? source[step] : ey[at] - 0.5f * (hz[at] - hz[at - size]);
}

__global__ void fdtd_x(float *ex, const float *hz, int size) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x > 0 && x < size && y < size) {
        int at = y * size + x;
        ex[at] -= 0.5f * (hz[at] - hz[at - 1]);
    }
}

__global__ void fdtd_h(const float *ex, const float *ey, float *hz, int size) {
    int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 8 + threadIdx.y;
    if (x < size - 1 && y < size - 1) {
        int at = y * size + x;
        hz[at] -= 0.7f * (ex[at + 1] - ex[at] + ey[at + size] - ey[at]);
    }
}

static uint64_t fdtd(int size, int iterations) {
    size_t cells = (size_t)size * size;
    Array<float> source(iterations), ex(cells), ey(cells), hz(cells);
    random_state = 29;
    for (int i = 0; i < iterations; i++)
        source.host[i] = (float)i;
    for (size_t i = 0; i < cells; i++) {
        ex.host[i] = (next_random() & 255) / 256.0f;
        ey.host[i] = (next_random() & 255) / 256.0f;
        hz.host[i] = (next_random() & 255) / 256.0f;
    }
    source.to_device(), ex.to_device(), ey.to_device(), hz.to_device();
    dim3 grid((size + 31) / 32, (size + 7) / 8), block(32, 8);
    {
        Timer timer;
        for (int step = 0; step < iterations; step++) {
            fdtd_y<<<grid, block>>>(source.device, ey.device, hz.device, size, step);
            fdtd_x<<<grid, block>>>(ex.device, hz.device, size);
            fdtd_h<<<grid, block>>>(ex.device, ey.device, hz.device, size);
        }
    }
    hz.to_host();
    return checksum(hz.host, cells);
}

// ----------------------------------------------------------------------------------------------

int main(int argc, char **argv) {
    const char *name = argc > 1 ? argv[1] : "hotspot";
    const char *how = argc > 2 ? argv[2] : "managed";
    const char *size = argc > 3 ? argv[3] : "tiny";
    int repetitions = argc > 4 ? std::atoi(argv[4]) : 1;
    mode = !std::strcmp(how, "copy") ? COPY : !std::strcmp(how, "prefetch") ? PREFETCH : MANAGED;
    const char *const sizes[] = {"tiny", "small", "seed", "published"};
    int which = 0;
    while (which < 4 && std::strcmp(size, sizes[which]))
        which++;
    if (which == 4) {
        std::fprintf(stderr, "no size is called %s\n", size);
        return 2;
    }
    for (int repetition = 0; repetition < repetitions; repetition++) {
        uint64_t sum = 0;
        auto input = [&](std::initializer_list<int> values) { return values.begin()[which]; };
        if (!std::strcmp(name, "bfs"))
            sum = bfs(input({4096, 131072, 4096, 261444}), input({16384, 1048576, 24576, 1568420}));
        else if (!std::strcmp(name, "hotspot"))
            sum = hotspot(input({96, 256, 256, 1024}), input({2, 2, 6, 2}), input({4, 4, 40, 8}));
        else if (!std::strcmp(name, "pathfinder"))
            sum = pathfinder(input({8000, 16384, 1000, 50000}), input({10, 100, 20, 200}),
                             input({5, 20, 5, 10}));
        else if (!std::strcmp(name, "backprop"))
            sum = backprop(input({1024, 65536, 65536, 131056}));
        else if (!std::strcmp(name, "srad"))
            sum = srad(input({96, 1280, 1024, 1024}), input({2, 1, 4, 4}));
        else if (!std::strcmp(name, "nw"))
            sum = nw(input({96, 1024, 512, 1024}), 10);
        else if (!std::strcmp(name, "fdtd"))
            sum = fdtd(input({96, 256, 512, 1200}), input({2, 2, 5, 5}));
        else {
            std::fprintf(stderr, "no benchmark is called %s\n", name);
            return 2;
        }
        std::printf("%s %s %s checksum %016llx", name, how, size, (unsigned long long)sum);
        float milliseconds = Timer::milliseconds();
        if (argc > 4)
            std::printf(" kernels_us %.2f", milliseconds * 1000.0f);
        std::printf("\n");
    }
    return 0;
}
