// Further design changes, asked after the model's rules were made: none of them was used for a rule.
//
//   further           runs everything
//   further QUESTION  one question
//
// As in ranking.cu, every launch prints `launch,question,variant`, and the variants of a question must agree.
#include "variants.cuh"

// Runs the variants of a question one after the other; each leaves its result in `out`.
struct Question {
    const char* name;
    float* out;
    size_t count;
    double reference = 0;
    bool first = true;

    void variant(const std::string& variant, const std::function<void()>& launch) {
        CHECK(cudaMemset(out, 0, count * sizeof(float)));
        launch();
        say(name, variant);
        compare(name, out, count, reference, first);
        first = false;
    }
};

static void ask(const char* name, size_t count, const std::function<void(Question&)>& variants) {
    if (!asked(name)) return;
    Question question{name, filled(count), count};
    variants(question);
    CHECK(cudaFree(question.out));
}

// ---- how many chains of a thread are independent ----
template <int CHAINS>
__global__ void chains(const float* in, float* out, int steps) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value[CHAINS], start = in[i];
    for (int k = 0; k < CHAINS; k++) value[k] = start;
    for (int step = 0; step < steps / CHAINS; step++)
        for (int k = 0; k < CHAINS; k++) value[k] = value[k] * 0.5f + 0.25f;
    float sum = 0;
    for (int k = 0; k < CHAINS; k++) sum += value[k];
    out[i] = sum / CHAINS;
}

static void independent_chains() {
    ask("independent-chains", 132 * 64, [](Question& question) {
        float* in = filled(132 * 64);
        question.variant("chains=1", [=] { chains<1><<<132, 64>>>(in, question.out, 512); });
        question.variant("chains=2", [=] { chains<2><<<132, 64>>>(in, question.out, 512); });
        question.variant("chains=4", [=] { chains<4><<<132, 64>>>(in, question.out, 512); });
        CHECK(cudaFree(in));
    });
}

// ---- how many loads of a thread are on their way ----
template <int LOADS>
__global__ void loads_at_once(const float* in, float* out, int each) {
    int i = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    float sum = 0;
    for (int k = 0; k < each; k += LOADS) {
        float part[LOADS];
#pragma unroll
        for (int j = 0; j < LOADS; j++) part[j] = __ldcg(in + size_t(k + j) * threads + i);
#pragma unroll
        for (int j = 0; j < LOADS; j++) sum += part[j];
        asm volatile("" ::: "memory");
    }
    out[i] = sum;
}

static void loads_in_flight() {
    const int threads = 132 * 128, each = 32;
    ask("loads-in-flight", threads, [=](Question& question) {
        float* in = filled(size_t(threads) * each);
        question.variant("loads=1", [=] { loads_at_once<1><<<132, 128>>>(in, question.out, each); });
        question.variant("loads=2", [=] { loads_at_once<2><<<132, 128>>>(in, question.out, each); });
        question.variant("loads=4", [=] { loads_at_once<4><<<132, 128>>>(in, question.out, each); });
        question.variant("loads=16", [=] { loads_at_once<16><<<132, 128>>>(in, question.out, each); });
        CHECK(cudaFree(in));
    });
}

// ---- order of gathered indices ----
__global__ void gather(const float* in, const int* index, float* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = in[index[i]] * 2.0f;
}

static void order_of_gathers() {
    const int count = 1 << 19;
    ask("gather-order", count, [=](Question& question) {
        float* in = filled(count);
        int* index;
        CHECK(cudaMalloc(&index, count * 4));
        std::vector<int> host(count);
        for (int span : {1, 64, 4096, count}) {
            for (int i = 0; i < count; i++) host[i] = i / span * span + int(unsigned(i % span) * 2654435761u % unsigned(span));
            CHECK(cudaMemcpy(index, host.data(), count * 4, cudaMemcpyHostToDevice));
            question.variant(text("shuffled within=%d", span), [=] { gather<<<count / 256, 256>>>(in, index, question.out, count); });
        }
        CHECK(cudaFree(in));
        CHECK(cudaFree(index));
    });
}

