// Copy engines: bandwidth and latency by direction and size, both directions at once, fills, copies on the card.
#include "common.cuh"

int main() {
    warm_up();
    const size_t most = 256ull << 20;
    char *device, *other, *pinned, *back;
    CHECK(cudaMalloc(&device, most));
    CHECK(cudaMalloc(&other, most));
    CHECK(cudaMallocHost(&pinned, most));
    CHECK(cudaMallocHost(&back, most));
    std::vector<char> pageable(64 << 20, 1);
    for (size_t bytes = 64; bytes <= most; bytes *= 4) {
        const int copies = bytes < (1 << 20) ? 64 : 4;
        auto rate = [&](const char* name, const std::function<void()>& work) {
            double time = milliseconds([&] {
                for (int i = 0; i < copies; i++) work();
            });
            row(name, text("bytes=%zu rate", bytes), double(bytes) * copies / time / 1e6, "GB/s");
            row(name, text("bytes=%zu each", bytes), time * 1000 / copies, "us");
        };
        rate("host_to_device_pinned", [&] { CHECK(cudaMemcpyAsync(device, pinned, bytes, cudaMemcpyHostToDevice)); });
        rate("device_to_host_pinned", [&] { CHECK(cudaMemcpyAsync(back, device, bytes, cudaMemcpyDeviceToHost)); });
        rate("device_to_device", [&] { CHECK(cudaMemcpyAsync(other, device, bytes, cudaMemcpyDeviceToDevice)); });
        rate("fill", [&] { CHECK(cudaMemsetAsync(device, 0, bytes)); });
        if (bytes <= pageable.size()) {
            rate("host_to_device_pageable", [&] { CHECK(cudaMemcpy(device, pageable.data(), bytes, cudaMemcpyHostToDevice)); });
            rate("device_to_host_pageable", [&] { CHECK(cudaMemcpy(pageable.data(), device, bytes, cudaMemcpyDeviceToHost)); });
        }
    }
    cudaStream_t up, down;
    CHECK(cudaStreamCreateWithFlags(&up, cudaStreamNonBlocking));
    CHECK(cudaStreamCreateWithFlags(&down, cudaStreamNonBlocking));
    cudaEvent_t begin, end_up, end_down;
    CHECK(cudaEventCreate(&begin));
    CHECK(cudaEventCreate(&end_up));
    CHECK(cudaEventCreate(&end_down));
    std::vector<double> rates;
    for (int repetition = 0; repetition < REPETITIONS; repetition++) {
        CHECK(cudaEventRecord(begin, up));
        CHECK(cudaStreamWaitEvent(down, begin));
        CHECK(cudaMemcpyAsync(device, pinned, most, cudaMemcpyHostToDevice, up));
        CHECK(cudaMemcpyAsync(back, other, most, cudaMemcpyDeviceToHost, down));
        CHECK(cudaEventRecord(end_up, up));
        CHECK(cudaEventRecord(end_down, down));
        CHECK(cudaDeviceSynchronize());
        float a, b;
        CHECK(cudaEventElapsedTime(&a, begin, end_up));
        CHECK(cudaEventElapsedTime(&b, begin, end_down));
        rates.push_back(2.0 * most / std::max(a, b) / 1e6);
    }
    row("both_directions_pinned", text("bytes=%zu", most), median(rates), "GB/s, sum");
    return 0;
}
