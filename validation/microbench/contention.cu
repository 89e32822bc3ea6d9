// Compare-and-swap loops of many warps on one word: how often they try, how long a try takes, who gets on.
#include "common.cuh"

struct Warp {
    unsigned sm, tries, wins;
    long long first, last, waited, waited_by_winners;
};

__device__ unsigned sm_number() {
    unsigned n;
    asm volatile("mov.u32 %0,%%smid;" : "=r"(n));
    return n;
}

__device__ long long nanoseconds() {
    long long n;
    asm volatile("mov.u64 %0,%%globaltimer;" : "=l"(n));
    return n;
}

// Every lane below `lanes` adds one to the word of its group by swapping. How many turns a lane needed tells how many
// its warp made: the longest.
template <class Word>
__global__ void swap_until_done(Word* words, int apart, Warp* warps, int lanes) {
    unsigned warp = (blockIdx.x * blockDim.x + threadIdx.x) / 32, lane = threadIdx.x % 32;
    Word* at = words + size_t(apart) * lane;
    unsigned tries = 0, wins = 0;
    long long waited = 0, waited_by_winners = 0, first = nanoseconds();
    if (lane < lanes) {
        Word seen = *reinterpret_cast<volatile Word*>(at), assumed;
        do {
            assumed = seen;
            long long begin = clock64();
            seen = atomicCAS(at, assumed, assumed + 1);
            bool won = seen == assumed;
            unsigned winners = __ballot_sync(__activemask(), won);
            long long end = clock64();
            tries++;
            waited += end - begin;
            if (winners) wins++, waited_by_winners += end - begin;
        } while (seen != assumed);
    }
    __syncwarp();
    unsigned most = tries;
    for (int step = 16; step > 0; step /= 2) most = max(most, __shfl_xor_sync(~0u, most, step));
    unsigned last_lane = __ffs(__ballot_sync(~0u, tries == most)) - 1;
    if (lane == last_lane) warps[warp] = {sm_number(), tries, wins, first, nanoseconds(), waited, waited_by_winners};
}

// What each lane of one instruction sees.
__global__ void lanes_of_one(unsigned* word, unsigned* seen, int same) {
    seen[threadIdx.x] = atomicCAS(word, same ? 0u : threadIdx.x, threadIdx.x + 1);
}

template <class Word>
void contend(const char* name, Word* words, Warp* device, int blocks, int threads, int lanes, int apart, bool list) {
    std::vector<double> times, tries, waits, wins;
    int count = blocks * threads / 32;
    std::vector<Warp> warps(count);
    for (int repetition = 0; repetition < 4; repetition++) {
        CHECK(cudaMemset(words, 0, 1 << 16));
        swap_until_done<<<blocks, threads>>>(words, apart, device, lanes);
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(warps.data(), device, count * sizeof(Warp), cudaMemcpyDeviceToHost));
        if (repetition == 0) continue;
        double all = 0, waited = 0, won = 0, winning = 0;
        long long first = warps[0].first, last = warps[0].last;
        for (const Warp& w : warps) {
            all += w.tries, waited += w.waited, won += w.waited_by_winners, winning += w.wins;
            first = std::min(first, w.first), last = std::max(last, w.last);
        }
        tries.push_back(all), times.push_back(double(last - first)), waits.push_back(waited / all);
        wins.push_back(won / winning);
    }
    double successes = double(count) * lanes;
    std::string what = text("%s blocks=%d threads=%d lanes=%d apart=%d", name, blocks, threads, lanes, apart);
    row("contention_tries", what, median(tries) / successes, "warp tries/success");
    row("contention_time", what, median(times) / successes, "ns/success");
    row("contention_wait", what, median(waits), "cycles/try");
    row("contention_winner", what, median(wins), "cycles/try with a success");
    if (!list) return;
    long long first = warps[0].first;
    for (const Warp& w : warps) first = std::min(first, w.first);
    for (int i = 0; i < count; i++) {
        const Warp& w = warps[i];
        row("contention_warp", text("%s warp=%d sm=%u tries=%u wins=%u wait=%lld", what.c_str(), i, w.sm, w.tries, w.wins, w.waited / w.tries),
            double(w.last - first), "ns");
    }
}

int main() {
    warm_up();
    unsigned long long* words;
    Warp* warps;
    CHECK(cudaMalloc(&words, 1 << 20));
    CHECK(cudaMalloc(&warps, 1 << 20));
    CHECK(cudaMemset(words, 0, 1 << 20));
    unsigned* narrow = reinterpret_cast<unsigned*>(words);
    for (int same = 0; same < 2; same++) {
        unsigned seen[32];
        CHECK(cudaMemset(words, 0, 64));
        lanes_of_one<<<1, 32>>>(narrow, reinterpret_cast<unsigned*>(warps), same);
        CHECK(cudaMemcpy(seen, warps, sizeof seen, cudaMemcpyDeviceToHost));
        for (int lane = 0; lane < 32; lane++) row("lanes_of_one", text("same=%d lane=%d", same, lane), seen[lane], "seen");
    }
    for (int blocks : {1, 2, 4, 16, 132})
        for (int threads : {32, 256})
            for (int lanes : {1, 4, 32}) {
                bool list = lanes == 32 && threads == 256 && blocks >= 4 && blocks <= 16;
                contend("cas.b32", narrow, warps, blocks, threads, lanes, 0, false);
                if (blocks * threads <= 16 * 256) contend("cas.b64", words, warps, blocks, threads, lanes, 0, list);
            }
    for (int blocks : {1, 4, 16, 132}) contend("cas.b32", narrow, warps, blocks, 256, 32, 1, false);
    for (int blocks : {4, 16}) contend("cas.b32", narrow, warps, blocks, 256, 32, 32, false);
    contend("cas.b64", words, warps, 64, 256, 32, 0, false);
    return 0;
}
