//! Programs that use several GPUs: what each of them computes, when, and that it is one answer however
//! many threads simulate them. Without nvcc or the interposition libraries these tests say so and pass.

mod support;

use std::path::Path;
use support::runs::assert_one;
use support::{Folder, Said, build_cuda};

/// Builds a workload; false if this machine cannot.
fn build(folder: &Folder, name: &str) -> bool {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let source = root.join(format!("workloads/{name}/{name}.cu"));
    let source = source.canonicalize().unwrap();
    build_cuda(folder, &format!("#include \"{}\"\n", source.display()), &[])
}

/// Runs the program with options before it and arguments behind it.
fn run(folder: &Folder, out: &str, options: &[&str], arguments: &[&str]) -> Said {
    let mut all = vec!["run", "--out", out];
    all.extend(options);
    all.extend(["--", "./program"]);
    all.extend(arguments);
    folder.run(&all)
}

fn summary(folder: &Folder, out: &str) -> serde_json::Value {
    let text = std::fs::read_to_string(folder.0.join(out).join("summary.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Runs with 1, 2 and 4 threads: the program passes and the digest is one.
fn one_answer(folder: &Folder, options: &[&str], arguments: &[&str]) {
    let digests: Vec<String> = ["1", "2", "4"]
        .iter()
        .map(|threads| {
            let mut all = options.to_vec();
            all.extend(["--threads", threads, "--quiet"]);
            let said = run(folder, threads, &all, arguments);
            assert_eq!(said.code, Some(0), "{} threads: {}", threads, said.err);
            assert!(said.out.contains("PASS"), "{}", said.out);
            summary(folder, threads)["digest"].to_string()
        })
        .collect();
    assert_one(&digests);
}

/// A column of `kernels.csv`, a value a launch.
fn column(folder: &Folder, out: &str, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.0.join(out).join("kernels.csv")).unwrap();
    let mut lines = text.lines();
    let headers = lines.next().unwrap();
    let place = headers.split(',').position(|known| known == name).unwrap();
    let value = |line: &str| line.split(',').nth(place).unwrap().to_owned();
    lines.map(value).collect()
}

#[test]
fn gpus_compute_their_parts_and_agree_on_one_answer() {
    let folder = Folder::new();
    if !build(&folder, "gpu_halves") {
        return;
    }
    one_answer(&folder, &["--gpus", "2"], &["20000"]);
    assert_eq!(column(&folder, "1", "gpu"), ["0", "1"]);
    let said = run(&folder, "three", &["--gpus", "3", "--quiet"], &["5000"]);
    assert!(said.out.contains("on 3 GPUs, 0 wrong"), "{said:?}");
    let statistics = std::fs::read_to_string(folder.0.join("three/stats.csv")).unwrap();
    assert!(statistics.contains("gpu 2/sm/131"), "of every GPU");
    // The program sees what the environment leaves.
    let mut command = folder.lockstep();
    command.env("CUDA_VISIBLE_DEVICES", "2,0");
    command.args([
        "run",
        "--gpus",
        "3",
        "--quiet",
        "--out",
        "two",
        "--",
        "./program",
    ]);
    let said = Said::from(command.arg("5000").output().unwrap());
    assert!(said.out.contains("on 2 GPUs, 0 wrong"), "{said:?}");
    assert_eq!(column(&folder, "two", "gpu"), ["2", "0"]);
}

#[test]
fn blocks_go_round_a_ring_of_gpus() {
    let folder = Folder::new();
    if build(&folder, "peer_copy_ring") {
        one_answer(&folder, &["--gpus", "4"], &["4096"]);
    }
}

#[test]
fn kernels_reach_the_memory_of_their_peers() {
    let folder = Folder::new();
    if !build(&folder, "peer_loads") {
        return;
    }
    one_answer(&folder, &["--gpus", "2"], &["2048"]);
    let said = run(
        &folder,
        "refused",
        &["--gpus", "2", "--quiet"],
        &["512", "1"],
    );
    assert!(said.out.contains("PASS"), "{}", said.out);
    assert_eq!(said.code, Some(0));
    let sentence = "GPU 1 may not use the memory of GPU 0 unless peer access is enabled";
    assert!(said.err.contains(sentence), "{}", said.err);
}

const KINDS: &str = r#"
#include <cstdio>
#include <cuda_runtime.h>

__global__ void work(unsigned* words) {
    unsigned index = blockIdx.x * blockDim.x + threadIdx.x, sum = index;
    for (int round = 0; round < 50; round++) sum = sum * 1664525 + 1013904223;
    words[index] = sum;
}

// Every GPU says what it is and works; what the first has made goes round all of them.
int main() {
    const int count = 1 << 14;
    static unsigned got[count];
    int gpus = 0, wrong = 0;
    cudaGetDeviceCount(&gpus);
    unsigned *words[8], *last = nullptr;
    for (int gpu = 0; gpu < gpus; gpu++) {
        cudaDeviceProp known;
        cudaFuncAttributes code;
        cudaGetDeviceProperties(&known, gpu);
        cudaSetDevice(gpu);
        cudaMalloc(&words[gpu], sizeof got);
        work<<<count / 256, 256>>>(words[gpu]);
        cudaFuncGetAttributes(&code, work);
        size_t left, all;
        cudaMemGetInfo(&left, &all);
        printf("%d.%d %d SMs %zu GiB code for %d\n", known.major, known.minor, known.multiProcessorCount, all >> 30,
               code.binaryVersion);
        wrong += cudaMemcpy(got, words[gpu], sizeof got, cudaMemcpyDeviceToHost) != cudaSuccess;
        for (unsigned index = 0; index < count; index++) {
            unsigned sum = index;
            for (int round = 0; round < 50; round++) sum = sum * 1664525 + 1013904223;
            wrong += got[index] != sum;
        }
        if (last) wrong += cudaMemcpyPeer(words[gpu], gpu, last, gpu - 1, sizeof got) != cudaSuccess;
        last = words[gpu];
    }
    printf("%s: %d wrong\n", wrong ? "FAIL" : "PASS", wrong);
    return wrong != 0;
}
"#;

#[test]
fn gpus_of_several_kinds_are_each_what_they_are_alone() {
    let folder = Folder::new();
    let both = [
        "-gencode=arch=compute_80,code=sm_80",
        "-gencode=arch=compute_90,code=sm_90",
    ];
    if !build_cuda(&folder, KINDS, &both) {
        return;
    }
    one_answer(&folder, &["--gpus", "h200,a100,h200"], &[]);
    let said = run(
        &folder,
        "said",
        &["--gpus", "h200,a100,h200", "--quiet"],
        &[],
    );
    let [hopper, ampere] = [
        "9.0 132 SMs 139 GiB code for 90",
        "8.0 108 SMs 39 GiB code for 80",
    ];
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines, [hopper, ampere, hopper, "PASS: 0 wrong"], "{said:?}");
    let cycles = column(&folder, "said", "cycles");
    for (kind, gpu) in [("h200", 0), ("a100", 1)] {
        let said = run(&folder, kind, &["--gpu", kind, "--quiet"], &[]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert_eq!(column(&folder, kind, "cycles"), cycles[gpu..=gpu], "{kind}");
    }
    assert_eq!(summary(&folder, "said")["gpu"], "h200,a100,h200");
    let said = run(&folder, "none", &["--gpus", "h200,b900", "--quiet"], &[]);
    assert!(said.err.contains("b900"), "{said:?}");
    assert_ne!(said.code, Some(0));
}

const COPIES: &str = r#"
#include <cstdio>
#include <cuda_runtime.h>
// Copies of 8 MiB from each GPU of a list to the GPU behind it, all at once; microseconds for all.
static float time(int count, const int (*pairs)[2]) {
    static const size_t bytes = 8 << 20;
    cudaStream_t streams[4];
    void *from[4], *to[4];
    cudaEvent_t begin, end, ends[4];
    for (int i = 0; i < count; i++) {
        cudaSetDevice(pairs[i][1]);
        cudaMalloc(&to[i], bytes);
        cudaSetDevice(pairs[i][0]);
        cudaMalloc(&from[i], bytes);
        cudaStreamCreate(&streams[i]);
        cudaEventCreate(&ends[i]);
    }
    cudaSetDevice(pairs[0][0]);
    cudaEventCreate(&begin);
    cudaEventCreate(&end);
    cudaEventRecord(begin, streams[0]);
    for (int i = 0; i < count; i++) {
        cudaMemcpyPeerAsync(to[i], pairs[i][1], from[i], pairs[i][0], bytes, streams[i]);
        cudaEventRecord(ends[i], streams[i]);
    }
    for (int i = 0; i < count; i++) cudaStreamWaitEvent(streams[0], ends[i], 0);
    cudaEventRecord(end, streams[0]);
    cudaEventSynchronize(end);
    float milliseconds = 0;
    cudaEventElapsedTime(&milliseconds, begin, end);
    return milliseconds * 1000;
}
int main() {
    const int one[][2] = {{0, 1}}, apart[][2] = {{0, 1}, {2, 3}}, into_one[][2] = {{0, 1}, {2, 1}};
    const int both_ways[][2] = {{0, 1}, {1, 0}};
    printf("one %.1f\n", time(1, one));
    printf("apart %.1f\n", time(2, apart));
    printf("into_one %.1f\n", time(2, into_one));
    printf("both_ways %.1f\n", time(2, both_ways));
    return cudaDeviceSynchronize();
}
"#;

/// Simulated microseconds that the program prints after a name.
fn microseconds(said: &Said, name: &str) -> f64 {
    let line = said.out.lines().find(|line| line.starts_with(name));
    let value = line.and_then(|line| line.split_whitespace().nth(1));
    value
        .and_then(|value| value.parse().ok())
        .unwrap_or_else(|| panic!("no `{name}` in {said:?}"))
}

#[test]
fn copies_between_gpus_take_their_links_and_share_them() {
    let folder = Folder::new();
    if !build_cuda(&folder, COPIES, &[]) {
        return;
    }
    // 8 MiB at 26 GB/s through the switch, at 100 GB/s from GPU to GPU, at 450 GB/s.
    for (node, least) in [("pcie", 322.6), ("nvlink-mesh", 83.8), ("hgx", 18.6)] {
        let said = run(
            &folder,
            node,
            &["--gpus", "4", "--node", node, "--quiet"],
            &[],
        );
        assert_eq!(said.code, Some(0), "{}", said.err);
        let one = microseconds(&said, "one");
        assert!((least..least + 25.0).contains(&one), "{node}: {one}");
        // What shares no link does not wait: calls of the host come one after the other.
        for name in ["apart", "both_ways"] {
            let together = microseconds(&said, name);
            assert!(
                together < one + 10.0,
                "{node}: {name} {together}, one {one}"
            );
        }
        let into_one = microseconds(&said, "into_one");
        match node {
            "nvlink-mesh" => assert!(into_one < one + 10.0, "{node}: {into_one}"),
            _ => assert!(
                (2.0 * least..2.0 * least + 25.0).contains(&into_one),
                "{into_one}"
            ),
        }
    }
}

#[test]
fn what_a_node_cannot_have_is_refused_with_a_sentence() {
    let folder = Folder::new();
    folder.script("program", "#!/bin/sh\n");
    let cases: [(&[&str], &str); 4] = [
        (&["--gpus", "0"], "0 GPUs: a node has 1 to 8"),
        (&["--gpus", "9"], "9 GPUs: a node has 1 to 8"),
        (
            &["--gpus", "5", "--node", "nvlink-mesh"],
            "5 GPUs, and the node holds 4",
        ),
        (
            &["--gpus", "2", "--node", "ring"],
            "no node is called `ring`",
        ),
    ];
    for (number, (options, expected)) in cases.iter().enumerate() {
        let said = run(&folder, &number.to_string(), options, &[]);
        assert_eq!(said.code, Some(2));
        assert!(said.err.contains(expected), "{}", said.err);
    }
}
