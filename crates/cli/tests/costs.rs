//! What calls and copies cost the host. Other work on the machine only ever adds, so the program
//! takes the best of many rounds; limits are those that the documentation states. Without nvcc or
//! the interposition libraries the test says so and passes.

mod support;

use support::{Folder, build_cuda};

const PROGRAM: &str = r#"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <cuda_runtime.h>
__global__ void nothing() {}
static double now() {
    using namespace std::chrono;
    return duration<double>(steady_clock::now().time_since_epoch()).count();
}
// The best of several rounds: other programs on the machine only ever add.
template <typename Body> static double best(int rounds, int times, Body body) {
    double least = 1e9;
    for (int round = 0; round < rounds; round++) {
        double begin = now();
        for (int index = 0; index < times; index++) body();
        double taken = (now() - begin) / times;
        if (taken < least) least = taken;
    }
    return least;
}
int main() {
    cudaStream_t stream;
    cudaStreamCreate(&stream);
    int number = 0;
    nothing<<<1, 1>>>();
    cudaDeviceSynchronize();
    printf("asks %.3f\n", 1e6 * best(20, 500, [&] { cudaStreamQuery(stream); }));
    printf("allocates %.3f\n", 1e6 * best(20, 200, [&] { void* p; cudaMalloc(&p, 4096); cudaFree(p); }) / 2);
    printf("local %.4f\n", 1e6 * best(20, 1000, [&] { cudaGetDevice(&number); }));
    printf("attribute %.4f\n", 1e6 * best(20, 1000, [&] { cudaDeviceGetAttribute(&number, cudaDevAttrWarpSize, 0); }));
    printf("peek %.4f\n", 1e6 * best(20, 1000, [&] { cudaPeekAtLastError(); }));
    const size_t bytes = 64 << 20;
    char *device, *other, *host = (char*)malloc(bytes), *other_host = (char*)malloc(bytes);
    memset(host, 7, bytes);
    memset(other_host, 7, bytes);
    cudaMalloc(&device, bytes);
    cudaMalloc(&other, bytes);
    auto rate = [&](const char* name, int rounds, auto body) {
        printf("%s %.3f\n", name, bytes / best(rounds, 1, body) / 1e9);
    };
    rate("first", 1, [&] { cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice); });
    rate("plain", 8, [&] { memmove(host, other_host, bytes); });
    rate("to", 8, [&] { cudaMemcpy(device, host, bytes, cudaMemcpyHostToDevice); });
    rate("from", 8, [&] { cudaMemcpy(host, device, bytes, cudaMemcpyDeviceToHost); });
    rate("firstwithin", 1, [&] { cudaMemcpy(other, device, bytes, cudaMemcpyDeviceToDevice); cudaDeviceSynchronize(); });
    rate("within", 8, [&] { cudaMemcpy(other, device, bytes, cudaMemcpyDeviceToDevice); cudaDeviceSynchronize(); });
    char* pinned;
    cudaMallocHost(&pinned, bytes);
    memset(pinned, 7, bytes);
    rate("pinned", 8, [&] { cudaMemcpy(device, pinned, bytes, cudaMemcpyHostToDevice); });
    rate("set", 8, [&] { cudaMemset(device, 5, bytes); cudaDeviceSynchronize(); });
    return cudaDeviceSynchronize();
}
"#;

/// A figure that the program printed.
fn figure(out: &str, name: &str) -> f64 {
    out.lines()
        .filter_map(|line| line.split_once(' '))
        .find(|(found, _)| *found == name)
        .and_then(|(_, value)| value.parse().ok())
        .unwrap_or_else(|| panic!("no `{name}` in {out}"))
}

#[test]
#[ignore = "the machine must have little else to do; `cargo test --release -p lockstep-cli -- --ignored`"]
fn calls_and_copies_cost_what_the_documentation_says() {
    let folder = Folder::new();
    if !build_cuda(&folder, PROGRAM, &["-arch=sm_90", "-O2"]) {
        return;
    }
    let said = folder.run(&["run", "--quiet", "--mode", "functional", "--", "./program"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    println!("{}", said.out);
    // Microseconds of a call that asks the simulator, and of one that need not.
    assert!(figure(&said.out, "asks") < 20.0, "{}", said.out);
    assert!(figure(&said.out, "allocates") < 20.0, "{}", said.out);
    for name in ["local", "attribute", "peek"] {
        assert!(figure(&said.out, name) < 1.0, "{name}: {}", said.out);
    }
    // Gigabytes a second of copies to memory that was touched before; no copy is faster than the
    // machine's own.
    let limit = f64::min(4.0, 0.8 * figure(&said.out, "plain"));
    for name in ["to", "from", "within", "pinned"] {
        assert!(figure(&said.out, name) >= limit, "{name}: {}", said.out);
    }
}