// ---- how far counters spread ----
__global__ void count_spread(float* out, int counters, int each) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    for (int k = 0; k < each; k++) atomicAdd(&out[(i * 2654435761u >> 12) % counters], 1.0f), i += 7919;
}

static void spread_of_counters() {
    ask("counter-spread", 65536, [](Question& question) {
        for (int counters : {1, 16, 256, 65536})
            question.variant(text("counters=%d", counters), [=] { count_spread<<<132, 128>>>(question.out, counters, 4); });
    });
}

// ---- how a block adds up ----
template <int WAY>
__global__ void add_up(const float* in, float* out) {
    __shared__ float parts[256];
    float value = in[blockIdx.x * 256 + threadIdx.x];
    if constexpr (WAY == 0) {
        atomicAdd(&out[blockIdx.x], value);
    } else if constexpr (WAY == 1) {
        for (int distance = 16; distance; distance /= 2) value += __shfl_xor_sync(0xffffffffu, value, distance);
        if (threadIdx.x % 32 == 0) atomicAdd(&out[blockIdx.x], value);
    } else if constexpr (WAY == 2) {
        parts[threadIdx.x] = value;
        for (int half = 128; half; half /= 2) {
            __syncthreads();
            if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
        }
        if (threadIdx.x == 0) out[blockIdx.x] = parts[0];
    } else {
        parts[threadIdx.x] = value;
        __syncthreads();
        if (threadIdx.x == 0) {
            float sum = 0;
            for (float part : parts) sum += part;
            out[blockIdx.x] = sum;
        }
    }
}

static void ways_to_add_up() {
    ask("block-sum", 2048, [](Question& question) {
        float* in = filled(2048 * 256);
        question.variant("atomics of threads", [=] { add_up<0><<<2048, 256>>>(in, question.out); });
        question.variant("shuffles and atomics", [=] { add_up<1><<<2048, 256>>>(in, question.out); });
        question.variant("tree in shared memory", [=] { add_up<2><<<2048, 256>>>(in, question.out); });
        question.variant("one thread", [=] { add_up<3><<<2048, 256>>>(in, question.out); });
        CHECK(cudaFree(in));
    });
}

// ---- how lanes diverge ----
__global__ void diverge(const float* in, float* out, int group, int rounds) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = in[i];
    // Sixteen ways, chosen by groups of lanes; each is the same work.
    int way = i / group % 16;
    for (int other = 0; other < 16; other++)
        if (other == way)
            for (int k = 0; k < rounds; k++) value = value * 0.5f + 0.125f;
    out[i] = value;
}

static void groups_that_diverge() {
    ask("divergence", 132 * 256, [](Question& question) {
        float* in = filled(132 * 256);
        for (int group : {1, 8, 16, 32})
            question.variant(text("group=%d", group), [=] { diverge<<<132, 256>>>(in, question.out, group, 64); });
        CHECK(cudaFree(in));
    });
}

// ---- records or columns ----
struct Record {
    float a, b, c, d, e, f, g, h;
};
__global__ void from_records(const Record* in, float* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = in[i].a + in[i].c * 2.0f;
}
__global__ void from_columns(const float* in, float* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = in[i] + in[size_t(2) * count + i] * 2.0f;
}
__global__ void from_groups(const float* in, float* out, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    const float* group = in + size_t(i / 8) * 64 + i % 8;
    if (i < count) out[i] = group[0] + group[16] * 2.0f;
}

static void records_or_columns() {
    const int count = 1 << 18;
    ask("layout", count, [=](Question& question) {
        float* in;
        CHECK(cudaMalloc(&in, size_t(count) * sizeof(Record)));
        CHECK(cudaMemset(in, 0, size_t(count) * sizeof(Record)));
        question.variant("records", [=] { from_records<<<count / 256, 256>>>(reinterpret_cast<Record*>(in), question.out, count); });
        question.variant("groups of eight", [=] { from_groups<<<count / 256, 256>>>(in, question.out, count); });
        question.variant("columns", [=] { from_columns<<<count / 256, 256>>>(in, question.out, count); });
        CHECK(cudaFree(in));
    });
}

