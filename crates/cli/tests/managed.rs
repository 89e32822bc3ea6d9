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
