// Kernels that launch kernels (dynamic parallelism as CUDA 12 has it): recursion, fire-and-forget and tail launches,
// streams and events of device code, arguments and shared memory of children, copies, and more launches than the pool
// holds.
//
//     dynamic_parallelism [numbers to sort]
#include "../common/workload.cuh"

using workload::Buffer;

// ---- quicksort: each part is sorted by a grid of its own, the small ones in place

constexpr int kSmall = 32;
constexpr int kDeepest = 14;

__global__ void quicksort(unsigned* values, int first, int last, int depth) {
    if (threadIdx.x != 0) return;
    if (last - first < kSmall || depth == kDeepest) {
        for (int i = first + 1; i <= last; i++) {
            unsigned value = values[i];
            int at = i;
            for (; at > first && values[at - 1] > value; at--) values[at] = values[at - 1];
            values[at] = value;
        }
        return;
    }
    unsigned pivot = values[(first + last) / 2];
    int low = first, high = last;
    while (low <= high) {
        while (values[low] < pivot) low++;
        while (values[high] > pivot) high--;
        if (low <= high) {
            unsigned other = values[low];
            values[low++] = values[high];
            values[high--] = other;
        }
    }
    if (first < high) quicksort<<<1, 32, 0, cudaStreamFireAndForget>>>(values, first, high, depth + 1);
    if (low < last) {
        cudaStream_t stream;
        cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
        quicksort<<<1, 32, 0, stream>>>(values, low, last, depth + 1);
        cudaStreamDestroy(stream);
    }
}

static bool sorts(int count) {
    workload::Random random(7);
    std::vector<unsigned> host(count);
    for (unsigned& value : host) value = random.next();
    Buffer<unsigned> values(host);
    quicksort<<<1, 32>>>(values, 0, count - 1, 0);
    CHECK_LAUNCH();
    CHECK(cudaDeviceSynchronize());
    std::vector<unsigned> got = values.read();
    uint64_t sum = 0, wanted = 0;
    for (int i = 0; i < count; i++) {
        sum += got[i];
        wanted += host[i];
        if (i > 0 && got[i - 1] > got[i]) return false;
    }
    return sum == wanted;
}

// ---- order: each kernel takes the next number and leaves its name there

__device__ void leave_name(int* log, int name) {
    int place = atomicAdd(log, 1);
    log[1 + place] = name;
}

__global__ void named(int* log, int name) { leave_name(log, name); }

// Tail launches run behind everything else of a grid, each with its own before the next.
__global__ void tail_tree(int* log, int name, int depth) {
    leave_name(log, name);
    if (depth == 0) return;
    tail_tree<<<1, 1, 0, cudaStreamTailLaunch>>>(log, 10 * name + 1, depth - 1);
    tail_tree<<<1, 1, 0, cudaStreamTailLaunch>>>(log, 10 * name + 2, depth - 1);
    named<<<1, 1>>>(log, 10 * name + 5);
}

static void expect_tree(std::vector<int>& wanted, int name, int depth) {
    wanted.push_back(name);
    if (depth == 0) return;
    wanted.push_back(10 * name + 5);
    expect_tree(wanted, 10 * name + 1, depth - 1);
    expect_tree(wanted, 10 * name + 2, depth - 1);
}

// Launches of one block follow each other, also those of several of its threads; an event orders two streams.
__global__ void ordered(int* log) {
    for (int i = 0; i < 4; i++) {
        if (threadIdx.x == i) named<<<1, 1>>>(log, 100 + i);
        __syncthreads();
    }
    if (threadIdx.x == 0) {
        cudaStream_t first, second;
        cudaEvent_t event;
        cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking);
        cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);
        cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
        cudaEventRecord(event, 0);
        cudaStreamWaitEvent(first, event, 0);
        tail_tree<<<1, 1, 0, first>>>(log, 2, 1);
        cudaEventRecord(event, first);
        cudaStreamWaitEvent(second, event, 0);
        named<<<1, 1, 0, second>>>(log, 300);
        cudaEventDestroy(event);
        cudaStreamDestroy(first);
        cudaStreamDestroy(second);
    }
}

