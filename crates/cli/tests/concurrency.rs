//! Streams, graphs, threads and processes: what overlaps in simulated time, and that results are
//! right however many host threads and processes share the GPU. Without nvcc or the interposition
//! libraries these tests say so and pass.

mod support;

use support::{Folder, build_cuda};

/// Simulated microseconds that a program prints after a name.
fn microseconds(out: &str, name: &str) -> f64 {
    let line = out.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_whitespace().nth(1));
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or_else(|| panic!("no `{name}` in {out}"))
}

const STREAMS: &str = r#"
#include <cstdio>
#include <cuda_runtime.h>
// As many blocks as half the SMs hold one each, long enough that launching them does not count.
__global__ void work(float* out, int rounds) {
    for (int round = 0; round < rounds; round++) __nanosleep(1000);
    out[blockIdx.x * blockDim.x + threadIdx.x] = rounds;
}
static float *a, *b, *pinned, *buffer;
static const int blocks = 66, bytes = 1 << 20;
static void chain(cudaStream_t stream, float* out) {
    for (int step = 0; step < 3; step++) work<<<blocks, 128, 0, stream>>>(out, 100);
}
static void copies(cudaStream_t stream) {
    for (int step = 0; step < 3; step++) cudaMemcpyAsync(buffer, pinned, bytes, cudaMemcpyHostToDevice, stream);
}
template <typename Body> static float time(const char* name, Body body) {
    cudaEvent_t start, end;
    cudaEventCreate(&start); cudaEventCreate(&end);
    cudaDeviceSynchronize();
    cudaEventRecord(start);
    body();
    cudaEventRecord(end);
    cudaEventSynchronize(end);
    float ms = 0;
    cudaEventElapsedTime(&ms, start, end);
    printf("%s %.3f\n", name, ms * 1000);
    return ms;
}
int main() {
    cudaMalloc(&a, blocks * 128 * 4); cudaMalloc(&b, blocks * 128 * 4);
    cudaMallocHost(&pinned, bytes); cudaMalloc(&buffer, bytes);
    cudaStream_t one, two, three;
    cudaStreamCreate(&one); cudaStreamCreate(&two); cudaStreamCreate(&three);
    chain(one, a);
    time("first", [&] { chain(one, a); });
    time("second", [&] { chain(two, b); });
    time("copies", [&] { copies(three); });
    time("together", [&] { chain(one, a); chain(two, b); copies(three); });
    return cudaDeviceSynchronize();
}
"#;

#[test]
fn streams_that_fit_side_by_side_overlap() {
    let folder = Folder::new();
    if !build_cuda(&folder, STREAMS, &["-arch=sm_90"]) {
        return;
    }
    let said = folder.run(&["run", "--quiet", "--", "./program"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let longest = ["first", "second", "copies"]
        .map(|name| microseconds(&said.out, name))
        .into_iter()
        .fold(0.0, f64::max);
    let together = microseconds(&said.out, "together");
    assert!(
        together <= longest * 1.1 && together >= longest,
        "{together} us together, {longest} us alone: {said:?}"
    );
}

const GRAPH: &str = r#"
#include <cstdio>
#include <cstring>
#include <cuda_runtime.h>
// 250 rounds of four nodes: two kernels side by side, one that needs both, and a fill.
__global__ void step(int* words, int count, int add) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) words[index] = words[index] * 3 + add;
}
static const int count = 1024;
static int *words, *other, host[2][2 * count];
static cudaEvent_t fork_event, join_event;
static void issue(cudaStream_t one, cudaStream_t two) {
    for (int round = 0; round < 250; round++) {
        cudaEventRecord(fork_event, one);
        cudaStreamWaitEvent(two, fork_event, 0);
        step<<<4, 256, 0, one>>>(words, count, round);
        step<<<4, 256, 0, two>>>(other, count, round + 1);
        cudaEventRecord(join_event, two);
        cudaStreamWaitEvent(one, join_event, 0);
        step<<<4, 256, 0, one>>>(words, count, 7);
        cudaMemsetAsync(other + round, round, 4, one);
    }
}
static void clear() { cudaMemset(words, 0, count * 4); cudaMemset(other, 0, count * 4); cudaDeviceSynchronize(); }
static void keep(int* place) {
    cudaMemcpy(place, words, count * 4, cudaMemcpyDeviceToHost);
    cudaMemcpy(place + count, other, count * 4, cudaMemcpyDeviceToHost);
}
int main() {
    cudaStream_t one, two;
    cudaEvent_t start, end;
    cudaStreamCreate(&one); cudaStreamCreate(&two);
    cudaEventCreate(&start); cudaEventCreate(&end);
    cudaEventCreate(&fork_event); cudaEventCreate(&join_event);
    cudaMalloc(&words, count * 4); cudaMalloc(&other, count * 4);
    float streams = 0, graph_time = 0;
    clear();
    cudaEventRecord(start, one); issue(one, two); cudaEventRecord(end, one); cudaEventSynchronize(end);
    cudaEventElapsedTime(&streams, start, end);
    keep(host[0]);
    clear();
    cudaGraph_t graph; cudaGraphExec_t instance; size_t nodes = 0;
    cudaStreamBeginCapture(one, cudaStreamCaptureModeGlobal);
    issue(one, two);
    if (cudaStreamEndCapture(one, &graph)) return 2;
    cudaGraphGetNodes(graph, nullptr, &nodes);
    if (cudaGraphInstantiate(&instance, graph, 0)) return 3;
    cudaEventRecord(start, one); cudaGraphLaunch(instance, one); cudaEventRecord(end, one); cudaEventSynchronize(end);
    cudaEventElapsedTime(&graph_time, start, end);
    keep(host[1]);
    printf("nodes %zu\nequal %d\nstreams %.3f\ngraph %.3f\n", nodes, memcmp(host[0], host[1], sizeof host[0]) == 0,
           streams * 1000, graph_time * 1000);
    return cudaGetLastError();
}
"#;

