// What launches by kernels take (dynamic parallelism). Build with -rdc=true.
//
// Times are those of the clock that all SMs share (32 ns), medians of 30 repetitions after one that does not count.
// `first child` is the time from before the call to the first child's first instruction, `last child` from there to that of
// the last; `call` is what all calls took the thread, `buffer` and `launch` are cycles of the last call of each kind;
// `next kernel` is the time from the last child to a kernel that the host launched behind.
#include "common.cuh"

__device__ unsigned long long nanoseconds() {
    unsigned long long now;
    asm volatile("mov.u64 %0,%%globaltimer;" : "=l"(now));
    return now;
}

constexpr int kChildren = 64, kNext = 2200, kTimes = 2300;

__global__ void stamp(unsigned long long* times, int slot) {
    if (threadIdx.x == 0 && blockIdx.x == 0) times[slot] = nanoseconds();
}

enum Kind { kNull, kFireAndForget, kTail, kCreated, kKinds };
const char* const kNames[] = {"NULL stream", "fire and forget", "tail launch", "created stream"};

__device__ cudaStream_t stream_of(int kind) {
    cudaStream_t stream = 0;
    if (kind == kFireAndForget) stream = cudaStreamFireAndForget;
    if (kind == kTail) stream = cudaStreamTailLaunch;
    if (kind == kCreated) cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    return stream;
}

// One thread launches so many children, one after the other.
__global__ void parent(unsigned long long* times, int kind, int launches) {
    cudaStream_t stream = stream_of(kind);
    times[0] = nanoseconds();
    for (int i = 0; i < launches; i++) {
        long long before = clock64();
        void* buffer = cudaGetParameterBufferV2((void*)stamp, dim3(1), dim3(32), 0);
        long long between = clock64();
        *(unsigned long long**)buffer = times;
        ((int*)buffer)[2] = kChildren + i;
        cudaLaunchDeviceV2(buffer, stream);
        long long after = clock64();
        times[2] = between - before;
        times[3] = after - between;
    }
    times[1] = nanoseconds();
}

// Each grid launches the next, so many times.
__global__ void chain(unsigned long long* times, int kind, int link, int links) {
    times[kChildren + link] = nanoseconds();
    if (link + 1 < links) chain<<<1, 1, 0, stream_of(kind)>>>(times, kind, link + 1, links);
}

// Every thread of every block launches so many children.
__global__ void many(unsigned long long* times, int each) {
    if (threadIdx.x == 0 && blockIdx.x == 0) times[0] = nanoseconds();
    int thread = blockIdx.x * blockDim.x + threadIdx.x;
    for (int i = 0; i < each; i++) stamp<<<1, 32, 0, cudaStreamFireAndForget>>>(times, kChildren + thread * each + i);
}

// Each call takes a thread so long.
__global__ void calls(unsigned long long* times) {
    cudaStream_t stream;
    cudaEvent_t event;
    int value;
    long long clock[8];
    for (int i = 0; i < 2; i++) {
        clock[0] = clock64();
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        clock[1] = clock64();
        cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
        clock[2] = clock64();
        cudaEventRecord(event, stream);
        clock[3] = clock64();
        cudaStreamWaitEvent(stream, event, 0);
        clock[4] = clock64();
        cudaEventDestroy(event);
        cudaStreamDestroy(stream);
        clock[5] = clock64();
        cudaDeviceGetAttribute(&value, cudaDevAttrWarpSize, 0);
        clock[6] = clock64();
        times[8] += cudaGetLastError();
        clock[7] = clock64();
    }
    for (int i = 0; i < 7; i++) times[i] = clock[i + 1] - clock[i];
}

struct Times {
    unsigned long long* device;
    std::vector<unsigned long long> host = std::vector<unsigned long long>(kTimes);
    Times() { CHECK(cudaMalloc(&device, kTimes * sizeof(unsigned long long))); }
    void clear() { CHECK(cudaMemset(device, 0, kTimes * sizeof(unsigned long long))); }
    void read() {
        CHECK(cudaDeviceSynchronize());
        CHECK(cudaMemcpy(host.data(), device, kTimes * sizeof(unsigned long long), cudaMemcpyDeviceToHost));
    }
    double since(int slot, int from) const { return double(host[slot]) - double(host[from]); }
    // The median of each figure that `figures` gives after `work`.
    std::vector<double> medians(const std::function<void()>& work, const std::function<std::vector<double>()>& figures) {
        std::vector<std::vector<double>> all;
        for (int repetition = 0; repetition <= 30; repetition++) {
            clear();
            work();
            read();
            std::vector<double> now = figures();
            all.resize(now.size());
            for (size_t i = 0; i < now.size() && repetition > 0; i++) all[i].push_back(now[i]);
        }
        std::vector<double> result;
        for (const auto& values : all) result.push_back(median(values));
        return result;
    }
};

int main() {
    Times times;
    for (int kind = 0; kind < kKinds; kind++) {
        for (int launches : {1, 2, 8, 64}) {
            auto found = times.medians(
                [&] {
                    parent<<<1, 1>>>(times.device, kind, launches);
                    stamp<<<1, 32>>>(times.device, kNext);
                },
                [&]() -> std::vector<double> {
                    int last = kChildren + launches - 1;
                    return {times.since(kChildren, 0),      times.since(last, kChildren), times.since(1, 0),
                            double(times.host[2]),          double(times.host[3]),        times.since(kNext, last),
                            times.since(kChildren, 1)};
                });
            const char* names[] = {"first child", "last child", "call", "buffer", "launch", "next kernel", "first child after parent"};
            for (int i = 0; i < 7; i++) {
                row(names[i], text("%s launches=%d", kNames[kind], launches), found[i], i == 3 || i == 4 ? "cycles" : "ns");
            }
        }
    }
    for (int kind : {kFireAndForget, kTail, kNull}) {
        auto found = times.medians([&] { chain<<<1, 1>>>(times.device, kind, 0, 21); },
                                   [&]() -> std::vector<double> { return {times.since(kChildren + 20, kChildren) / 20}; });
        row("link of a chain", kNames[kind], found[0], "ns");
    }
    for (int blocks : {1, 8, 132}) {
        for (int threads : {1, 32}) {
            for (int each : {1, 4, 15}) {
                int launches = blocks * threads * each;
                if (launches > 2000) continue;
                auto found = times.medians(
                    [&] { many<<<blocks, threads>>>(times.device, each); },
                    [&]() -> std::vector<double> {
                        auto begin = times.host.begin() + kChildren, end = begin + launches;
                        return {double(*std::min_element(begin, end)) - double(times.host[0]),
                                double(*std::max_element(begin, end)) - double(times.host[0])};
                    });
                std::string parameter = text("blocks=%d threads=%d each=%d", blocks, threads, each);
                row("many first", parameter, found[0], "ns");
                row("many last", parameter, found[1], "ns");
            }
        }
    }
    auto found = times.medians([&] { calls<<<1, 1>>>(times.device); },
                               [&]() -> std::vector<double> {
                                   return std::vector<double>(times.host.begin(), times.host.begin() + 7);
                               });
    const char* names[] = {"create stream", "create event", "record", "wait", "destroy both", "attribute", "last error"};
    for (int i = 0; i < 7; i++) row("calls", names[i], found[i], "cycles");
}
