//! Programs that must end, and end alike: kernels that wait for room, a host that polls memory,
//! host threads that race. Without nvcc or the interposition libraries these tests say so and pass.

mod support;

use std::collections::BTreeSet;
use support::{Folder, build_cuda};

const OPTIONS: &[&str] = &["-arch=sm_90", "-std=c++17", "-O2"];

/// A kernel with more blocks than fit, and another in a second stream that fits nowhere yet.
const ROOM: &str = r#"
#include <cstdio>
#include <cuda_runtime.h>
__global__ void work(int* out, int rounds) {
    int value = rounds;
    for (int round = 0; round < rounds; round++) value = value * 1664525 + 1;
    if (value == 12345) out[9] = 1;
}
int main() {
    int* out;
    cudaMalloc(&out, 16384);
    cudaStream_t one, two;
    cudaStreamCreateWithFlags(&one, cudaStreamNonBlocking);
    cudaStreamCreateWithFlags(&two, cudaStreamNonBlocking);
    work<<<528, 1024, 0, one>>>(out, 100);
    work<<<1, 1024, 0, two>>>(out, 100);
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
"#;

#[test]
fn a_kernel_that_fits_nowhere_yet_waits_and_ends() {
    let folder = Folder::new();
    if !build_cuda(&folder, ROOM, OPTIONS) {
        return;
    }
    for options in [
        &["--threads", "1"][..],
        &["--mode", "functional"],
        &["--threads", "3"],
    ] {
        let said = folder.run(&[&["run"], options, &["--", "./program"]].concat());
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.out.contains("cudaSuccess"), "{said:?}");
    }
}

/// A host that polls what a running kernel writes: pinned, mapped or managed memory.
const POLLS: &str = r#"
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>
__global__ void answer(volatile int* flag, volatile int* go, int rounds) {
    for (int round = 0; round < rounds; round++) flag[1] = round;
    __threadfence_system();
    flag[0] = 1;
    if (go) while (*go == 0) { }
    __threadfence_system();
    flag[2] = 7;
}
int main(int count, char** words) {
    bool managed = count > 1 && !strcmp(words[1], "managed");
    bool both = count > 1 && !strcmp(words[1], "both");
    int* memory;
    if (managed) cudaMallocManaged((void**)&memory, 8192);
    else cudaHostAlloc((void**)&memory, 8192, cudaHostAllocMapped);
    volatile int* flag = memory;
    memset(memory, 0, 8192);
    answer<<<1, 1>>>(flag, both ? flag + 1024 : nullptr, 1000);
    long spins = 0;
    while (flag[0] == 0) spins++;
    if (both) {
        flag[1024] = 1;
        while (flag[2] == 0) spins++;
    }
    cudaEvent_t end;
    cudaEventCreate(&end);
    printf("%d %s %d\n", flag[0], cudaGetErrorName(cudaDeviceSynchronize()), flag[2]);
    return spins < 0;
}
"#;

