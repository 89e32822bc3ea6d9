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