// ---- who takes a row of a matrix ----
__global__ void rows_by_threads(const float* matrix, const float* x, float* out, int columns) {
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (int k = 0; k < columns; k++) sum += matrix[size_t(row) * columns + k] * x[k];
    out[row] = sum;
}
__global__ void rows_by_groups(const float* matrix, const float* x, float* out, int columns, int group) {
    int row = (blockIdx.x * blockDim.x + threadIdx.x) / group, lane = threadIdx.x % group;
    float sum = 0;
    for (int k = lane; k < columns; k += group) sum += matrix[size_t(row) * columns + k] * x[k];
    for (int distance = group / 2; distance; distance /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, distance);
    if (lane == 0) out[row] = sum;
}

static void who_takes_a_row() {
    const int rows = 8192, columns = 64;
    ask("matrix-rows", rows, [=](Question& question) {
        float *matrix = filled(size_t(rows) * columns), *x = filled(columns);
        question.variant("thread", [=] { rows_by_threads<<<rows / 128, 128>>>(matrix, x, question.out, columns); });
        for (int group : {4, 16, 32})
            question.variant(text("lanes=%d", group), [=] { rows_by_groups<<<rows * group / 128, 128>>>(matrix, x, question.out, columns, group); });
        CHECK(cudaFree(matrix));
        CHECK(cudaFree(x));
    });
}

// ---- where a table lies ----
__constant__ float constant_table[1024];
template <int PLACE>
__global__ void look_up(const float* table, float* out, int spread, int rounds) {
    __shared__ float shared_table[1024];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if constexpr (PLACE == 1) {
        for (int k = threadIdx.x; k < 1024; k += blockDim.x) shared_table[k] = table[k];
        __syncthreads();
    }
    float sum = 0;
    for (int k = 0; k < rounds; k++) {
        int at = (threadIdx.x * spread + k * 37 + blockIdx.x) & 1023;
        if constexpr (PLACE == 0) sum += constant_table[at];
        else if constexpr (PLACE == 1) sum += shared_table[at];
        else sum += __ldg(table + at);
    }
    out[i] = sum;
}

static void where_tables_lie() {
    float* table = filled(1024);
    CHECK(cudaMemcpyToSymbol(constant_table, table, 4096, 0, cudaMemcpyDeviceToDevice));
    for (int spread : {0, 33})
        ask(spread ? "table-by-lane" : "table-for-all", 132 * 256, [=](Question& question) {
            question.variant("constant", [=] { look_up<0><<<132, 256>>>(table, question.out, spread, 64); });
            question.variant("shared", [=] { look_up<1><<<132, 256>>>(table, question.out, spread, 64); });
            question.variant("global", [=] { look_up<2><<<132, 256>>>(table, question.out, spread, 64); });
        });
    CHECK(cudaFree(table));
}

// ---- how often a block meets ----
__global__ void meet_often(const float* in, float* out, int steps, int each) {
    __shared__ float cells[512];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float value = in[i];
    for (int step = 0; step < steps; step++) {
        if (step % each == 0) {
            cells[threadIdx.x] = value;
            __syncthreads();
        }
        value = value * 0.5f + 0.25f;
    }
    out[i] = value + cells[threadIdx.x] * 0.0f;
}

static void how_often_blocks_meet() {
    ask("barriers", 132 * 512, [](Question& question) {
        float* in = filled(132 * 512);
        for (int each : {1, 4, 64}) question.variant(text("steps between=%d", each), [=] { meet_often<<<132, 512>>>(in, question.out, 256, each); });
        CHECK(cudaFree(in));
    });
}