static bool keeps_order() {
    Buffer<int> log(64);
    log.clear();
    tail_tree<<<1, 1>>>(log, 1, 2);
    ordered<<<1, 32>>>(log);
    named<<<1, 1>>>(log, 9999);
    CHECK_LAUNCH();
    CHECK(cudaDeviceSynchronize());
    std::vector<int> wanted, got = log.read();
    expect_tree(wanted, 1, 2);
    for (int name : {100, 101, 102, 103}) wanted.push_back(name);
    expect_tree(wanted, 2, 1);
    wanted.push_back(300);
    wanted.push_back(9999);
    bool equal = got[0] == static_cast<int>(wanted.size());
    for (size_t i = 0; i < wanted.size(); i++) equal = equal && got[1 + i] == wanted[i];
    return equal;
}

// ---- fan-out: every block of the parent writes a part, and its child reads it

__global__ void sum_part(const int* parts, unsigned long long* sums, int part) {
    extern __shared__ int shared[];
    shared[threadIdx.x] = parts[part * blockDim.x + threadIdx.x];
    __syncthreads();
    for (int width = blockDim.x / 2; width > 0; width /= 2) {
        if (threadIdx.x < width) shared[threadIdx.x] += shared[threadIdx.x + width];
        __syncthreads();
    }
    if (threadIdx.x == 0) sums[part] = shared[0];
}

__global__ void fan_out(int* parts, unsigned long long* sums) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    parts[index] = index % 1000;
    __syncthreads();
    if (threadIdx.x == 0) {
        sum_part<<<1, blockDim.x, blockDim.x * sizeof(int), cudaStreamFireAndForget>>>(parts, sums, blockIdx.x);
    }
}

static bool fans_out(int blocks) {
    Buffer<int> parts(blocks * 128);
    Buffer<unsigned long long> sums(blocks);
    sums.clear();
    fan_out<<<blocks, 128>>>(parts, sums);
    CHECK_LAUNCH();
    std::vector<unsigned long long> got = sums.read();
    for (int block = 0; block < blocks; block++) {
        unsigned long long wanted = 0;
        for (int i = 0; i < 128; i++) wanted += (block * 128 + i) % 1000;
        if (got[block] != wanted) return false;
    }
    return true;
}

// ---- arguments of several sizes

struct Large {
    int values[900];
};

__global__ void takes_large(Large large, int* out, char letter, double number, short small) {
    for (int i = threadIdx.x; i < 900; i += blockDim.x) {
        out[i] = large.values[i] + letter + static_cast<int>(number) + small;
    }
}

__global__ void takes_nothing() {}

__global__ void gives_arguments(int* out) {
    Large large;
    for (int i = 0; i < 900; i++) large.values[i] = i * i;
    takes_large<<<1, 128>>>(large, out, 'a', 1e6, -7);
    takes_nothing<<<dim3(3, 2, 2), dim3(4, 4, 4)>>>();
    out[900] = cudaGetLastError();
}

static bool passes_arguments() {
    Buffer<int> out(901);
    out.clear();
    gives_arguments<<<1, 1>>>(out);
    CHECK_LAUNCH();
    std::vector<int> got = out.read();
    for (int i = 0; i < 900; i++) {
        if (got[i] != i * i + 'a' + 1000000 - 7) return false;
    }
    return got[900] == 0;
}

// ---- copies by device code