#[test]
fn a_graph_of_a_thousand_nodes_does_what_streams_do_and_takes_no_longer() {
    let folder = Folder::new();
    if !build_cuda(&folder, GRAPH, &["-arch=sm_90"]) {
        return;
    }
    let said = folder.run(&["run", "--quiet", "--", "./program"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.contains("nodes 1000\nequal 1\n"), "{said:?}");
    let (streams, graph) = (
        microseconds(&said.out, "streams"),
        microseconds(&said.out, "graph"),
    );
    assert!(
        graph <= streams,
        "{graph} us as a graph, {streams} us by streams"
    );
}

const CROWD: &str = r#"
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>
#include <cuda_runtime.h>
__global__ void fill(int* words, int count, int value) {
    int index = blockIdx.x * blockDim.x + threadIdx.x;
    if (index < count) words[index] = value + index;
}
static bool once(int seed) {
    const int count = 500;
    int *words, host[count];
    cudaStream_t stream;
    if (cudaStreamCreate(&stream) || cudaMalloc(&words, sizeof host)) return false;
    fill<<<2, 256, 0, stream>>>(words, count, seed);
    if (cudaMemcpyAsync(host, words, sizeof host, cudaMemcpyDeviceToHost, stream)) return false;
    if (cudaStreamSynchronize(stream)) return false;
    bool right = true;
    for (int index = 0; index < count; index++) right = right && host[index] == seed + index;
    return right && !cudaFree(words) && !cudaStreamDestroy(stream);
}
int main(int argc, char** argv) {
    int threads = atoi(argv[1]), processes = atoi(argv[2]), rounds = atoi(argv[3]);
    std::vector<pid_t> children;
    for (int number = 1; number < processes; number++) {
        pid_t child = fork();
        if (child == 0) { children.clear(); processes = 0; break; }
        children.push_back(child);
    }
    std::atomic<int> wrong(0);
    std::vector<std::thread> crowd;
    for (int number = 0; number < threads; number++)
        crowd.emplace_back([&, number] {
            for (int round = 0; round < rounds; round++)
                if (!once(getpid() * 100 + number * 1000 + round)) wrong++;
        });
    for (auto& thread : crowd) thread.join();
    for (pid_t child : children) {
        int status = 1;
        waitpid(child, &status, 0);
        if (status) wrong++;
    }
    if (processes) printf("wrong %d\n", wrong.load());
    return wrong != 0;
}
"#;

#[test]
fn eight_threads_and_four_processes_get_their_own_results() {
    let folder = Folder::new();
    if !build_cuda(&folder, CROWD, &["-arch=sm_90"]) {
        return;
    }
    for (threads, processes) in [("8", "1"), ("1", "4"), ("3", "4")] {
        let said = folder.run(&[
            "run",
            "--quiet",
            "--mode",
            "functional",
            "--",
            "./program",
            threads,
            processes,
            "100",
        ]);
        assert_eq!(
            (said.code, said.out.as_str()),
            (Some(0), "wrong 0\n"),
            "{threads} threads, {processes} processes: {said:?}"
        );
    }
    // The record of what they called, in the order in which it came, gives one digest.
    for (threads, processes) in [("8", "1"), ("2", "4")] {
        let said = folder.run(&[
            "verify",
            "--mode",
            "functional",
            "--reloads",
            "1",
            "--",
            "./program",
            threads,
            processes,
            "2",
        ]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.out.contains("ways gave the digest"), "{said:?}");
    }
    crowds(&folder, 2);
}

/// Runs eight threads and four processes so many times each; every run replays to its digest.
fn crowds(folder: &Folder, runs: u32) {
    for (threads, processes) in [("8", "1"), ("1", "4")] {
        for run in 0..runs {
            let said = folder.run(&[
                "verify",
                "--quick",
                "--mode",
                "functional",
                "--",
                "./program",
                threads,
                processes,
                "3",
            ]);
            assert!(
                said.code == Some(0)
                    && said.out.contains("wrong 0\n")
                    && said.out.contains("all 3 ways gave the digest"),
                "run {run} of {threads} threads, {processes} processes: {said:?}"
            );
            // Each run has a folder of its own.
            let _ = std::fs::remove_dir_all(folder.0.join("lockstep-out"));
        }
    }
}

#[test]
#[ignore = "minutes: 100 runs of each; `cargo test --release -p lockstep-cli -- --ignored`"]
fn a_hundred_runs_of_threads_and_of_processes() {
    let folder = Folder::new();
    if build_cuda(&folder, CROWD, &["-arch=sm_90"]) {
        crowds(&folder, 100);
    }
}
