// One planted fault a kernel, chosen by name: what `lockstep run --check` and compute-sanitizer must find.
//
// The line of each fault ends with a comment `// fault`. Each kernel does one thing wrong; whatever else it reads is
// written first, whatever it shares is separated by barriers. `planted_faults list` prints the names.

#include <cstdio>
#include <cstring>
#include <cuda_pipeline_primitives.h>
#include <cuda_runtime.h>

constexpr int THREADS = 64;

// Memory.

__global__ void global_load_past_end(int* data, int* result) {
    result[threadIdx.x] = data[threadIdx.x + 37];  // fault: element 100 of 100
}

__global__ void global_store_before_start(int* data, int* result) {
    data[static_cast<int>(threadIdx.x) - 1] = 1;  // fault: element -1
    result[threadIdx.x] = 1;
}

__global__ void global_load_before_start(int* data, int* result) {
    result[threadIdx.x] = data[static_cast<int>(threadIdx.x) - 1];  // fault: element -1
}

__global__ void global_store_far_away(int* data, int* result) {
    result[threadIdx.x] = 1;
    if (threadIdx.x == 33) data[1ull << 36] = 1;  // fault: 256 GiB beyond
}

__global__ void global_load_null(int* data, int* result) {
    int* null = reinterpret_cast<int*>(static_cast<long long>(data[1]));
    result[threadIdx.x] = *(threadIdx.x == 5 ? null : data);  // fault: address 0
}

__global__ void global_load_misaligned(char* data, long long* result) {
    result[threadIdx.x] = *reinterpret_cast<long long*>(data + 8 * (threadIdx.x % 8) + (threadIdx.x == 9 ? 4 : 0));  // fault: 8 bytes at 4
}

__global__ void global_atomic_past_end(int* data, int* result) {
    result[threadIdx.x] = 1;
    atomicAdd(&data[threadIdx.x * 2], 1);  // fault: element 100 of 100
}

__global__ void load_after_free(int* data, int* result) {
    result[threadIdx.x] = data[threadIdx.x];  // fault: the host freed it
}

__global__ void async_copy_past_end(int* data, int* result) {
    __shared__ alignas(16) int tile[THREADS * 4];
    __pipeline_memcpy_async(&tile[threadIdx.x * 4], &data[threadIdx.x * 4], 16);  // fault: elements 100 and on
    __pipeline_commit();
    __pipeline_wait_prior(0);
    result[threadIdx.x] = tile[threadIdx.x * 4];
}

__global__ void shared_store_past_end(int* data, int* result) {
    extern __shared__ int dynamic[];
    dynamic[threadIdx.x] = data[threadIdx.x];
    if (threadIdx.x == 40) dynamic[data[3] + 4096] = 1;  // fault: 16 KiB beyond 256 bytes
    result[threadIdx.x] = dynamic[threadIdx.x];
}

__global__ void shared_load_past_end(int* data, int* result) {
    extern __shared__ int dynamic[];
    dynamic[threadIdx.x % 50] = 0;
    __syncthreads();
    result[threadIdx.x] = dynamic[data[3] + threadIdx.x % 51];  // fault: 4 bytes beyond 200
}

__global__ void shared_load_misaligned(int* data, int* result) {
    extern __shared__ char bytes[];
    reinterpret_cast<int*>(bytes)[threadIdx.x] = 0;
    __syncthreads();
    result[threadIdx.x] = *reinterpret_cast<int*>(bytes + 4 * (threadIdx.x % 8) + data[0] + 2);  // fault: 4 bytes at 2
}

__global__ void local_store_past_end(int* data, int* result) {
    volatile int array[16];
    for (int i = 0; i < 16; i++) array[i] = data[i];
    array[data[0] + 100000 + threadIdx.x] = 1;  // fault: far beyond the stack
    result[threadIdx.x] = array[data[1] & 15];
}

__global__ void heap_free_twice(int* data, int* result) {
    if (threadIdx.x == 0) {
        void* block = malloc(64);
        free(block);
        free(block);  // fault: freed already
    }
    result[threadIdx.x] = data[0];
}

// Memory that nobody has written.

__global__ void load_uninitialised(int* data, int* result) {
    result[threadIdx.x] = data[threadIdx.x];  // fault: never written
}

__global__ void load_uninitialised_tail(int* data, int* result) {
    result[threadIdx.x] = data[threadIdx.x];  // fault: bytes 128 and on were never written
}

