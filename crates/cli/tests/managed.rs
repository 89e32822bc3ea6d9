//! Managed memory, end to end: seven programs, each with managed memory, with prefetching and with
//! plain copies, must compute the same. Without nvcc or the interposition libraries these tests
//! say so and pass.

mod support;

use support::{Folder, build_cuda};

const PROGRAM: &str = include_str!("../../../workloads/managed/managed.cu");
const BENCHMARKS: &[&str] = &[
    "bfs",
    "hotspot",
    "pathfinder",
    "backprop",
    "srad",
    "nw",
    "fdtd",
];

const EVICTORS: &[&str] = &[
    "lru-4k",
    "random-4k",
    "sequential-local",
    "tree",
    "lru-2m",
    "lfu-2m",
    "driver",
];

/// The checksum that a run prints.
fn checksum(folder: &Folder, options: &[&str], arguments: &[&str]) -> String {
    let words = [
        &["run", "--quiet"],
        options,
        &["--", "./program"],
        arguments,
    ]
    .concat();
    let said = folder.run(&words);
    assert_eq!(said.code, Some(0), "{words:?}: {said:?}");
    let found = said
        .out
        .split_whitespace()
        .skip_while(|word| *word != "checksum");
    found
        .take(2)
        .last()
        .unwrap_or_else(|| panic!("no checksum in {said:?}"))
        .to_string()
}

#[test]
fn managed_memory_and_plain_copies_give_the_same_results() {
    let folder = Folder::new();
    if !build_cuda(&folder, PROGRAM, &["-arch=sm_90", "-std=c++17", "-O2"]) {
        return;
    }
    for benchmark in BENCHMARKS {
        let functional = ["--mode", "functional", "--record", "none"];
        let copies = checksum(&folder, &functional, &[benchmark, "copy", "tiny"]);
        for manner in ["managed", "prefetch"] {
            let arguments = [*benchmark, manner, "tiny"];
            assert_eq!(
                checksum(&folder, &functional, &arguments),
                copies,
                "{benchmark} {manner}"
            );
            assert_eq!(
                checksum(&folder, &["--record", "none"], &arguments),
                copies,
                "{benchmark} {manner}, timing"
            );
        }
    }
}

#[test]
fn memory_that_is_short_gives_the_same_results_whatever_leaves() {
    let folder = Folder::new();
    if !build_cuda(&folder, PROGRAM, &["-arch=sm_90", "-std=c++17", "-O2"]) {
        return;
    }
    for benchmark in ["hotspot", "pathfinder", "fdtd"] {
        let functional = ["--mode", "functional", "--record", "none"];
        let copies = checksum(&folder, &functional, &[benchmark, "copy", "small"]);
        for evictor in EVICTORS {
            let policy = format!("uvm.evict.policy={evictor}");
            let options = [
                "--record",
                "none",
                "--set",
                "uvm.oversubscription=150",
                // Side by side, three arrays of 256 KiB would be one tree, which always fits.
                "--set",
                "uvm.packing=false",
                "--set",
                policy.as_str(),
                "--overwrite",
                "--out",
                "short",
            ];
            let arguments = [benchmark, "managed", "small"];
            assert_eq!(
                checksum(&folder, &options, &arguments),
                copies,
                "{benchmark} {evictor}"
            );
            let statistics = std::fs::read_to_string(folder.0.join("short/stats.csv")).unwrap();
            let evicted = statistics
                .lines()
                .find_map(|line| line.strip_prefix("gpu 0/gmmu,evicted,"))
                .unwrap_or_else(|| panic!("{benchmark} {evictor}: nothing on evictions"));
            assert!(!evicted.starts_with("0,"), "{benchmark} {evictor}");
        }
    }
}

#[test]
fn managed_memory_replays_to_the_same_digest() {
    let folder = Folder::new();
    if !build_cuda(&folder, PROGRAM, &["-arch=sm_90", "-std=c++17", "-O2"]) {
        return;
    }
    for manner in ["managed", "prefetch"] {
        let said = folder.run(&[
            "verify",
            "--quick",
            "--",
            "./program",
            "pathfinder",
            manner,
            "tiny",
        ]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.out.contains("all 3 ways gave the digest"), "{said:?}");
    }
}

/// The first half of an array is written by the host, the second by nobody; a kernel adds one to
/// all of it, and the host reads it.
const TOUCHED_BY_HALF: &str = r#"
#include <cstdio>
#include <cstring>
__global__ void add(int *values, int count) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count)
        values[i] += 1;
}
int main() {
    const int count = 1 << 20;
    int *values;
    cudaMallocManaged(&values, count * sizeof(int));
    for (int i = 0; i < count / 2; i++)
        values[i] = i;
    add<<<count / 256, 256>>>(values, count);
    cudaDeviceSynchronize();
    int wrong = 0;
    for (int i = 0; i < count; i++)
        wrong += values[i] != (i < count / 2 ? i + 1 : 1);
    std::printf("wrong %d\n", wrong);
    return wrong != 0;
}
"#;

#[test]
fn memory_that_nobody_touched_is_filled_on_the_device() {
    let folder = Folder::new();
    if !build_cuda(&folder, TOUCHED_BY_HALF, &["-arch=sm_90", "-O2"]) {
        return;
    }
    let words = ["run", "--quiet", "--record", "none"];
    let words = [&words[..], &["--overwrite", "--out", "half"]].concat();
    for (setting, filled) in [("zero-fill", 512), ("migrate", 0)] {
        let setting = format!("uvm.first-touch={setting}");
        let options = ["--set", setting.as_str(), "--", "./program"];
        let said = folder.run(&[&words[..], &options[..]].concat());
        assert_eq!(said.code, Some(0), "{setting}: {said:?}");
        assert!(said.out.contains("wrong 0"), "{setting}: {said:?}");
        let statistics = std::fs::read_to_string(folder.0.join("half/stats.csv")).unwrap();
        let pages = format!("gpu 0/gmmu,zero_filled,{filled},");
        assert!(statistics.contains(&pages), "{setting}");
    }
    let said = folder.run(&["verify", "--quick", "--", "./program"]);
    assert_eq!(said.code, Some(0), "{said:?}");
}