/// Digest and memory digest of the last run, and whether it says that another would be the same.
fn digests(folder: &Folder) -> (String, bool) {
    let text = std::fs::read_to_string(folder.0.join("out/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    let digest = summary["digest"].as_str().unwrap().to_owned();
    (digest, summary["reproducible"].as_bool().unwrap())
}

#[test]
fn a_host_that_polls_sees_what_kernels_write() {
    let folder = Folder::new();
    if !build_cuda(&folder, POLLS, OPTIONS) {
        return;
    }
    for kind in ["pinned", "managed", "both"] {
        let mut found = BTreeSet::new();
        for mode in ["timing", "timing", "functional"] {
            let run = [
                "run",
                "--mode",
                mode,
                "--out",
                "out",
                "--",
                "./program",
                kind,
            ];
            let _ = std::fs::remove_dir_all(folder.0.join("out"));
            let said = folder.run(&run);
            assert_eq!(said.code, Some(0), "{kind} {mode}: {said:?}");
            assert!(
                said.out.contains("1 cudaSuccess 7"),
                "{kind} {mode}: {said:?}"
            );
            let (digest, reproducible) = digests(&folder);
            assert!(reproducible, "{kind} {mode}: {said:?}");
            if mode == "timing" {
                found.insert(digest);
            }
        }
        assert_eq!(found.len(), 1, "{kind}: {found:?}");
    }
}

/// Host threads that allocate, launch and wait at the same time.
const THREADS: &str = r#"
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>
#include <unistd.h>
#include <cuda_runtime.h>
__global__ void add(int* data, int value, int rounds) {
    for (int round = 0; round < rounds; round++) data[blockIdx.x * blockDim.x + threadIdx.x] += value;
}
static void work(int number, bool sleeps) {
    cudaStream_t stream;
    cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
    for (int step = 0; step < 4; step++) {
        int* data;
        size_t bytes = 4096 << (number + step) % 3;
        cudaMalloc(&data, bytes);
        cudaMemsetAsync(data, 0, bytes, stream);
        add<<<1 + number % 3, 64, 0, stream>>>(data, number, 3 + step);
        cudaStreamSynchronize(stream);
        if (sleeps && step == 1) usleep(1000 * (rand() % 20));
        int value;
        cudaMemcpy(&value, data, 4, cudaMemcpyDeviceToHost);
        if (value != number * (3 + step)) { printf("wrong %d %d\n", number, value); exit(1); }
        if (step % 2) cudaFree(data);
    }
}
int main(int count, char** words) {
    srand(getpid());
    std::vector<std::thread> threads;
    for (int number = 1; number <= 8; number++) threads.emplace_back(work, number, count > 1);
    for (auto& thread : threads) thread.join();
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
}
"#;

#[test]
fn eight_host_threads_give_one_digest() {
    let folder = Folder::new();
    if !build_cuda(&folder, THREADS, OPTIONS) {
        return;
    }
    let mut found = BTreeSet::new();
    for _ in 0..6 {
        let _ = std::fs::remove_dir_all(folder.0.join("out"));
        let said = folder.run(&["run", "--out", "out", "--", "./program"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let (digest, reproducible) = digests(&folder);
        assert!(reproducible, "{said:?}");
        found.insert(digest);
    }
    assert_eq!(found.len(), 1, "{found:?}");
}

#[test]
fn a_thread_that_sleeps_by_the_clock_is_named() {
    let folder = Folder::new();
    if !build_cuda(&folder, THREADS, OPTIONS) {
        return;
    }
    let said = folder.run(&["run", "--out", "out", "--", "./program", "sleeps"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let (_, reproducible) = digests(&folder);
    assert!(!reproducible, "{said:?}");
    assert!(said.err.contains("up to the host"), "{said:?}");
}

#[test]
fn the_program_itself_is_run_again_where_asked() {
    let folder = Folder::new();
    if !build_cuda(&folder, THREADS, OPTIONS) {
        return;
    }
    let said = folder.run(&["verify", "--quick", "--live", "2", "--", "./program"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("all 5 ways gave the digest"), "{said:?}");
    assert!(
        said.out.contains("the program again, 2 threads"),
        "{said:?}"
    );
}

/// A kernel that waits for a flag in mapped memory, which a second thread of the host sets after a while, or
/// nobody at all.
const FLAG: &str = r#"
#include <chrono>
#include <cstdio>
#include <thread>
#include <cuda_runtime.h>
__global__ void wait_for_flag(volatile int* flag) { while (*flag == 0) { } }
int main(int count, char**) {
    int* flag;
    cudaHostAlloc(&flag, 64, cudaHostAllocMapped);
    *flag = 0;
    wait_for_flag<<<3, 64>>>(flag);
    std::thread setter([=] {
        if (count < 2) return;
        std::this_thread::sleep_for(std::chrono::seconds(4));
        *(volatile int*)flag = 1;
    });
    printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
    setter.join();
}
"#;

/// The watchdog of 10^10 cycles would let these spin for hours.
#[test]
fn a_kernel_that_waits_for_nobody_is_found_out() {
    let folder = Folder::new();
    if !build_cuda(&folder, FLAG, OPTIONS) {
        return;
    }
    for mode in ["timing", "functional"] {
        let said = folder.run(&["run", "--mode", mode, "--", "./program"]);
        assert!(said.out.contains("cudaErrorLaunchTimeout"), "{said:?}");
        assert!(said.err.contains("no warp can make progress"), "{said:?}");
        assert!(said.err.contains("wait_for_flag"), "{said:?}");
        assert!(said.err.contains("reading 0x"), "{said:?}");
        // The setter may set it at any time as long as it is there.
        let said = folder.run(&["run", "--mode", mode, "--", "./program", "sets"]);
        assert!(said.out.contains("cudaSuccess"), "{said:?}");
    }
}