// ---- results that a thread of a stencil computes ----
template <int COUNT>
__global__ void stencil(const float* in, float* out, int side) {
    int x = blockIdx.x * blockDim.x + threadIdx.x + 1, y = blockIdx.y * COUNT + 1;
    if (x >= side - 1) return;
    float up = in[(y - 1) * side + x], middle = in[y * side + x];
    for (int k = 0; k < COUNT && y + k < side - 1; k++) {
        float down = in[(y + k + 1) * side + x];
        out[(y + k) * side + x] = 0.25f * (up + down + in[(y + k) * side + x - 1] + in[(y + k) * side + x + 1]) - middle;
        up = middle;
        middle = down;
    }
}

static void results_of_a_stencil() {
    const int side = 1026;
    ask("stencil-coarsening", side * side, [=](Question& question) {
        float* in = filled(side * side);
        question.variant("results=1", [=] { stencil<1><<<dim3(8, 1024), 128>>>(in, question.out, side); });
        question.variant("results=4", [=] { stencil<4><<<dim3(8, 256), 128>>>(in, question.out, side); });
        question.variant("results=16", [=] { stencil<16><<<dim3(8, 64), 128>>>(in, question.out, side); });
        question.variant("results=64", [=] { stencil<64><<<dim3(8, 16), 128>>>(in, question.out, side); });
        CHECK(cudaFree(in));
    });
}

// ---- arithmetic that gives the same ----
template <int WAY>
__global__ void divide(const float* in, float* out, unsigned divisor, float number) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float sum = 0;
    for (unsigned k = 0; k < 64; k++) {
        unsigned place = unsigned(i) + k * 977u, quotient;
        if constexpr (WAY == 0) quotient = place / divisor;
        else if constexpr (WAY == 1) quotient = place / 64u;
        else if constexpr (WAY == 2) quotient = unsigned(double(place) / double(number));
        else quotient = unsigned(__fdividef(float(place), number));
        sum += float(quotient & 255u);
    }
    out[i] = sum + in[i] * 0.0f;
}

static void ways_to_divide() {
    ask("division", 132 * 256, [](Question& question) {
        float* in = filled(132 * 256);
        question.variant("by a variable", [=] { divide<0><<<132, 256>>>(in, question.out, 64u, 64.0f); });
        question.variant("by a constant", [=] { divide<1><<<132, 256>>>(in, question.out, 64u, 64.0f); });
        question.variant("in double precision", [=] { divide<2><<<132, 256>>>(in, question.out, 64u, 64.0f); });
        question.variant("fast in single", [=] { divide<3><<<132, 256>>>(in, question.out, 64u, 64.0f); });
        CHECK(cudaFree(in));
    });
}

// ---- width of stores ----
template <class Word>
__global__ void store_words(Word* out, unsigned bytes) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i * sizeof(Word) < bytes) out[i] = Word();
}

static void width_of_stores() {
    const unsigned bytes = 4 << 20;
    ask("store-width", bytes / 4, [=](Question& question) {
        question.variant("bytes=1", [=] { store_words<<<bytes / 256, 256>>>(reinterpret_cast<char*>(question.out), bytes); });
        question.variant("bytes=2", [=] { store_words<<<bytes / 512, 256>>>(reinterpret_cast<short*>(question.out), bytes); });
        question.variant("bytes=4", [=] { store_words<<<bytes / 1024, 256>>>(reinterpret_cast<int*>(question.out), bytes); });
        question.variant("bytes=16", [=] { store_words<<<bytes / 4096, 256>>>(reinterpret_cast<uint4*>(question.out), bytes); });
    });
}

int main(int argc, char** argv) {
    if (argc > 1) chosen = argv[1];
    independent_chains();
    loads_in_flight();
    order_of_gathers();
    spread_of_counters();
    ways_to_add_up();
    groups_that_diverge();
    records_or_columns();
    who_takes_a_row();
    where_tables_lie();
    how_often_blocks_meet();
    results_of_a_stencil();
    ways_to_divide();
    width_of_stores();
    std::printf(failed ? "FAIL\n" : "PASS\n");
    return failed;
}
