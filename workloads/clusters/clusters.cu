// Clusters of blocks and barriers in shared memory, the way programs use them: cooperative groups with distributed
// shared memory, cuda::barrier, cuda::pipeline with memcpy_async, and a grid that begins before the one before it
// has ended. Everything is whole numbers, so that results are exact.
#include "../common/workload.cuh"

#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/pipeline>

namespace cg = cooperative_groups;
using workload::Buffer;

// A histogram whose bins are spread over the shared memory of the blocks of a cluster.
__global__ void cluster_histogram(const unsigned* values, int count, unsigned* bins, int bins_of_block) {
    extern __shared__ unsigned part[];
    cg::cluster_group cluster = cg::this_cluster();
    for (int bin = threadIdx.x; bin < bins_of_block; bin += blockDim.x) part[bin] = 0;
    cluster.sync();
    int threads = gridDim.x * blockDim.x;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
        unsigned bin = values[i] % (bins_of_block * cluster.num_blocks());
        unsigned* other = cluster.map_shared_rank(part, bin / bins_of_block);
        atomicAdd(other + bin % bins_of_block, 1u);
    }
    cluster.sync();
    unsigned first = cluster.block_rank() * bins_of_block;
    for (int bin = threadIdx.x; bin < bins_of_block; bin += blockDim.x) atomicAdd(bins + first + bin, part[bin]);
}

// Each block passes its sum round the ring of its cluster, by loads from the block before.
__global__ void cluster_ring(const unsigned* values, unsigned* sums) {
    __shared__ unsigned sum, next;
    cg::cluster_group cluster = cg::this_cluster();
    if (threadIdx.x == 0) sum = 0;
    __syncthreads();
    atomicAdd(&sum, values[blockIdx.x * blockDim.x + threadIdx.x]);
    unsigned blocks = cluster.num_blocks(), rank = cluster.block_rank(), total = 0;
    cluster.sync();
    for (unsigned step = 0; step < blocks; step++) {
        if (threadIdx.x == 0) {
            total += sum;
            next = *cluster.map_shared_rank(&sum, (rank + blocks - 1) % blocks);
        }
        cluster.sync();
        if (threadIdx.x == 0) sum = next;
        cluster.sync();
    }
    if (threadIdx.x == 0) sums[blockIdx.x] = total;
}

// Half of the block stores what the other half adds up, over a pair of barriers.
__global__ void barrier_pipeline(const unsigned* values, int rounds, unsigned* sums) {
    __shared__ unsigned tile[128];
#pragma nv_diag_suppress static_var_with_dynamic_init
    __shared__ cuda::barrier<cuda::thread_scope_block> full, empty;
    int half = blockDim.x / 2;
    bool produces = threadIdx.x < half;
    int lane = threadIdx.x % half;
    if (threadIdx.x == 0) {
        init(&full, blockDim.x);
        init(&empty, blockDim.x);
    }
    __syncthreads();
    unsigned sum = 0;
    for (int round = 0; round < rounds; round++) {
        if (produces) {
            tile[lane] = values[(blockIdx.x * rounds + round) * half + lane];
            (void)full.arrive();
            empty.arrive_and_wait();
        } else {
            full.arrive_and_wait();
            sum += tile[half - 1 - lane] * (lane + 1);
            (void)empty.arrive();
        }
    }
    if (!produces) atomicAdd(sums + blockIdx.x, sum);
}

// Copies ahead of the sum, two tiles at a time.
__global__ void copy_pipeline(const unsigned* values, int rounds, unsigned* sums) {
    __shared__ alignas(16) unsigned tiles[2][128];
    __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 2> state;
    auto block = cg::this_thread_block();
    auto pipeline = cuda::make_pipeline(block, &state);
    const unsigned* mine = values + blockIdx.x * rounds * blockDim.x;
    unsigned sum = 0;
    int fetched = 0;
    for (int round = 0; round < rounds; round++) {
        for (; fetched < rounds && fetched < round + 2; fetched++) {
            pipeline.producer_acquire();
            cuda::memcpy_async(block, tiles[fetched % 2], mine + fetched * blockDim.x,
                               cuda::aligned_size_t<16>(sizeof(unsigned) * blockDim.x), pipeline);
            pipeline.producer_commit();
        }
        pipeline.consumer_wait();
        sum += tiles[round % 2][blockDim.x - 1 - threadIdx.x] * (threadIdx.x + 1);
        pipeline.consumer_release();
    }
    atomicAdd(sums + blockIdx.x, sum);
}

