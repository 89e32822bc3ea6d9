//! Memory that processes hand to each other as file descriptors, and that has several addresses. Without
//! nvcc or the interposition libraries these tests say so and pass.

mod support;

use support::{Folder, build_with_driver};

const SOURCE: &str = include_str!("sources/shared_memory.cu");

/// What each rank says, in the order of ranks.
fn by_rank(out: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = out.lines().collect();
    lines.sort_by_key(|line| line.split(':').next());
    lines
}

fn run(folder: &Folder, options: &[&str], arguments: &[&str]) -> (String, String) {
    let head = ["run", "--quiet", "--force", "--out", "out"];
    let all = [&head[..], options, &["--", "./program"], arguments].concat();
    let said = folder.run(&all);
    assert_eq!(said.code, Some(0), "{said:?}");
    let text = std::fs::read_to_string(folder.0.join("out/summary.json")).unwrap();
    let summary: serde_json::Value = serde_json::from_str(&text).unwrap();
    (said.out, summary["digest"].to_string())
}

#[test]
fn memory_has_several_addresses_in_several_processes() {
    let Some(folder) = build_with_driver(SOURCE) else {
        return;
    };
    for gpus in ["1", "2"] {
        let mut digests = Vec::new();
        for (mode, threads) in [("timing", "1"), ("timing", "4"), ("functional", "2")] {
            let options = ["--gpus", gpus, "--mode", mode, "--threads", threads];
            let (out, digest) = run(&folder, &options, &[]);
            let expected = [
                "rank 0: memory of GPU 0",
                "rank 0: by two addresses: 0 wrong",
                "rank 0: copied by the second: 0 wrong",
                "rank 0: written by the second: 0 wrong",
                "rank 0: added by the other process: 0 wrong",
                "rank 1: memory of GPU 0",
                "rank 1: from the other process: 0 wrong",
            ];
            assert_eq!(by_rank(&out), expected, "{options:?}");
            digests.push(digest);
        }
        assert_eq!(digests[0], digests[1], "one digest for 1 and 4 threads");
    }
}

#[test]
fn memory_stays_with_who_has_it_when_its_owner_goes() {
    let Some(folder) = build_with_driver(SOURCE) else {
        return;
    };
    for gpus in ["1", "2"] {
        let options = ["--gpus", gpus, "--mode", "functional"];
        let (out, _) = run(&folder, &options, &["quit"]);
        assert!(out.contains("rank 1: after its owner: 0 wrong"), "{out}");
    }
}
