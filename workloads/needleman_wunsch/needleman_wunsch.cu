// Needleman-Wunsch alignment of two sequences: tiles of the score matrix along anti-diagonals, first growing in
// number, then shrinking; inside a tile a second wave runs along its own anti-diagonals.
//
// Usage: needleman_wunsch [length, a multiple of 16]
#include "../common/workload.cuh"

using namespace workload;

constexpr int TILE = 16;
constexpr int GAP = -4;

__device__ __host__ inline int best_of_three(int diagonal, int up, int left, int similarity) {
    int best = diagonal + similarity;
    if (up + GAP > best) best = up + GAP;
    if (left + GAP > best) best = left + GAP;
    return best;
}

__device__ void fill_tile(int* scores, const int* similarity, int width, int tile_x, int tile_y) {
    __shared__ int tile[TILE + 1][TILE + 1];
    __shared__ int similar[TILE][TILE];
    int t = threadIdx.x;
    int x = tile_x * TILE;
    int y = tile_y * TILE;
    for (int row = 0; row < TILE; row++) similar[row][t] = similarity[(y + row + 1) * width + x + t + 1];
    tile[t + 1][0] = scores[(y + t + 1) * width + x];
    tile[0][t + 1] = scores[y * width + x + t + 1];
    if (t == 0) tile[0][0] = scores[y * width + x];
    __syncthreads();
    for (int wave = 0; wave < 2 * TILE - 1; wave++) {
        int row = wave - t;
        if (row >= 0 && row < TILE)
            tile[row + 1][t + 1] = best_of_three(tile[row][t], tile[row][t + 1], tile[row + 1][t], similar[row][t]);
        __syncthreads();
    }
    for (int row = 0; row < TILE; row++) scores[(y + row + 1) * width + x + t + 1] = tile[row + 1][t + 1];
}

// Tiles with tile_x + tile_y == diagonal, while diagonals grow.
__global__ void fill_upper_left(int* scores, const int* similarity, int width, int diagonal) {
    fill_tile(scores, similarity, width, blockIdx.x, diagonal - blockIdx.x);
}

// The same in the other half, where the first tile is no longer in column 0.
__global__ void fill_lower_right(int* scores, const int* similarity, int width, int diagonal, int tiles) {
    int tile_x = diagonal - tiles + 1 + blockIdx.x;
    fill_tile(scores, similarity, width, tile_x, diagonal - tile_x);
}

int main(int argc, char** argv) {
    int length = argument(argc, argv, 1, 128, 16384);
    if (length % TILE != 0) {
        std::fprintf(stderr, "needleman_wunsch: length %d is not a multiple of %d\n", length, TILE);
        return 2;
    }
    int width = length + 1;
    Random random(1);
    std::vector<int> first(width), second(width);
    for (int i = 1; i < width; i++) {
        first[i] = random.below(4);
        // The second sequence is like the first, with changes.
        second[i] = random.below(4) == 0 ? random.below(4) : first[i];
    }
    std::vector<int> similarity(size_t(width) * width, 0), scores(size_t(width) * width, 0);
    for (int y = 1; y < width; y++)
        for (int x = 1; x < width; x++) similarity[size_t(y) * width + x] = first[y] == second[x] ? 5 : -3;
    for (int i = 1; i < width; i++) scores[i] = scores[size_t(i) * width] = i * GAP;

    Buffer<int> device_scores(scores), device_similarity(similarity);
    int tiles = length / TILE;
    for (int diagonal = 0; diagonal < tiles; diagonal++)
        fill_upper_left<<<diagonal + 1, TILE>>>(device_scores, device_similarity, width, diagonal);
    for (int diagonal = tiles; diagonal < 2 * tiles - 1; diagonal++)
        fill_lower_right<<<2 * tiles - 1 - diagonal, TILE>>>(device_scores, device_similarity, width, diagonal, tiles);
    CHECK_LAUNCH();

    for (int y = 1; y < width; y++)
        for (int x = 1; x < width; x++) {
            size_t i = size_t(y) * width + x;
            scores[i] = best_of_three(scores[i - width - 1], scores[i - width], scores[i - 1], similarity[i]);
        }
    size_t wrong = mismatches(device_scores.read(), scores);
    return verdict("needleman_wunsch", wrong == 0, "length %d, score %d, %zu cells wrong", length, scores.back(), wrong);
}
