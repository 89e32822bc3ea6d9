// What every workload shares: checked CUDA calls, device buffers, reproducible inputs, arguments and the verdict.
//
// Only the plain runtime API is used, and only the part that any CUDA program uses, so that a
// workload needs nothing but `nvcc file.cu`.
#pragma once

#include <cmath>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <cuda_runtime.h>

// Ends the program with the place and CUDA's own sentence when a call fails.
#define CHECK(call)                                                                        \
    do {                                                                                   \
        cudaError_t status_ = (call);                                                      \
        if (status_ != cudaSuccess) {                                                      \
            std::fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,             \
                         cudaGetErrorString(status_));                                     \
            std::exit(2);                                                                  \
        }                                                                                  \
    } while (0)

// After a launch: refused launches show at once, faults at the next synchronisation.
#define CHECK_LAUNCH() CHECK(cudaGetLastError())

namespace workload {

// A 64-bit linear congruential generator (Knuth's MMIX constants): the same numbers on every host.
class Random {
public:
    explicit Random(uint64_t seed) : state_(seed * 2862933555777941757ull + 3037000493ull) {}

    uint32_t next() {
        state_ = state_ * 6364136223846793005ull + 1442695040888963407ull;
        return static_cast<uint32_t>(state_ >> 32);
    }

    // In [0, bound).
    int below(int bound) { return static_cast<int>((static_cast<uint64_t>(next()) * bound) >> 32); }

    // In [low, high), with 24 significant bits, so that a float holds it exactly before scaling.
    float uniform(float low, float high) { return low + (high - low) * ((next() >> 8) * (1.0f / 16777216.0f)); }

    // In [low, high), with 32 significant bits.
    double uniform(double low, double high) { return low + (high - low) * (next() * (1.0 / 4294967296.0)); }

private:
    uint64_t state_;
};

template <typename T>
std::vector<T> uniform_values(size_t count, T low, T high, uint64_t seed) {
    Random random(seed);
    std::vector<T> values(count);
    for (T& value : values) value = random.uniform(low, high);
    return values;
}

// Device memory that frees itself and turns into the pointer that kernels take.
template <typename T>
class Buffer {
public:
    explicit Buffer(size_t count) : count_(count) { CHECK(cudaMalloc(&data_, bytes())); }
    explicit Buffer(const std::vector<T>& host) : Buffer(host.size()) { write(host); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { cudaFree(data_); }

    operator T*() const { return data_; }
    T* get() const { return data_; }
    size_t size() const { return count_; }
    size_t bytes() const { return count_ * sizeof(T); }

    void clear() { CHECK(cudaMemset(data_, 0, bytes())); }
    void write(const std::vector<T>& host) { CHECK(cudaMemcpy(data_, host.data(), bytes(), cudaMemcpyHostToDevice)); }
    std::vector<T> read() const {
        std::vector<T> host(count_);
        CHECK(cudaMemcpy(host.data(), data_, bytes(), cudaMemcpyDeviceToHost));
        return host;
    }
    // One element, for loops that ask the device whether to go on.
    T read_one(size_t index = 0) const {
        T value;
        CHECK(cudaMemcpy(&value, data_ + index, sizeof(T), cudaMemcpyDeviceToHost));
        return value;
    }
    void write_one(T value, size_t index = 0) {
        CHECK(cudaMemcpy(data_ + index, &value, sizeof(T), cudaMemcpyHostToDevice));
    }

private:
    T* data_ = nullptr;
    size_t count_;
};

inline int blocks_for(size_t items, int per_block) { return static_cast<int>((items + per_block - 1) / per_block); }

// The positive number at `position` of the command line, or the default when it is absent.
inline int argument(int argc, char** argv, int position, int otherwise, int maximum = 1 << 30) {
    if (position >= argc) return otherwise;
    char* end = nullptr;
    long value = std::strtol(argv[position], &end, 10);
    if (*end != '\0' || value < 1 || value > maximum) {
        std::fprintf(stderr, "%s: argument %d is `%s`; expected a whole number from 1 to %d\n", argv[0], position,
                     argv[position], maximum);
        std::exit(2);
    }
    return static_cast<int>(value);
}

// The largest |got - wanted| / max(1, |wanted|); infinity when anything is not finite.
template <typename Got, typename Wanted>
double worst_error(const std::vector<Got>& got, const std::vector<Wanted>& wanted) {
    double worst = got.size() == wanted.size() ? 0.0 : INFINITY;
    for (size_t i = 0; i < got.size() && i < wanted.size(); i++) {
        double expected = static_cast<double>(wanted[i]);
        double error = std::fabs(static_cast<double>(got[i]) - expected) / std::fmax(1.0, std::fabs(expected));
        if (!(error <= worst)) worst = std::isfinite(error) ? error : INFINITY;
    }
    return worst;
}

// How many elements differ; all of them when the lengths differ.
template <typename T>
size_t mismatches(const std::vector<T>& got, const std::vector<T>& wanted) {
    if (got.size() != wanted.size()) return got.size() + wanted.size();
    size_t count = 0;
    for (size_t i = 0; i < got.size(); i++) count += !(got[i] == wanted[i]);
    return count;
}

// FNV-1a over the bytes of a result, for programs whose answer is compared between runs.
template <typename T>
uint64_t digest(const std::vector<T>& values, uint64_t seed = 14695981039346656037ull) {
    const unsigned char* bytes = reinterpret_cast<const unsigned char*>(values.data());
    for (size_t i = 0; i < values.size() * sizeof(T); i++) seed = (seed ^ bytes[i]) * 1099511628211ull;
    return seed;
}

// Prints the one line that every workload ends with and returns its exit code.
inline int verdict(const char* name, bool passed, const char* format, ...) {
    std::printf("%s %s ", passed ? "PASS" : "FAIL", name);
    va_list arguments;
    va_start(arguments, format);
    std::vprintf(format, arguments);
    va_end(arguments);
    std::printf("\n");
    return passed ? 0 : 1;
}

}  // namespace workload
