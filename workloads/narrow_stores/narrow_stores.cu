// Narrow stores all over an array that was cleared just before: bytes and halves at scattered places, bytes of one line
// by several warps, and flags a line apart.
//
// Usage: narrow_stores [places]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 256;

// An odd factor modulo a power of two gives every place once.
__host__ __device__ inline unsigned scattered(unsigned i, unsigned places) { return i * 2654435761u & (places - 1); }
__host__ __device__ inline unsigned char mark(unsigned i) { return static_cast<unsigned char>(i * 7 + 1); }

__global__ void clear_words(uint4* words, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) words[i] = make_uint4(0, 0, 0, 0);
}

// Every fourth place is marked.
__global__ void mark_bytes(unsigned char* bytes, unsigned places) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < places / 4) bytes[scattered(i, places)] = mark(i);
}

__global__ void mark_halves(unsigned short* halves, unsigned places) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < places / 4) halves[scattered(i, places / 2)] = mark(i);
}

// Lane by lane 32 bytes apart: eight warps of a block fill the sectors of 32 neighbours between them.
__global__ void mark_sectors(unsigned char* bytes, unsigned places) {
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, base = blockIdx.x * 1024;
    if (base < places) bytes[base + lane * 32 + warp] = mark(base + lane);
}

// Some lanes only, by a condition on what is there: a load before each store.
__global__ void mark_where_zero(unsigned char* bytes, unsigned places) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= places / 4) return;
    unsigned place = scattered(i * 3, places);
    if (bytes[place] == 0) bytes[place] = mark(i * 3);
}

int main(int argc, char** argv) {
    unsigned places = unsigned(argument(argc, argv, 1, 1 << 17, 1 << 28));
    if (places & (places - 1) || places < 4096) {
        std::fprintf(stderr, "narrow_stores: %u places; expected a power of two from 4096\n", places);
        return 2;
    }
    Buffer<unsigned char> bytes(places), sectors(places), zeros(places);
    Buffer<unsigned short> halves(places / 2);
    int marks = blocks_for(places / 4, THREADS), clears = blocks_for(places / 16, THREADS);
    auto clear = [&](void* memory) { clear_words<<<clears, THREADS>>>(static_cast<uint4*>(memory), places / 16); };
    clear(bytes.get());
    mark_bytes<<<marks, THREADS>>>(bytes, places);
    clear(halves.get());
    mark_halves<<<marks, THREADS>>>(halves, places);
    sectors.clear();
    mark_sectors<<<places / 1024, THREADS>>>(sectors, places);
    zeros.clear();
    mark_where_zero<<<marks, THREADS>>>(zeros, places);
    CHECK_LAUNCH();
    std::vector<unsigned char> wanted_bytes(places), wanted_sectors(places), wanted_zeros(places);
    std::vector<unsigned short> wanted_halves(places / 2);
    for (unsigned i = 0; i < places / 4; i++) {
        wanted_bytes[scattered(i, places)] = mark(i);
        wanted_halves[scattered(i, places / 2)] = mark(i);
        wanted_zeros[scattered(i * 3, places)] = mark(i * 3);
    }
    for (unsigned base = 0; base < places; base += 1024)
        for (unsigned k = 0; k < THREADS; k++) wanted_sectors[base + k % 32 * 32 + k / 32] = mark(base + k % 32);
    size_t wrong = mismatches(bytes.read(), wanted_bytes) + mismatches(halves.read(), wanted_halves) +
                   mismatches(sectors.read(), wanted_sectors) + mismatches(zeros.read(), wanted_zeros);
    return verdict("narrow_stores", wrong == 0, "%u places, %zu wrong", places, wrong);
}
