// Streams that read and write at once, in several proportions: in place, reversed in place, one in and three out, three
// in and one out at odd offsets, and words of alternate lines.
//
// Usage: read_write_mix [words]
#include "../common/workload.cuh"

using namespace workload;

constexpr int THREADS = 256;

__global__ void change_in_place(unsigned* words, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) words[i] = words[i] * 3u + 1u;
}
__global__ void reverse_in_place(unsigned* words, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count / 2; i += gridDim.x * blockDim.x) {
        unsigned left = words[i], right = words[count - 1 - i];
        words[i] = right;
        words[count - 1 - i] = left;
    }
}
__global__ void one_in_three_out(const unsigned* in, unsigned* a, unsigned* b, unsigned* c, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        unsigned value = in[i];
        a[i] = value + 1;
        b[i] = value * 2;
        c[i] = value ^ 3u;
    }
}
__global__ void three_in_one_out(const unsigned* in, unsigned* out, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        out[i] = in[i] + in[(i + count / 3 + 5) % count] * 2u + in[(i + count / 2 + 11) % count] * 3u;
}
// Odd lines are copied onto even ones.
__global__ void between_lines(unsigned* words, int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count / 2; i += gridDim.x * blockDim.x) {
        int at = i / 32 * 64 + i % 32;
        words[at] = words[at + 32] + 7u;
    }
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 1 << 16, 1 << 28) / 64 * 64;
    std::vector<unsigned> start(count);
    for (int i = 0; i < count; i++) start[i] = unsigned(i) * 2654435761u;
    Buffer<unsigned> in(start), changed(start), reversed(start), lines(start), a(count), b(count), c(count), summed(count);
    int blocks = std::min(blocks_for(count, THREADS * 4), 1056);
    change_in_place<<<blocks, THREADS>>>(changed, count);
    reverse_in_place<<<blocks, THREADS>>>(reversed, count);
    one_in_three_out<<<blocks, THREADS>>>(in, a, b, c, count);
    three_in_one_out<<<blocks, THREADS>>>(in, summed, count);
    between_lines<<<blocks, THREADS>>>(lines, count);
    CHECK_LAUNCH();
    std::vector<unsigned> wanted[7];
    for (std::vector<unsigned>& one : wanted) one.resize(count);
    for (int i = 0; i < count; i++) {
        unsigned value = start[i];
        wanted[0][i] = value * 3u + 1u;
        wanted[1][i] = start[count - 1 - i];
        wanted[2][i] = value + 1, wanted[3][i] = value * 2, wanted[4][i] = value ^ 3u;
        wanted[5][i] = value + start[(i + count / 3 + 5) % count] * 2u + start[(i + count / 2 + 11) % count] * 3u;
        wanted[6][i] = i / 32 % 2 ? value : start[i + 32] + 7u;
    }
    size_t wrong = mismatches(changed.read(), wanted[0]) + mismatches(reversed.read(), wanted[1]) + mismatches(a.read(), wanted[2]) +
                   mismatches(b.read(), wanted[3]) + mismatches(c.read(), wanted[4]) + mismatches(summed.read(), wanted[5]) +
                   mismatches(lines.read(), wanted[6]);
    return verdict("read_write_mix", wrong == 0, "%d words, %zu wrong", count, wrong);
}
