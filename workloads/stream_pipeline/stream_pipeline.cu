// Streams and events: chunks are copied in, worked on and copied out on streams of their own from pinned memory, and
// a last kernel waits for all of them.
//
// Usage: stream_pipeline [elements a chunk] [streams]
#include "../common/workload.cuh"

using namespace workload;

__global__ void work_on_chunk(const int* in, int* out, int count, int factor) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        unsigned value = in[i];
        for (int step = 0; step < 8; step++) value = value * factor + step;
        out[i] = int(value);
    }
}

__global__ void combine_chunks(const int* chunks, int* sums, int count, int chunk_count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned sum = 0;
    for (int chunk = 0; chunk < chunk_count; chunk++) sum += unsigned(chunks[chunk * count + i]);
    sums[i] = int(sum);
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 4096, 1 << 22);
    int chunks = argument(argc, argv, 2, 4, 32);
    size_t bytes = size_t(count) * sizeof(int);
    int* pinned_in;
    int* pinned_out;
    CHECK(cudaMallocHost(&pinned_in, bytes * chunks));
    CHECK(cudaMallocHost(&pinned_out, bytes * chunks));
    Random random(1);
    for (int i = 0; i < count * chunks; i++) pinned_in[i] = random.below(1000);

    Buffer<int> in(size_t(count) * chunks), out(size_t(count) * chunks), sums(count);
    std::vector<cudaStream_t> streams(chunks);
    std::vector<cudaEvent_t> done(chunks);
    cudaEvent_t begin, end;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end));
    CHECK(cudaEventRecord(begin, 0));
    for (int chunk = 0; chunk < chunks; chunk++) {
        CHECK(cudaStreamCreateWithFlags(&streams[chunk], cudaStreamNonBlocking));
        CHECK(cudaEventCreateWithFlags(&done[chunk], cudaEventDisableTiming));
        CHECK(cudaStreamWaitEvent(streams[chunk], begin, 0));
        size_t offset = size_t(chunk) * count;
        CHECK(cudaMemcpyAsync(in.get() + offset, pinned_in + offset, bytes, cudaMemcpyHostToDevice, streams[chunk]));
        work_on_chunk<<<8, 128, 0, streams[chunk]>>>(in.get() + offset, out.get() + offset, count, chunk + 3);
        CHECK_LAUNCH();
        CHECK(cudaMemcpyAsync(pinned_out + offset, out.get() + offset, bytes, cudaMemcpyDeviceToHost, streams[chunk]));
        CHECK(cudaEventRecord(done[chunk], streams[chunk]));
    }
    // The first stream waits for all others, then combines.
    for (int chunk = 1; chunk < chunks; chunk++) CHECK(cudaStreamWaitEvent(streams[0], done[chunk], 0));
    combine_chunks<<<blocks_for(count, 128), 128, 0, streams[0]>>>(out, sums, count, chunks);
    CHECK_LAUNCH();
    CHECK(cudaEventRecord(end, streams[0]));
    CHECK(cudaEventSynchronize(end));
    float milliseconds = -1.0f;
    CHECK(cudaEventElapsedTime(&milliseconds, begin, end));
    CHECK(cudaDeviceSynchronize());

    std::vector<int> wanted(size_t(count) * chunks), wanted_sums(count, 0);
    for (int chunk = 0; chunk < chunks; chunk++)
        for (int i = 0; i < count; i++) {
            unsigned value = pinned_in[size_t(chunk) * count + i];
            for (int step = 0; step < 8; step++) value = value * (chunk + 3) + step;
            wanted[size_t(chunk) * count + i] = int(value);
            wanted_sums[i] = int(unsigned(wanted_sums[i]) + value);
        }
    size_t wrong = mismatches(std::vector<int>(pinned_out, pinned_out + size_t(count) * chunks), wanted) +
                   mismatches(sums.read(), wanted_sums);
    for (int chunk = 0; chunk < chunks; chunk++) {
        CHECK(cudaEventDestroy(done[chunk]));
        CHECK(cudaStreamDestroy(streams[chunk]));
    }
    CHECK(cudaEventDestroy(begin));
    CHECK(cudaEventDestroy(end));
    CHECK(cudaFreeHost(pinned_in));
    CHECK(cudaFreeHost(pinned_out));
    return verdict("stream_pipeline", wrong == 0 && milliseconds >= 0.0f, "%d elements on %d streams, %zu wrong", count, chunks,
                   wrong);
}