__global__ void copies(unsigned char* to, const unsigned char* from, int* errors) {
    errors[0] = cudaMemcpyAsync(to, from, 1000, cudaMemcpyDeviceToDevice, 0);
    errors[1] = cudaMemcpyAsync(to + 1003, from + 1, 2777, cudaMemcpyDeviceToDevice, 0);
    // CUDA's device library writes zeros whatever value it is given.
    errors[2] = cudaMemsetAsync(to + 4000, 0, 777, 0);
    errors[3] = cudaMemcpy2DAsync(to + 5000, 100, from, 64, 50, 20, cudaMemcpyDeviceToDevice, 0);
    errors[4] = cudaMemset2DAsync(to + 7003, 128, 0, 61, 7, 0);
}

static bool copies_memory() {
    constexpr int kBytes = 8192;
    std::vector<unsigned char> host(kBytes), wanted(kBytes, 0xee);
    for (int i = 0; i < kBytes; i++) host[i] = static_cast<unsigned char>((i * 2654435761u) >> 13);
    for (int i = 0; i < 1000; i++) wanted[i] = host[i];
    for (int i = 0; i < 2777; i++) wanted[1003 + i] = host[1 + i];
    for (int i = 0; i < 777; i++) wanted[4000 + i] = 0;
    for (int row = 0; row < 20; row++) {
        for (int i = 0; i < 50; i++) wanted[5000 + 100 * row + i] = host[64 * row + i];
    }
    for (int row = 0; row < 7; row++) {
        for (int i = 0; i < 61; i++) wanted[7003 + 128 * row + i] = 0;
    }
    Buffer<unsigned char> from(host), to(kBytes);
    Buffer<int> errors(5);
    CHECK(cudaMemset(to, 0xee, kBytes));
    copies<<<1, 1>>>(to, from, errors);
    CHECK_LAUNCH();
    CHECK(cudaDeviceSynchronize());
    for (int error : errors.read()) {
        if (error != 0) return false;
    }
    return workload::mismatches(to.read(), wanted) == 0;
}

// ---- errors: a shape that cannot be, a thread's own last error, and more launches than the pool holds

__global__ void counts(int* count) { atomicAdd(count, 1); }

__global__ void errs(int* out) {
    takes_nothing<<<1, threadIdx.x == 5 ? 2000 : 32>>>();
    out[threadIdx.x] = cudaGetLastError();
    out[32 + threadIdx.x] = cudaGetLastError();
}

// What does not find a place in the pool is done at once.
__global__ void launches_many(int* count, int* refused, int launches) {
    for (int i = 0; i < launches; i++) {
        counts<<<1, 1, 0, cudaStreamTailLaunch>>>(count);
        cudaError_t error = cudaGetLastError();
        if (error != cudaSuccess) {
            refused[0] += 1;
            refused[1] = error;
            atomicAdd(count, 1);
        }
    }
}

static bool says_errors(int* refused) {
    Buffer<int> out(64), many(3);
    many.clear();
    errs<<<1, 32>>>(out);
    launches_many<<<1, 1>>>(many, many + 1, 2100);
    CHECK_LAUNCH();
    CHECK(cudaDeviceSynchronize());
    std::vector<int> got = out.read(), counted = many.read();
    *refused = counted[1];
    bool own = true;
    for (int i = 0; i < 32; i++) {
        own = own && got[i] == (i == 5 ? cudaErrorInvalidConfiguration : cudaSuccess) && got[32 + i] == cudaSuccess;
    }
    bool said = counted[1] == 0 || counted[2] == cudaErrorLaunchPendingCountExceeded;
    return own && said && counted[0] == 2100;
}

int main(int argc, char** argv) {
    int count = workload::argument(argc, argv, 1, 2000);
    int refused = 0;
    const bool results[] = {sorts(count),       keeps_order(),   fans_out(48), passes_arguments(),
                            copies_memory(), says_errors(&refused)};
    bool passed = true;
    for (bool result : results) passed = passed && result;
    return workload::verdict("dynamic_parallelism", passed,
                             "sort %d, order %d, fan-out %d, arguments %d, copies %d, errors %d; %d of 2100 refused",
                             results[0], results[1], results[2], results[3], results[4], results[5], refused);
}