// The second grid begins when the first lets it, and reads what the first stored.
__global__ void first_grid(unsigned* values, int count) {
    asm volatile("griddepcontrol.launch_dependents;");
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) values[i] = i * 2654435761u;
}

__global__ void second_grid(const unsigned* values, int count, unsigned* sum) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) atomicAdd(sum, __ldcg(values + i) >> 8);
}

template <typename... Arguments>
void launch(void (*kernel)(Arguments...), int blocks, int threads, size_t shared, int cluster, bool programmatic,
            Arguments... arguments) {
    cudaLaunchAttribute attributes[2] = {};
    cudaLaunchConfig_t config = {};
    config.gridDim = blocks;
    config.blockDim = threads;
    config.dynamicSmemBytes = shared;
    config.attrs = attributes;
    if (cluster > 0) {
        attributes[config.numAttrs].id = cudaLaunchAttributeClusterDimension;
        attributes[config.numAttrs++].val.clusterDim = {static_cast<unsigned>(cluster), 1, 1};
    }
    if (programmatic) {
        attributes[config.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
        attributes[config.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
    }
    CHECK(cudaLaunchKernelEx(&config, kernel, arguments...));
}

int main(int argc, char** argv) {
    const int count = workload::argument(argc, argv, 1, 4096, 1 << 24) / 1024 * 1024 + 1024;
    constexpr int threads = 128, bins_of_block = 32;
    std::vector<unsigned> values(count);
    workload::Random random(7);
    for (unsigned& value : values) value = random.next();
    Buffer<unsigned> input(values);
    bool passed = true;
    for (int cluster : {1, 2, 4, 8}) {
        Buffer<unsigned> bins(8 * bins_of_block);
        bins.clear();
        launch(cluster_histogram, 8, threads, bins_of_block * sizeof(unsigned), cluster, false,
               static_cast<const unsigned*>(input), count, bins.get(), bins_of_block);
        std::vector<unsigned> wanted(8 * bins_of_block, 0);
        for (unsigned value : values) wanted[value % (cluster * bins_of_block)]++;
        passed &= bins.read() == wanted;
        int blocks = count / threads / cluster * cluster;
        Buffer<unsigned> sums(blocks);
        launch(cluster_ring, blocks, threads, 0, cluster, false, static_cast<const unsigned*>(input), sums.get());
        std::vector<unsigned> totals(blocks, 0);
        for (int i = 0; i < blocks * threads; i++) {
            int first = i / threads / cluster * cluster;
            for (int block = first; block < first + cluster; block++) totals[block] += values[i];
        }
        passed &= sums.read() == totals;
    }
    {
        int rounds = 4, half = threads / 2, blocks = count / (rounds * half);
        Buffer<unsigned> sums(blocks);
        sums.clear();
        barrier_pipeline<<<blocks, threads>>>(input, rounds, sums);
        CHECK_LAUNCH();
        std::vector<unsigned> wanted(blocks, 0);
        for (int i = 0; i < blocks * rounds * half; i++) wanted[i / (rounds * half)] += values[i] * (half - i % half);
        passed &= sums.read() == wanted;
    }
    {
        int rounds = 4, blocks = count / (rounds * threads);
        Buffer<unsigned> sums(blocks);
        sums.clear();
        copy_pipeline<<<blocks, threads>>>(input, rounds, sums);
        CHECK_LAUNCH();
        std::vector<unsigned> wanted(blocks, 0);
        for (int i = 0; i < blocks * rounds * threads; i++) {
            wanted[i / (rounds * threads)] += values[i] * (threads - i % threads);
        }
        passed &= sums.read() == wanted;
    }
    {
        Buffer<unsigned> made(count), sum(1);
        made.clear();
        sum.clear();
        launch(first_grid, workload::blocks_for(count, threads), threads, 0, 0, false, made.get(), count);
        launch(second_grid, workload::blocks_for(count, threads), threads, 0, 0, true,
               static_cast<const unsigned*>(made), count, sum.get());
        unsigned wanted = 0;
        for (int i = 0; i < count; i++) wanted += i * 2654435761u >> 8;
        passed &= sum.read_one() == wanted;
    }
    return workload::verdict("clusters", passed, "%d values", count);
}