__global__ void write_first_half(int* data, int* result) {
    if (threadIdx.x < 32) data[threadIdx.x] = 1;
    result[threadIdx.x] = 0;
}

__global__ void load_other_half(int* data, int* result) {
    result[threadIdx.x] = data[threadIdx.x ^ 32];  // fault: a kernel wrote the first half alone
}

__global__ void atomic_uninitialised(int* data, int* result) {
    result[threadIdx.x] = 0;
    atomicAdd(&data[threadIdx.x % 4], 1);  // fault: a counter that nobody has set
}

// Races in shared memory.

__global__ void race_read_after_write(int* data, int* result) {
    __shared__ int tile[THREADS];
    tile[threadIdx.x] = data[threadIdx.x];
    result[threadIdx.x] = tile[threadIdx.x ^ 32];  // fault: no barrier since the other warp's store
}

__global__ void race_write_after_read(int* data, int* result) {
    __shared__ int tile[THREADS];
    tile[threadIdx.x] = data[threadIdx.x];
    __syncthreads();
    int other = tile[threadIdx.x ^ 32];
    tile[threadIdx.x] = other + 1;  // fault: the other warp may not have read yet
    __syncthreads();
    result[threadIdx.x] = tile[threadIdx.x];
}

__global__ void race_write_after_write(int* data, int* result) {
    __shared__ int total;
    if (threadIdx.x % 32 == 0) total = data[threadIdx.x] + threadIdx.x;  // fault: two warps store
    __syncthreads();
    result[threadIdx.x] = total;
}

__global__ void race_within_warp(int* data, int* result) {
    __shared__ int tile[THREADS];
    tile[threadIdx.x] = data[threadIdx.x];
    result[threadIdx.x] = tile[threadIdx.x ^ 1];  // fault: no __syncwarp between
}

__global__ void race_async_copy(int* data, int* result) {
    __shared__ alignas(16) int tile[THREADS * 4];
    __pipeline_memcpy_async(&tile[threadIdx.x * 4], &data[0], 16);
    __pipeline_commit();
    __syncthreads();
    result[threadIdx.x] = tile[(threadIdx.x ^ 32) * 4];  // fault: nobody waited for the copy
    __pipeline_wait_prior(0);
}

__global__ void race_named_barrier(int* data, int* result) {
    __shared__ int tile[THREADS * 2];
    tile[threadIdx.x] = data[threadIdx.x & 63];
    if (threadIdx.x < 64) asm volatile("bar.sync 1, 64;" ::: "memory");
    else asm volatile("bar.sync 2, 64;" ::: "memory");
    result[threadIdx.x & 63] = tile[threadIdx.x ^ 64];  // fault: the two halves met at different barriers
}

// Barriers.

__global__ void barrier_in_branch(int* data, int* result) {
    if (threadIdx.x % 32 < 16) {
        result[threadIdx.x] = data[0];
        asm volatile("bar.sync 0;" ::: "memory");  // fault: the other half of the warp is at another barrier
        result[threadIdx.x] += 1;
    } else {
        result[threadIdx.x] = data[1] + 2;
        asm volatile("bar.sync 0;" ::: "memory");
        result[threadIdx.x] += 3;
    }
}

__global__ void barrier_after_exit(int* data, int* result) {
    if (threadIdx.x >= 32) return;
    result[threadIdx.x] = data[threadIdx.x];
    __syncthreads();  // no fault: threads that have ended are not waited for
}

__global__ void barrier_count_wrong(int* data, int* result) {
    result[threadIdx.x] = data[threadIdx.x];
    asm volatile("barrier.sync 1, %0;" ::"r"(data[0] + 48) : "memory");  // fault: 48 is no multiple of a warp
}

__global__ void syncwarp_without_caller(int* data, int* result) {
    unsigned mask = data[0] ? 0xffffffff : 0x0000ffff;
    result[threadIdx.x] = data[threadIdx.x];
    if (threadIdx.x % 32 < 24) __syncwarp(mask);  // fault: lanes 16 to 23 are not in the mask
    result[threadIdx.x] += 1;
}

__global__ void mbarrier_not_initialised(int* data, int* result) {
    __shared__ unsigned long long barrier;
    if (threadIdx.x == 0) barrier = 0;
    __syncthreads();
    unsigned place = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
    result[threadIdx.x] = data[threadIdx.x];
    if (threadIdx.x == 0) {
        asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(place) : "memory");  // fault: nobody initialised it
    }
}

