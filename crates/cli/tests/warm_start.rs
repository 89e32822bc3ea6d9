//! Runs of other settings that go on from one checkpoint between two kernels. Without nvcc or the interposition
//! libraries these tests say so and pass.

mod support;

use serde_json::Value;
use std::path::Path;
use support::{Folder, build_cuda};

const SOURCE: &str = include_str!("sources/sampled.cu");
/// Steps of the program, with two launches each.
const STEPS: &str = "20";
/// The launch before which it is saved.
const FIRST: &str = "31";

/// A folder with the program and its checkpoint; nothing where it cannot be built.
fn prepared() -> Option<(Folder, Value)> {
    let folder = Folder::new();
    if !build_cuda(&folder, SOURCE, &["-arch=sm_90"]) {
        return None;
    }
    let options = ["--mode", "functional", "--checkpoint-before", FIRST];
    let words = [
        &["run", "--out", "warm"],
        &options[..],
        &["--", "./program", STEPS],
    ]
    .concat();
    let summary = told(&folder, &words, "warm");
    Some((folder, summary))
}

/// Runs something that ends well; its summary.
fn told(folder: &Folder, words: &[&str], out: &str) -> Value {
    let said = folder.run(words);
    assert_eq!(said.code, Some(0), "{said:?}");
    summary(&folder.0.join(out))
}

fn summary(folder: &Path) -> Value {
    let text = std::fs::read_to_string(folder.join("summary.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

#[test]
fn other_settings_go_on_from_one_checkpoint_with_one_answer_each() {
    let Some((folder, functional)) = prepared() else {
        return;
    };
    let resume = |out: &str, options: &[&str]| {
        let words = [&["resume", "warm", "--out", out], options].concat();
        told(&folder, &words, out)
    };
    let one = resume("one", &["--threads", "1"]);
    let four = resume("four", &["--threads", "4"]);
    assert_eq!(one["digest"], four["digest"]);
    assert_eq!(one["memory_digest"], functional["memory_digest"]);
    assert_eq!(
        one["totals"]["inst_executed"],
        functional["totals"]["inst_executed"]
    );
    assert_eq!(one["totals"]["kernels"], 40);
    let rows = std::fs::read_to_string(folder.0.join("one/kernels.csv")).unwrap();
    let timed = rows.lines().filter(|row| row.contains(",timing,")).count();
    assert_eq!(timed, 9, "{rows}");
    assert!(
        one["remarks"].to_string().contains("caches began cold"),
        "{one}"
    );

    // What has run from the beginning with the same launches timed is near; its caches are others.
    let words = [
        "run",
        "--launches",
        "31-",
        "--out",
        "whole",
        "--",
        "./program",
        STEPS,
    ];
    let whole = told(&folder, &words, "whole");
    let cycles = |run: &Value| run["totals"]["cycles"].as_f64().unwrap();
    let error = (cycles(&one) / cycles(&whole) - 1.0).abs();
    assert!(error < 0.1, "{} and {}", cycles(&one), cycles(&whole));

    let slow = resume("slow", &["--set", "device.clock=990 MHz"]);
    assert_ne!(slow["digest"], one["digest"]);
    assert_eq!(slow["memory_digest"], one["memory_digest"]);
    let time = |run: &Value| run["totals"]["kernel_ns"].as_f64().unwrap();
    assert!(
        time(&slow) > 1.2 * time(&one),
        "{} and {}",
        time(&slow),
        time(&one)
    );

    let refused = folder.run(&["resume", "warm", "--out", "other", "--gpu", "a100"]);
    assert_ne!(refused.code, Some(0));
    assert!(
        refused.err.contains("the program has seen it"),
        "{refused:?}"
    );
}

#[test]
fn a_launch_that_never_comes_is_said() {
    let folder = Folder::new();
    if !build_cuda(&folder, SOURCE, &["-arch=sm_90"]) {
        return;
    }
    let options = ["--mode", "functional", "--checkpoint-before", "1000"];
    let words = [
        &["run", "--out", "warm"],
        &options[..],
        &["--", "./program", STEPS],
    ]
    .concat();
    let said = folder.run(&words);
    assert_ne!(said.code, Some(0));
    assert!(said.err.contains("never came to launch 1000"), "{said:?}");
}

#[test]
fn points_of_a_sweep_share_a_checkpoint() {
    let folder = Folder::new();
    if !build_cuda(&folder, SOURCE, &["-arch=sm_90"]) {
        return;
    }
    let file = |first: &str| {
        let clocks = "[grid]\n\"device.clock\" = [\"990 MHz\", \"1980 MHz\"]\n";
        let program = format!("program = \"./program\"\narguments = \"{STEPS}\"");
        let text = format!("{program}\nwarm-start = {first}\n{clocks}");
        std::fs::write(folder.0.join("sweep.toml"), text).unwrap();
    };
    let sweep = ["sweep", "sweep.toml", "--workers", "1", "--out", "swept"];
    file("\"late\"");
    let said = folder.run(&sweep);
    assert_ne!(said.code, Some(0));
    assert!(
        said.err.contains("write the number of a launch"),
        "{said:?}"
    );

    file(FIRST);
    let said = folder.run(&sweep);
    assert_eq!(said.code, Some(0), "{said:?}");
    let entries = |name: &str| -> Vec<_> {
        let entries = std::fs::read_dir(folder.0.join(name)).unwrap();
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    assert_eq!(entries("swept/checkpoints").len(), 1);
    let points: Vec<Value> = entries("swept/points")
        .iter()
        .map(|one| summary(one))
        .collect();
    assert_eq!(points.len(), 2);
    assert_ne!(points[0]["digest"], points[1]["digest"]);
    for point in &points {
        assert!(
            point["remarks"].to_string().contains("caches began cold"),
            "{point}"
        );
        assert_eq!(point["memory_digest"], points[0]["memory_digest"]);
    }
}
