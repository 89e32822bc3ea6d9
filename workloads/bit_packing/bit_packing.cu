// Numbers of a few bits: packed by blocks of their own width, unpacked, decoded one after the other from runs of unequal
// length, and compacted by ballots.
//
// Usage: bit_packing [numbers]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 128;
constexpr int RUN = 32;  // numbers that share a width

__host__ __device__ inline int width_of(int run) { return 3 + run * 7 % 13; }

// A warp packs a run: lane k makes word k from all numbers that reach into it.
__global__ void pack(const unsigned* numbers, const int* starts, unsigned* packed, int runs) {
    int run = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (run >= runs) return;
    int width = width_of(run);
    unsigned own = numbers[run * RUN + lane], word = 0;
    for (int k = 0; k < RUN; k++) {
        unsigned value = __shfl_sync(0xffffffffu, own, k);
        int shift = k * width - lane * 32;
        if (shift > -32 && shift < 32) word |= shift >= 0 ? value << shift : value >> -shift;
    }
    if (lane < width) packed[starts[run] + lane] = word;
}

__global__ void unpack(const unsigned* packed, const int* starts, unsigned* numbers, int runs) {
    int run = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    if (run >= runs) return;
    int width = width_of(run), bit = lane * width, word = bit / 32, shift = bit % 32;
    const unsigned* own = packed + starts[run];
    unsigned value = own[word] >> shift;
    if (shift + width > 32) value |= own[word + 1] << (32 - shift);
    numbers[run * RUN + lane] = value & ((1u << width) - 1);
}

// A thread a run, bit by bit of what is left in a register.
__global__ void decode_runs(const unsigned* packed, const int* starts, unsigned* sums, int runs) {
    int run = blockIdx.x * blockDim.x + threadIdx.x;
    if (run >= runs) return;
    int width = width_of(run), at = starts[run], left = 0;
    unsigned long long bits = 0;
    unsigned sum = 0;
    for (int k = 0; k < RUN; k++) {
        if (left < width) {
            bits |= (unsigned long long)(packed[at++]) << left;
            left += 32;
        }
        sum = sum * 3u + (unsigned(bits) & ((1u << width) - 1));
        bits >>= width;
        left -= width;
    }
    sums[run] = sum;
}

// Even numbers of each warp, without gaps, behind those of the warps before: places come from one counter a block.
__global__ void compact(const unsigned* numbers, unsigned* kept, int* counts, int count) {
    __shared__ int warps[THREADS / 32];
    int i = blockIdx.x * blockDim.x + threadIdx.x, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    bool keep = i < count && numbers[i] % 2 == 0;
    unsigned ballot = __ballot_sync(0xffffffffu, keep);
    if (lane == 0) warps[warp] = __popc(ballot);
    __syncthreads();
    int before = 0;
    for (int other = 0; other < warp; other++) before += warps[other];
    if (keep) kept[blockIdx.x * THREADS + before + __popc(ballot & ((1u << lane) - 1))] = numbers[i];
    if (threadIdx.x == THREADS - 1) counts[blockIdx.x] = before + warps[warp];
}

int main(int argc, char** argv) {
    int runs = blocks_for(argument(argc, argv, 1, 1 << 15, 1 << 24), RUN), count = runs * RUN, blocks = blocks_for(count, THREADS);
    Random random(13);
    std::vector<unsigned> numbers(count), sums(runs, 0), kept(size_t(blocks) * THREADS, 0);
    std::vector<int> starts(runs), counts(blocks, 0);
    int words = 0;
    for (int run = 0; run < runs; run++) {
        starts[run] = words;
        words += width_of(run);
        for (int k = 0; k < RUN; k++) {
            unsigned& value = numbers[run * RUN + k];
            value = random.next() & ((1u << width_of(run)) - 1);
            sums[run] = sums[run] * 3u + value;
            int block = (run * RUN + k) / THREADS;
            if (value % 2 == 0) kept[block * THREADS + counts[block]++] = value;
        }
    }
    Buffer<unsigned> device_numbers(numbers), packed(words + 1), unpacked(count), decoded(runs), compacted(kept.size());
    Buffer<int> device_starts(starts), device_counts(blocks);
    packed.clear();
    compacted.clear();
    pack<<<blocks_for(size_t(runs) * 32, THREADS), THREADS>>>(device_numbers, device_starts, packed, runs);
    unpack<<<blocks_for(size_t(runs) * 32, THREADS), THREADS>>>(packed, device_starts, unpacked, runs);
    decode_runs<<<blocks_for(runs, THREADS), THREADS>>>(packed, device_starts, decoded, runs);
    compact<<<blocks, THREADS>>>(device_numbers, compacted, device_counts, count);
    CHECK_LAUNCH();
    size_t wrong = mismatches(unpacked.read(), numbers) + mismatches(decoded.read(), sums) + mismatches(compacted.read(), kept) +
                   mismatches(device_counts.read(), counts);
    return verdict("bit_packing", wrong == 0, "%d numbers in %d words, %zu wrong", count, words, wrong);
}