// Nothing wrong on the device: the host never frees `data`.
__global__ void nothing(int* data, int* result) {
    result[threadIdx.x] = data[threadIdx.x];
}

struct Fault {
    const char* name;
    void (*kernel)(int*, int*);
    int elements;      // of `data`
    int written;       // bytes of `data` that the host writes
    int threads;
    int dynamic;       // bytes of dynamic shared memory
};

static const Fault FAULTS[] = {
    {"global_load_past_end", global_load_past_end, 100, 400, THREADS, 0},
    {"global_store_before_start", global_store_before_start, 100, 400, THREADS, 0},
    {"global_load_before_start", global_load_before_start, 100, 400, THREADS, 0},
    {"global_store_far_away", global_store_far_away, 100, 400, THREADS, 0},
    {"global_load_null", global_load_null, 100, 400, THREADS, 0},
    {"global_load_misaligned", reinterpret_cast<void (*)(int*, int*)>(global_load_misaligned), 100, 400, THREADS, 0},
    {"global_atomic_past_end", global_atomic_past_end, 100, 400, THREADS, 0},
    {"load_after_free", load_after_free, 100, 400, 32, 0},
    {"async_copy_past_end", async_copy_past_end, 100, 400, THREADS, 0},
    {"shared_store_past_end", shared_store_past_end, 100, 400, THREADS, 256},
    {"shared_load_past_end", shared_load_past_end, 100, 400, THREADS, 200},
    {"shared_load_misaligned", shared_load_misaligned, 100, 400, THREADS, 256},
    {"local_store_past_end", local_store_past_end, 100, 400, THREADS, 0},
    {"heap_free_twice", heap_free_twice, 100, 400, THREADS, 0},
    {"load_uninitialised", load_uninitialised, 100, 0, THREADS, 0},
    {"load_uninitialised_tail", load_uninitialised_tail, 100, 128, THREADS, 0},
    {"load_other_half", load_other_half, 100, 0, THREADS, 0},
    {"atomic_uninitialised", atomic_uninitialised, 100, 0, THREADS, 0},
    {"race_read_after_write", race_read_after_write, 100, 400, THREADS, 0},
    {"race_write_after_read", race_write_after_read, 100, 400, THREADS, 0},
    {"race_write_after_write", race_write_after_write, 100, 400, THREADS, 0},
    {"race_within_warp", race_within_warp, 100, 400, THREADS, 0},
    {"race_async_copy", race_async_copy, 100, 400, THREADS, 0},
    {"race_named_barrier", race_named_barrier, 100, 400, THREADS * 2, 0},
    {"barrier_in_branch", barrier_in_branch, 100, 400, THREADS, 0},
    {"barrier_after_exit", barrier_after_exit, 100, 400, THREADS, 0},
    {"barrier_count_wrong", barrier_count_wrong, 100, 400, THREADS, 0},
    {"syncwarp_without_caller", syncwarp_without_caller, 100, 400, THREADS, 0},
    {"mbarrier_not_initialised", mbarrier_not_initialised, 100, 400, THREADS, 0},
    {"leak", nothing, 100, 400, THREADS, 0},
    {"nothing", nothing, 100, 400, THREADS, 0},
};

int main(int argc, char** argv) {
    const char* name = argc > 1 ? argv[1] : "list";
    for (const Fault& fault : FAULTS) {
        if (!std::strcmp(name, "list")) {
            std::printf("%s\n", fault.name);
            continue;
        }
        if (std::strcmp(name, fault.name)) continue;
        int *data, *result;
        cudaMalloc(&data, fault.elements * sizeof(int));
        cudaMalloc(&result, THREADS * sizeof(long long));
        if (fault.written) cudaMemset(data, 0, fault.written);
        cudaMemset(result, 0, THREADS * sizeof(long long));
        if (!std::strcmp(name, "load_after_free")) cudaFree(data);
        if (!std::strcmp(name, "load_other_half")) write_first_half<<<1, THREADS>>>(data, result);
        fault.kernel<<<1, fault.threads, fault.dynamic>>>(data, result);
        cudaError_t error = cudaDeviceSynchronize();
        std::printf("%s: %s\n", name, cudaGetErrorName(error));
        cudaFree(result);
        if (std::strcmp(name, "load_after_free") && std::strcmp(name, "leak")) cudaFree(data);
        return 0;
    }
    return std::strcmp(name, "list") != 0;
}
