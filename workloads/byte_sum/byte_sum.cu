// Text: bytes summed one by one and four at a time, words counted, and a pattern searched.
//
// Usage: byte_sum [bytes, rounded up to a multiple of 4]
#include <cstring>

#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 256;
constexpr int PATTERN = 4;

__global__ void sum_bytes(const unsigned char* text, int count, unsigned* total) {
    unsigned sum = 0;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < count; i += gridDim.x * THREADS) sum += text[i];
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffffu, sum, distance);
    if (threadIdx.x % 32 == 0) atomicAdd(total, sum);
}

// A word holds four bytes; a dot product with ones adds them.
__global__ void sum_words(const unsigned* text, int words, unsigned* total) {
    unsigned sum = 0;
    for (int i = blockIdx.x * THREADS + threadIdx.x; i < words; i += gridDim.x * THREADS)
        sum = __dp4a(text[i], 0x01010101u, sum);
    for (int distance = 16; distance > 0; distance /= 2) sum += __shfl_down_sync(0xffffffffu, sum, distance);
    if (threadIdx.x % 32 == 0) atomicAdd(total, sum);
}

__host__ __device__ inline bool is_letter(unsigned char c) { return c >= 'a' && c <= 'z'; }

// A word starts where a letter follows something else.
__global__ void count_words(const unsigned char* text, int count, unsigned* total) {
    int i = blockIdx.x * THREADS + threadIdx.x;
    bool starts = i < count && is_letter(text[i]) && (i == 0 || !is_letter(text[i - 1]));
    int in_block = __syncthreads_count(starts);
    if (threadIdx.x == 0 && in_block > 0) atomicAdd(total, unsigned(in_block));
}

__global__ void search_pattern(const unsigned char* text, int count, unsigned* total) {
    const char pattern[PATTERN + 1] = "lock";
    int i = blockIdx.x * THREADS + threadIdx.x;
    bool found = i + PATTERN <= count;
    for (int k = 0; k < PATTERN && found; k++) found = text[i + k] == pattern[k];
    unsigned votes = __ballot_sync(0xffffffffu, found);
    if (threadIdx.x % 32 == 0 && votes) atomicAdd(total, unsigned(__popc(votes)));
}

int main(int argc, char** argv) {
    int count = (argument(argc, argv, 1, 65536, 1 << 29) + 3) / 4 * 4;
    std::vector<unsigned char> text(count);
    Random random(1);
    for (unsigned char& c : text) c = random.below(6) == 0 ? ' ' : static_cast<unsigned char>('a' + random.below(26));
    for (int i = 0; i + PATTERN <= count; i += 97) std::memcpy(&text[i], "lock", PATTERN);
    unsigned wanted[4] = {};
    for (int i = 0; i < count; i++) {
        wanted[0] += text[i];
        wanted[2] += is_letter(text[i]) && (i == 0 || !is_letter(text[i - 1]));
        wanted[3] += i + PATTERN <= count && std::memcmp(&text[i], "lock", PATTERN) == 0;
    }
    wanted[1] = wanted[0];
    Buffer<unsigned char> device_text(text);
    Buffer<unsigned> totals(4);
    totals.clear();
    int strided = std::min(blocks_for(count, THREADS * 8), 1056);
    sum_bytes<<<strided, THREADS>>>(device_text, count, totals.get());
    sum_words<<<strided, THREADS>>>(reinterpret_cast<unsigned*>(device_text.get()), count / 4, totals.get() + 1);
    count_words<<<blocks_for(count, THREADS), THREADS>>>(device_text, count, totals.get() + 2);
    search_pattern<<<blocks_for(count, THREADS), THREADS>>>(device_text, count, totals.get() + 3);
    CHECK_LAUNCH();
    std::vector<unsigned> got = totals.read();
    int wrong = 0;
    for (int i = 0; i < 4; i++) wrong += got[i] != wanted[i];
    return verdict("byte_sum", wrong == 0, "%d bytes, sum %u, %u words, %u matches", count, got[0], got[2], got[3]);
}
