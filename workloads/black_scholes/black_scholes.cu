// Prices of European options by the formula of Black and Scholes: elementary functions and little memory.
//
// Usage: black_scholes [options]
#include "../common/workload.cuh"

using namespace workload;

constexpr float RATE = 0.02f;
constexpr float VOLATILITY = 0.3f;

// The normal distribution by the complementary error function.
template <typename T>
__device__ __host__ inline T normal(T x) {
    return T(0.5) * erfc(-x * T(0.70710678118654752));
}

template <typename T>
__device__ __host__ inline void price(T spot, T strike, T years, T* call, T* put) {
    T root = sqrt(years);
    T d1 = (log(spot / strike) + (T(RATE) + T(0.5) * T(VOLATILITY) * T(VOLATILITY)) * years) / (T(VOLATILITY) * root);
    T d2 = d1 - T(VOLATILITY) * root;
    T discounted = strike * exp(-T(RATE) * years);
    *call = spot * normal(d1) - discounted * normal(d2);
    *put = discounted * normal(-d2) - spot * normal(-d1);
}

__global__ void price_options(const float* spots, const float* strikes, const float* years, float* calls, float* puts,
                              int count) {
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x)
        price(spots[i], strikes[i], years[i], &calls[i], &puts[i]);
}

int main(int argc, char** argv) {
    int count = argument(argc, argv, 1, 16384);
    std::vector<float> spots = uniform_values(count, 5.0f, 30.0f, 1);
    std::vector<float> strikes = uniform_values(count, 1.0f, 100.0f, 2);
    std::vector<float> years = uniform_values(count, 0.25f, 10.0f, 3);
    std::vector<double> wanted_calls(count), wanted_puts(count);
    for (int i = 0; i < count; i++)
        price(double(spots[i]), double(strikes[i]), double(years[i]), &wanted_calls[i], &wanted_puts[i]);
    Buffer<float> device_spots(spots), device_strikes(strikes), device_years(years), calls(count), puts(count);
    price_options<<<std::min(blocks_for(count, 256), 528), 256>>>(device_spots, device_strikes, device_years, calls, puts, count);
    CHECK_LAUNCH();
    double call_error = worst_error(calls.read(), wanted_calls);
    double put_error = worst_error(puts.read(), wanted_puts);
    return verdict("black_scholes", call_error < 1e-4 && put_error < 1e-4, "%d options, worst error %.2e calls, %.2e puts",
                   count, call_error, put_error);
}
