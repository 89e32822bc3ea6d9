// Automata that read text: a table of transitions in shared memory, in global memory, sets of states as bits, and a
// search that compares from the end of the word and jumps.
//
// Usage: automata [bytes]
#include "../common/workload.cuh"

using namespace workload;

constexpr int STATES = 32, LETTERS = 16;
constexpr int THREADS = 128;
constexpr int PART = 64;    // bytes a thread reads
constexpr int WORD = 6;

struct Tables {
    unsigned char next[STATES * LETTERS];
    unsigned follow[LETTERS];
    int jump[LETTERS];
    unsigned char word[WORD];
};

__host__ __device__ inline unsigned run_table(const unsigned char* next, const unsigned char* text) {
    unsigned state = 0, seen = 0;
    for (int i = 0; i < PART; i++) {
        state = next[state * LETTERS + text[i]];
        seen += state == STATES - 1;
    }
    return seen * 256 + state;
}
__host__ __device__ inline unsigned run_bits(const unsigned* follow, const unsigned char* text) {
    unsigned states = 1, seen = 0;
    for (int i = 0; i < PART; i++) {
        states = ((states << 1) | 1u) & follow[text[i]];
        seen += states >> 5 & 1u;
    }
    return seen;
}
__host__ __device__ inline unsigned search_word(const Tables& tables, const unsigned char* text) {
    unsigned found = 0;
    for (int end = WORD - 1; end < PART;) {
        int k = 0;
        while (k < WORD && text[end - k] == tables.word[WORD - 1 - k]) k++;
        found += k == WORD;
        end += tables.jump[text[end]];
    }
    return found;
}

// A part of the text belongs to each thread: lanes read PART bytes apart.
__global__ void table_in_global(const Tables* tables, const unsigned char* text, int parts, unsigned* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < parts) out[i] = run_table(tables->next, text + size_t(i) * PART);
}
__global__ void table_in_shared(const Tables* tables, const unsigned char* text, int parts, unsigned* out) {
    __shared__ unsigned char next[STATES * LETTERS];
    for (int k = threadIdx.x; k < STATES * LETTERS; k += THREADS) next[k] = tables->next[k];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < parts) out[i] = run_table(next, text + size_t(i) * PART);
}
__global__ void sets_of_states(const Tables* tables, const unsigned char* text, int parts, unsigned* out) {
    __shared__ unsigned follow[LETTERS];
    if (threadIdx.x < LETTERS) follow[threadIdx.x] = tables->follow[threadIdx.x];
    __syncthreads();
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < parts) out[i] = run_bits(follow, text + size_t(i) * PART);
}
__global__ void search_with_jumps(const Tables* tables, const unsigned char* text, int parts, unsigned* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < parts) out[i] = search_word(*tables, text + size_t(i) * PART);
}

int main(int argc, char** argv) {
    int parts = blocks_for(argument(argc, argv, 1, 1 << 16, 1 << 26), PART);
    Random random(23);
    std::vector<Tables> tables(1);
    Tables& table = tables[0];
    for (unsigned char& next : table.next) next = static_cast<unsigned char>(random.below(STATES));
    for (unsigned& follow : table.follow) follow = random.next() | random.next();
    for (unsigned char& letter : table.word) letter = static_cast<unsigned char>(random.below(4));
    for (int& jump : table.jump) jump = WORD;
    for (int k = 0; k < WORD - 1; k++) table.jump[table.word[k]] = WORD - 1 - k;
    std::vector<unsigned char> text(size_t(parts) * PART);
    for (unsigned char& letter : text) letter = static_cast<unsigned char>(random.below(3) ? random.below(4) : random.below(LETTERS));
    Buffer<Tables> device_tables(tables);
    Buffer<unsigned char> device_text(text);
    Buffer<unsigned> global(parts), shared(parts), sets(parts), jumps(parts);
    int blocks = blocks_for(parts, THREADS);
    table_in_global<<<blocks, THREADS>>>(device_tables, device_text, parts, global);
    table_in_shared<<<blocks, THREADS>>>(device_tables, device_text, parts, shared);
    sets_of_states<<<blocks, THREADS>>>(device_tables, device_text, parts, sets);
    search_with_jumps<<<blocks, THREADS>>>(device_tables, device_text, parts, jumps);
    CHECK_LAUNCH();
    std::vector<unsigned> wanted[3];
    for (int i = 0; i < parts; i++) {
        const unsigned char* part = text.data() + size_t(i) * PART;
        wanted[0].push_back(run_table(table.next, part));
        wanted[1].push_back(run_bits(table.follow, part));
        wanted[2].push_back(search_word(table, part));
    }
    size_t wrong = mismatches(global.read(), wanted[0]) + mismatches(shared.read(), wanted[0]) + mismatches(sets.read(), wanted[1]) +
                   mismatches(jumps.read(), wanted[2]);
    return verdict("automata", wrong == 0, "%d parts of %d bytes, %zu wrong", parts, PART, wrong);
}
