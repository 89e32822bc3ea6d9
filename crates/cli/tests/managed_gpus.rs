//! Managed memory of programs that use several GPUs: values, how pages went from GPU to GPU, and one
//! answer for any number of threads. Without nvcc or the interposition libraries these tests say so
//! and pass.

mod support;

use std::collections::BTreeMap;
use support::runs::assert_one;
use support::{Folder, build_cuda};

const PROGRAM: &str = include_str!("sources/managed_gpus.cu");
/// Bytes of the array that all GPUs use.
const BYTES: u64 = 128 << 10;

/// Statistics of a run by component and name.
struct Statistics(BTreeMap<String, u64>);

impl Statistics {
    fn read(folder: &Folder, out: &str) -> Self {
        let text = std::fs::read_to_string(folder.0.join(out).join("stats.csv")).unwrap();
        let rows = text.lines().filter_map(|line| {
            let mut fields = line.split(',');
            let name = format!("{},{}", fields.next()?, fields.next()?);
            Some((name, fields.next()?.parse().ok()?))
        });
        Self(rows.collect())
    }

    /// Those of the first two GPUs.
    fn of(&self, name: &str) -> [u64; 2] {
        [0, 1].map(|gpu| {
            let name = format!("gpu {gpu}/{name}");
            *self.0.get(&name).unwrap_or_else(|| panic!("no {name}"))
        })
    }
}

fn build(folder: &Folder) -> bool {
    build_cuda(folder, PROGRAM, &["-arch=sm_90", "-std=c++17"])
}

fn reversed([first, second]: [u64; 2]) -> [u64; 2] {
    [second, first]
}

/// Runs one way with options and a number of threads; its digest.
fn run(folder: &Folder, way: &str, options: &[&str], threads: &str) -> String {
    let mut words = vec!["run", "--quiet", "--overwrite", "--out", way];
    words.extend(["--threads", threads]);
    words.extend(options);
    words.extend(["--", "./program", way]);
    let said = folder.run(&words);
    assert_eq!(said.code, Some(0), "{way}, {threads} threads: {said:?}");
    assert!(said.out.contains("PASS"), "{}", said.out);
    assert!(!said.err.contains("not paged"), "{}", said.err);
    let summary = std::fs::read_to_string(folder.0.join(way).join("summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&summary).unwrap();
    summary["digest"].to_string()
}

/// The statistics of one way, which has one digest for 1, 2 and 4 threads.
fn one_answer(folder: &Folder, way: &str, options: &[&str]) -> Statistics {
    let digests: Vec<String> = ["1", "2", "4"]
        .iter()
        .map(|threads| run(folder, way, options, threads))
        .collect();
    assert_one(&digests);
    Statistics::read(folder, way)
}

const TWO: &[&str] = &["--gpus", "2"];

#[test]
fn pages_go_to_and_fro_between_gpus() {
    let folder = Folder::new();
    if !build(&folder) {
        return;
    }
    let statistics = one_answer(&folder, "ping-pong", TWO);
    // From the host once, to the first GPU; then 1, 0, 1 touch everything.
    assert_eq!(statistics.of("gmmu/peers,migrated"), [BYTES, 2 * BYTES]);
    assert_eq!(statistics.of("gmmu/peers,given"), [2 * BYTES, BYTES]);
    let [first, second] = statistics.of("gmmu,demand");
    let [along, nothing] = statistics.of("gmmu,prefetch");
    assert_eq!([first + along, second + nothing], [BYTES, 0]);
    assert!(statistics.of("gmmu,far_faults").iter().all(|one| *one > 0));
    // The host reads everything at the end, where it is.
    assert_eq!(statistics.of("gmmu,host_back"), [0, BYTES]);
}

#[test]
fn gpus_that_write_the_same_pages_at_once_agree() {
    let folder = Folder::new();
    if !build(&folder) {
        return;
    }
    let statistics = one_answer(&folder, "at-once", TWO);
    let came = statistics.of("gmmu/peers,migrated");
    assert!(came[0] > 0 && came[1] > BYTES, "to and fro: {came:?}");
    assert_eq!(came, reversed(statistics.of("gmmu/peers,given")));
    // On slow links, page by page, and with one server for all faults too.
    let page_by_page = ["--set", "uvm.prefetch.policy=none"];
    let serial = ["--set", "uvm.fault.service=serial"];
    let slow = ["--gpus", "2", "--node", "pcie"];
    one_answer(
        &folder,
        "at-once",
        &[&slow[..], &page_by_page, &serial].concat(),
    );
}

#[test]
fn pages_that_are_mostly_read_are_on_both_gpus() {
    let folder = Folder::new();
    if !build(&folder) {
        return;
    }
    let statistics = one_answer(&folder, "copies", TWO);
    // To the second GPU once, from the first; back to the first after the second has written.
    assert_eq!(statistics.of("gmmu/peers,copied"), [BYTES, BYTES]);
    assert_eq!(statistics.of("gmmu/peers,given_copies"), [BYTES, 0]);
    assert_eq!(statistics.of("gmmu/peers,upgraded"), [0, BYTES / 4096]);
}

#[test]
fn a_prefetch_goes_from_gpu_to_gpu_and_home() {
    let folder = Folder::new();
    if !build(&folder) {
        return;
    }
    let statistics = one_answer(&folder, "prefetch", TWO);
    assert_eq!(statistics.of("gmmu/peers,user_prefetch"), [0, BYTES]);
    assert_eq!(statistics.of("gmmu,user_prefetch"), [BYTES, 0]);
    assert_eq!(statistics.of("gmmu,host_back"), [0, BYTES]);
    assert_eq!(statistics.of("gmmu,far_faults"), [0, 0]);
}

#[test]
fn a_page_where_it_is_preferred_is_used_over_the_link() {
    let folder = Folder::new();
    if !build(&folder) {
        return;
    }
    for way in ["preferred", "accessed-by"] {
        let statistics = one_answer(&folder, way, TWO);
        assert_eq!(statistics.of("gmmu/peers,migrated"), [0, 0], "{way}");
        assert_eq!(statistics.of("gmmu/peers,given"), [0, 0], "{way}");
        // Read and written over the link, by the first GPU alone.
        for name in ["zero_copy", "remote_reads", "remote_writes"] {
            let [first, second] = statistics.of(&format!("gmmu/peers,{name}"));
            assert!(first > 0 && second == 0, "{way}: {name} {first} {second}");
        }
        assert_eq!(statistics.of("gmmu,far_faults")[0], 0, "{way}");
    }
}

/// A faster link brings pages sooner.
#[test]
fn pages_take_the_links_of_the_node() {
    let folder = Folder::new();
    if !build(&folder) {
        return;
    }
    let time = |node: &str| {
        run(&folder, "prefetch", &["--gpus", "2", "--node", node], "1");
        let statistics = Statistics::read(&folder, "prefetch");
        statistics.of("gmmu/peers,claim_wait.sum")[1]
    };
    let [fast, slow] = ["hgx", "pcie"].map(time);
    // 128 KiB take 0.3 µs at 400 GB/s and 5 µs at 26 GB/s, at 1.98 GHz.
    assert!(slow > fast + 6000, "{slow} {fast}");
}
