//! `lockstep trace` and `lockstep replay`, from a program to the launches of its traces. Without nvcc or the
//! interposition libraries these tests say so and pass.

mod support;

use std::path::{Path, PathBuf};
use support::{Folder, build_cuda};

const PROGRAM: &str = r#"
#include <cstdio>
__global__ void scale(float* data, int count) {
    __shared__ float tile[128];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    tile[threadIdx.x] = i < count ? data[i] : 0;
    __syncthreads();
    if (i < count && tile[127 - threadIdx.x] >= 0) data[i] = 2 * tile[threadIdx.x];
}
int main() {
    float* data;
    cudaMalloc(&data, 1000 * sizeof(float));
    cudaMemset(data, 0, 1000 * sizeof(float));
    for (int launch = 0; launch < 2; launch++) scale<<<8, 128>>>(data, 1000);
    return cudaDeviceSynchronize();
}
"#;

/// A column of the launches of a run folder.
fn column(folder: &Path, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder.join("kernels.csv")).unwrap();
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().unwrap();
    let at = head.iter().position(|known| *known == name).unwrap();
    rows.map(|row| row[at].to_owned()).collect()
}

/// The traces of kernels in a folder, in their order.
fn traces(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let mut found: Vec<PathBuf> = paths
        .filter(|path| path.extension().is_some_and(|known| known != "g"))
        .collect();
    found.sort();
    found
}

#[test]
fn a_traced_program_is_replayed_with_its_counts_and_a_cut_trace_is_refused() {
    let folder = Folder::new();
    if !build_cuda(&folder, PROGRAM, &["-arch=sm_90"]) {
        return;
    }
    let said = folder.run(&["trace", "--output", "traces", "--", "./program"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.starts_with("2 kernels and "), "{said:?}");
    let said = folder.run(&["run", "--quiet", "--out", "direct", "--", "./program"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let said = folder.run(&["replay", "traces", "--out", "replayed"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let (direct, replayed) = (folder.0.join("direct"), folder.0.join("replayed"));
    for name in ["inst_executed", "thread_inst_executed", "l1_sectors"] {
        let counts = column(&direct, name);
        assert_eq!(counts.len(), 2);
        assert_eq!(column(&replayed, name), counts, "{name}");
    }

    // A folder that has traces is not written over, and a trace that ends in the middle is named.
    let said = folder.run(&["trace", "--output", "traces", "--", "./program"]);
    assert_ne!(said.code, Some(0), "{said:?}");
    let last = traces(&folder.0.join("traces")).pop().unwrap();
    let whole = std::fs::read(&last).unwrap();
    std::fs::write(&last, &whole[..whole.len() / 2]).unwrap();
    let said = folder.run(&["replay", "traces", "--out", "cut"]);
    assert_ne!(said.code, Some(0), "{said:?}");
    let name = last.file_name().unwrap().to_string_lossy().into_owned();
    assert!(said.err.contains(&name), "{said:?}");
}

/// All that a folder with traces holds, by name.
fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut all: Vec<_> = entries
        .map(|entry| {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read(path).unwrap())
        })
        .collect();
    all.sort();
    all
}

#[test]
fn a_record_replays_to_the_digest_and_becomes_the_same_traces() {
    let folder = Folder::new();
    if !build_cuda(&folder, PROGRAM, &["-arch=sm_90"]) {
        return;
    }
    let well = |words: &[&str]| {
        let said = folder.run(words);
        assert_eq!(said.code, Some(0), "{said:?}");
        said
    };
    let summary = |name: &str| -> serde_json::Value {
        let path = folder.0.join(name).join("summary.json");
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
    };
    let program = ["--", "./program"];
    let record = ["run", "--quiet", "--record", "full", "--out", "direct"];
    well(&[&record[..], &program].concat());
    // The program is not needed any more.
    std::fs::rename(folder.0.join("program"), folder.0.join("gone")).unwrap();
    well(&["replay", "direct", "--threads", "1", "--out", "again"]);
    well(&[
        "replay",
        "direct/calls.record",
        "--threads",
        "4",
        "--out",
        "four",
    ]);
    let direct = summary("direct");
    for name in ["again", "four"] {
        let replayed = summary(name);
        assert_eq!(replayed["digest"], direct["digest"]);
        assert_eq!(replayed["memory_digest"], direct["memory_digest"]);
        assert_eq!(replayed["totals"], direct["totals"]);
        for column_name in ["cycles", "inst_executed", "l2_sectors", "dram_bytes_read"] {
            let counts = column(&folder.0.join("direct"), column_name);
            assert_eq!(column(&folder.0.join(name), column_name), counts);
        }
    }
    // Other settings take other times, and compute the same.
    well(&[
        "replay",
        "direct",
        "--set",
        "device.clock=990 MHz",
        "--out",
        "slow",
    ]);
    let slow = summary("slow");
    assert_ne!(slow["digest"], direct["digest"]);
    assert_eq!(slow["memory_digest"], direct["memory_digest"]);

    well(&["trace", "--record", "direct", "--output", "of_record"]);
    std::fs::rename(folder.0.join("gone"), folder.0.join("program")).unwrap();
    well(&[&["trace", "--output", "of_program"][..], &program].concat());
    let traces = contents(&folder.0.join("of_record"));
    assert_eq!(traces.len(), 3);
    assert!(traces == contents(&folder.0.join("of_program")));
    let bytes: usize = traces.iter().map(|(_, bytes)| bytes.len()).sum();
    let record = std::fs::metadata(folder.0.join("direct/calls.record")).unwrap();
    assert!(
        10 * record.len() < bytes as u64,
        "{} and {bytes}",
        record.len()
    );

    // A record without data, a torn one and a folder without any are refused.
    well(&[&["run", "--quiet", "--out", "calls"][..], &program].concat());
    let refused = |words: &[&str], expected: &str| {
        let said = folder.run(words);
        assert_ne!(said.code, Some(0), "{said:?}");
        assert!(said.err.contains(expected), "{said:?}");
    };
    refused(&["replay", "calls", "--out", "x"], "--record full");
    let path = folder.0.join("direct/calls.record");
    let whole = std::fs::read(&path).unwrap();
    // Damage in the middle is found by what comes of it.
    for (place, expected, out) in [(0, "calls.record", "y"), (whole.len() / 2, "entry", "z")] {
        let mut torn = whole.clone();
        torn[place] ^= 0x55;
        std::fs::write(&path, torn).unwrap();
        refused(&["replay", "direct", "--out", out], expected);
    }
    let nothing = ["trace", "--record", "traces", "--output", "none"];
    refused(&nothing, "there is no record of calls");
}
