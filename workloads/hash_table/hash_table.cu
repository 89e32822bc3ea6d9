// A hash table with open addressing: inserts claim slots by compare-and-swap and add up values of equal keys, lookups
// probe. All accesses are scattered.
//
// Usage: hash_table [keys]
#include <map>

#include "../common/workload.cuh"

using namespace workload;

constexpr unsigned EMPTY = 0xffffffffu;
constexpr unsigned MISSING = 0xffffffffu;

__host__ __device__ inline unsigned hash(unsigned key) {
    key ^= key >> 16;
    key *= 0x85ebca6bu;
    key ^= key >> 13;
    key *= 0xc2b2ae35u;
    return key ^ (key >> 16);
}

struct Slot {
    unsigned key;
    unsigned value;
};

__global__ void clear_slots(Slot* slots, unsigned capacity) {
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < capacity) slots[i] = {EMPTY, 0};
}

__global__ void insert_sums(Slot* slots, unsigned capacity, const unsigned* keys, const unsigned* values, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned key = keys[i];
    for (unsigned at = hash(key) & (capacity - 1);; at = (at + 1) & (capacity - 1)) {
        unsigned found = atomicCAS(&slots[at].key, EMPTY, key);
        if (found == EMPTY || found == key) {
            atomicAdd(&slots[at].value, values[i]);
            return;
        }
    }
}

__global__ void look_up(const Slot* slots, unsigned capacity, const unsigned* keys, unsigned* results, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned key = keys[i];
    unsigned result = MISSING;
    for (unsigned at = hash(key) & (capacity - 1); slots[at].key != EMPTY; at = (at + 1) & (capacity - 1))
        if (slots[at].key == key) {
            result = slots[at].value;
            break;
        }
    results[i] = result;
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 8192, 1 << 24);
    unsigned capacity = 64;
    while (capacity < unsigned(count) * 3 / 2) capacity *= 2;
    Random random(1);
    std::vector<unsigned> keys(count), values(count), queries(count), wanted(count);
    std::map<unsigned, unsigned> sums;
    for (int i = 0; i < count; i++) {
        // About one key in four repeats.
        keys[i] = random.below(count * 2);
        values[i] = random.below(1000);
        sums[keys[i]] += values[i];
    }
    for (int i = 0; i < count; i++) {
        queries[i] = random.below(count * 3);
        auto found = sums.find(queries[i]);
        wanted[i] = found == sums.end() ? MISSING : found->second;
    }
    Buffer<Slot> slots(capacity);
    Buffer<unsigned> device_keys(keys), device_values(values), device_queries(queries), results(count);
    clear_slots<<<blocks_for(capacity, 256), 256>>>(slots, capacity);
    insert_sums<<<blocks_for(count, 128), 128>>>(slots, capacity, device_keys, device_values, count);
    look_up<<<blocks_for(count, 128), 128>>>(slots, capacity, device_queries, results, count);
    CHECK_LAUNCH();
    size_t wrong = mismatches(results.read(), wanted);
    size_t used = 0;
    for (Slot slot : slots.read()) used += slot.key != EMPTY;
    return verdict("hash_table", wrong == 0 && used == sums.size(), "%d keys in %u slots, %zu used (wanted %zu), %zu lookups wrong",
                   count, capacity, used, sums.size(), wrong);
}
