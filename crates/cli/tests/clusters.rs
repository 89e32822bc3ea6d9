//! Runs of several nodes: what a process sees, what is out of its reach, and that it is one answer however many threads
//! simulate it. Without nvcc or the interposition libraries the tests of programs say so and pass.

mod support;

use std::path::Path;
use support::runs::assert_one;
use support::{Folder, build_cuda};

const EXCHANGE: &str = include_str!("sources/node_exchange.cu");

#[test]
fn processes_of_two_nodes_exchange_over_sockets_with_one_digest() {
    let folder = Folder::new();
    if !build_cuda(&folder, EXCHANGE, &["-arch=sm_90"]) {
        return;
    }
    let mut digests = Vec::new();
    for threads in ["1", "2", "4"] {
        let options = ["--nodes", "2", "--gpus", "2", "--threads", threads];
        let said = folder.run_program(&options, &["./program", "2", "2"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        assert!(said.out.contains("PASS: 2 nodes of 2 GPUs"), "{said:?}");
        digests.push(folder.digest());
    }
    assert_one(&digests);
    let (kernels, statistics) = (folder.result("kernels.csv"), folder.result("stats.csv"));
    for name in [
        "node 0/gpu 0",
        "node 0/gpu 1",
        "node 1/gpu 0",
        "node 1/gpu 1",
    ] {
        assert!(kernels.contains(&format!(",{name},")), "{kernels}");
        assert!(statistics.contains(&format!("{name}/sm/0")), "{name}");
    }
    let remarks = folder.summary()["remarks"].to_string();
    assert!(remarks.contains("4 GPUs on 2 nodes"), "{remarks}");
    let report = folder.run(&["report", "out"]);
    assert_eq!(report.code, Some(0), "{report:?}");
    // Caches of all nodes are summed.
    assert!(report.out.contains("global load     6,000"), "{report:?}");
}

#[test]
fn an_all_reduce_over_two_nodes_verifies_with_one_digest() {
    let folder = Folder::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let source = root.join("studies/cluster-scale/all_reduce_of_nodes.cu");
    let source = format!("#include \"{}\"\n", source.display());
    if !build_cuda(&folder, &source, &["-arch=sm_90"]) {
        return;
    }
    let digests = ["1", "2"].map(|threads| {
        let options = ["--nodes", "2", "--gpus", "2", "--threads", threads];
        let said = folder.run_program(&options, &["./program", "2", "2", "500"]);
        assert_eq!(said.code, Some(0), "{said:?}");
        let passed = said.out.matches("PASS all_reduce_of_nodes").count();
        assert_eq!(passed, 2, "{said:?}");
        folder.digest()
    });
    assert_one(&digests);
}

#[test]
fn gpus_without_a_context_are_not_built() {
    let folder = Folder::new();
    if !build_cuda(&folder, EXCHANGE, &["-arch=sm_90"]) {
        return;
    }
    let command = ["./program", "2", "4", "last"];
    let said = folder.run_program(&["--nodes", "2", "--gpus", "4"], &command);
    assert!(said.out.contains("PASS: 2 nodes of 4 GPUs"), "{said:?}");
    let statistics = folder.result("stats.csv");
    for used in ["node 0/gpu 0/", "node 0/gpu 3/", "node 1/gpu 3/"] {
        assert!(
            statistics.contains(used),
            "{used}: the first always is there"
        );
    }
    for idle in ["node 0/gpu 1/", "node 1/gpu 0/", "node 1/gpu 2/"] {
        assert!(!statistics.contains(idle), "{idle}");
    }
}

#[test]
fn a_process_that_dies_is_named_with_its_node() {
    let folder = Folder::new();
    if !build_cuda(&folder, EXCHANGE, &["-arch=sm_90"]) {
        return;
    }
    let said = folder.run_program(&["--nodes", "2"], &["./program", "2", "1", "die"]);
    assert_ne!(said.code, Some(0), "{said:?}");
    assert!(
        said.err
            .contains("(./program, node 1) was ended by signal 9"),
        "{said:?}"
    );
}

#[test]
fn a_node_that_is_not_there_is_named() {
    let folder = Folder::new();
    if !build_cuda(&folder, EXCHANGE, &["-arch=sm_90"]) {
        return;
    }
    let said = folder.run_program(&["--nodes", "2"], &["./program", "3", "1"]);
    assert_ne!(said.code, Some(0), "{said:?}");
    let words = "LOCKSTEP_NODE=2 in the environment puts a process on node 2, and the run has 2";
    assert!(said.err.contains(words), "{said:?}");
}

#[test]
fn sixty_four_gpus_are_drawn_and_more_are_refused() {
    let folder = Folder::new();
    let drawn = folder.run(&["topology", "--nodes", "8", "--gpus", "8"]);
    assert!(drawn.out.starts_with("8 nodes of 8 GPUs"), "{drawn:?}");
    assert!(
        drawn.out.contains("node 7/gpu 7 -> node 7/switch"),
        "{drawn:?}"
    );
    let refused = |options: &[&str], words: &str| {
        let said = folder.run_program(options, &["true"]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.err.contains(words), "{said:?}");
    };
    refused(&["--gpus", "9"], "9 GPUs: a node has 1 to 8");
    refused(
        &["--gpus", "8", "--nodes", "9"],
        "9 nodes of 8 GPUs: a run has 1 to 64 GPUs",
    );
    refused(&["--nodes", "0"], "0 nodes of 1 GPUs");
}
