//! Sampled runs: all launches run, some take their time, and the cycles of the others are projected.

mod support;

use serde_json::Value;
use support::{Folder, build_cuda};

const SOURCE: &str = include_str!("sources/sampled.cu");
/// Steps of the program, with two launches each.
const STEPS: &str = "80";

/// A folder with the program in it; nothing where it cannot be built.
fn prepared() -> Option<Folder> {
    let folder = Folder::new();
    build_cuda(&folder, SOURCE, &["-arch=sm_90"]).then_some(folder)
}

/// Runs the program; its summary.
fn run(folder: &Folder, out: &str, options: &[&str]) -> Value {
    let words = [&["run", "--out", out], options, &["--", "./program", STEPS]].concat();
    let said = folder.run(&words);
    assert_eq!(said.code, Some(0), "{said:?}");
    let summary = std::fs::read_to_string(folder.0.join(out).join("summary.json")).unwrap();
    serde_json::from_str(&summary).unwrap()
}

/// Whether the cycles of a run are in the interval of a sampled one, and no further away than two parts in a hundred.
fn check(full: &Value, sampled: &Value) {
    let cycles = |value: &Value| value.as_f64().unwrap();
    let (told, all) = (&sampled["sampling"], cycles(&full["totals"]["cycles"]));
    let difference = (cycles(&told["cycles"]) - all).abs();
    assert!(
        difference <= cycles(&told["cycles_half_width"]),
        "{told} and {all}"
    );
    assert!(difference <= 0.02 * all, "{told} and {all}");
    assert_eq!(sampled["totals"]["cycles"], told["cycles"]);
    assert_eq!(sampled["memory_digest"], full["memory_digest"]);
    let both = ["inst_executed", "thread_inst_executed"];
    assert!(
        both.iter()
            .all(|name| sampled["totals"][name] == full["totals"][name])
    );
    assert_eq!(sampled["totals"].get("dram_bytes_read"), None);
}

#[test]
fn totals_are_near_those_of_a_full_run_and_threads_cannot_be_told() {
    let Some(folder) = prepared() else {
        return;
    };
    let full = run(&folder, "full", &["--detail", "full", "--threads", "1"]);
    let one = run(&folder, "one", &["--detail", "sampled", "--threads", "1"]);
    let two = run(&folder, "two", &["--detail", "sampled", "--threads", "2"]);
    check(&full, &one);
    assert_eq!(one["digest"], two["digest"]);
    assert_eq!(one["mode"], "sampled");
    let rows = std::fs::read_to_string(folder.0.join("one/kernels.csv")).unwrap();
    let rows: Vec<&str> = rows.lines().skip(1).collect();
    let projected = rows
        .iter()
        .filter(|row| row.contains(",projected,"))
        .count();
    assert_eq!(rows.len(), 160);
    assert_eq!(one["sampling"]["projected_launches"], projected);
    assert!((100..160).contains(&projected), "{projected}");
    let sum = |name: &str| one["sampling"][name].as_u64().unwrap();
    assert_eq!(sum("detailed_launches") + sum("projected_launches"), 160);
    let report = folder.run(&["report", "one"]);
    assert!(report.out.contains("are projected from"), "{report:?}");

    let functional = run(&folder, "plan", &["--detail", "functional"]);
    assert_eq!(functional["mode"], "functional");
    let planned = run(
        &folder,
        "planned",
        &["--detail", "sampled", "--plan", "plan"],
    );
    check(&full, &planned);
    let fewer = |run: &Value| run["sampling"]["fewer_inst"].as_f64().unwrap();
    assert!(fewer(&planned) > fewer(&one), "{planned}");
}

#[test]
fn what_is_no_plan_is_refused() {
    let folder = Folder::new();
    let refused = |options: &[&str], expected: &str| {
        let said = folder.run(&[&["run"], options, &["--", "./program", STEPS]].concat());
        assert_ne!(said.code, Some(0));
        assert!(said.err.contains(expected), "{said:?}");
    };
    refused(&["--detail", "sampled", "--plan", "nowhere"], "nowhere");
    refused(&["--plan", "nowhere"], "add --detail sampled");
    refused(
        &["--detail", "sampled", "--kernels", "a"],
        "leave --kernels, --launches and --region out",
    );
    refused(&["--detail", "sampled", "--gpus", "2"], "follows one GPU");
    refused(
        &["--detail", "sampled", "--series", "1 us"],
        "--detail sampled out",
    );
}
