// Tables in constant memory, indexed in inner loops: by all lanes alike, by groups of lanes, by each lane for itself, and
// over more of the table than the small caches hold.
//
// Usage: constant_tables [values]
#include "../common/workload.cuh"

using namespace workload;

constexpr int TAPS = 64;
constexpr int ENTRIES = 12288;
constexpr int PIECES = 64, DEGREE = 6;
constexpr int THREADS = 256;

__constant__ int taps[TAPS];
__constant__ unsigned table[ENTRIES];
__constant__ int pieces[PIECES][DEGREE];

__global__ void taps_for_all(const int* values, int count, int length, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int sum = 0;
#pragma unroll 1
    for (int k = 0; k < length; k++) sum += values[(i + k) % count] * taps[k];
    out[i] = sum;
}

// Eight lanes evaluate one piece.
__global__ void pieces_by_group(const int* values, int count, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    int value = values[i], sum = 0;
#pragma unroll 1
    for (int round = 0; round < 4; round++) {
        int piece = (i / 8 * 5 + round * 7) % PIECES, polynomial = 0;
        for (int k = 0; k < DEGREE; k++) polynomial = polynomial * value + pieces[piece][k];
        sum += polynomial;
    }
    out[i] = sum;
}

__global__ void lookup_by_lane(const int* values, int count, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned state = unsigned(values[i]);
#pragma unroll 1
    for (int round = 0; round < 8; round++) state = state * 5u + table[state % 256];
    out[i] = int(state);
}

// A warp walks its own part of the table, all lanes at one entry.
__global__ void walk_whole_table(const int* values, int count, int steps, int* out) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned state = unsigned(values[i]), at = unsigned(i / 32) * 397u % ENTRIES;
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        state = (state ^ table[at]) * 9u;
        at += 67;
        if (at >= ENTRIES) at -= ENTRIES;
    }
    out[i] = int(state);
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 8192, 1 << 22);
    constexpr int STEPS = 48;
    Random random(5);
    std::vector<int> values(count), host_taps(TAPS), host_pieces(PIECES * DEGREE);
    std::vector<unsigned> host_table(ENTRIES);
    for (int& value : values) value = random.below(1000);
    for (int& tap : host_taps) tap = random.below(200) - 100;
    for (int& piece : host_pieces) piece = random.below(100);
    for (unsigned& entry : host_table) entry = random.next();
    CHECK(cudaMemcpyToSymbol(taps, host_taps.data(), sizeof taps));
    CHECK(cudaMemcpyToSymbol(table, host_table.data(), sizeof table));
    CHECK(cudaMemcpyToSymbol(pieces, host_pieces.data(), sizeof pieces));
    Buffer<int> device_values(values), tapped(count), pieced(count), looked(count), walked(count);
    int blocks = blocks_for(count, THREADS);
    taps_for_all<<<blocks, THREADS>>>(device_values, count, TAPS, tapped);
    pieces_by_group<<<blocks, THREADS>>>(device_values, count, pieced);
    lookup_by_lane<<<blocks, THREADS>>>(device_values, count, looked);
    walk_whole_table<<<blocks, THREADS>>>(device_values, count, STEPS, walked);
    CHECK_LAUNCH();
    std::vector<int> wanted[4];
    for (std::vector<int>& one : wanted) one.resize(count);
    for (int i = 0; i < count; i++) {
        for (int k = 0; k < TAPS; k++) wanted[0][i] += values[(i + k) % count] * host_taps[k];
        unsigned sum = 0, state = unsigned(values[i]), walk = state, at = unsigned(i / 32) * 397u % ENTRIES;
        for (int round = 0; round < 4; round++) {
            unsigned polynomial = 0;
            for (int k = 0; k < DEGREE; k++)
                polynomial = polynomial * unsigned(values[i]) + unsigned(host_pieces[(i / 8 * 5 + round * 7) % PIECES * DEGREE + k]);
            sum += polynomial;
        }
        wanted[1][i] = int(sum);
        for (int round = 0; round < 8; round++) state = state * 5u + host_table[state % 256];
        wanted[2][i] = int(state);
        for (int step = 0; step < STEPS; step++, at = (at + 67) % ENTRIES) walk = (walk ^ host_table[at]) * 9u;
        wanted[3][i] = int(walk);
    }
    size_t wrong = mismatches(tapped.read(), wanted[0]) + mismatches(pieced.read(), wanted[1]) +
                   mismatches(looked.read(), wanted[2]) + mismatches(walked.read(), wanted[3]);
    return verdict("constant_tables", wrong == 0, "%d values, %zu words wrong", count, wrong);
}
