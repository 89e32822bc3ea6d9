//! Regions: which launches take their time is said by ranges of the program, by its profiler, by names and numbers.
//! Without nvcc, the interposition libraries or NVTX these tests say so and pass.

mod support;

use serde_json::Value;
use std::path::Path;
use support::{Folder, Said, build_cuda, compiler};

const SOURCE: &str = include_str!("sources/regions.cu");

/// A folder with the program in it; nothing where it cannot be built.
fn prepared() -> Option<Folder> {
    let folder = Folder::new();
    let headers = compiler().map(|nvcc| nvcc.with_file_name("../include/nvtx3/nvToolsExt.h"));
    if headers.is_some_and(|header| !header.exists()) {
        eprintln!("skipped: NVTX is not installed beside nvcc; `cargo xtask demo` fetches it");
        return None;
    }
    build_cuda(&folder, SOURCE, &["-arch=sm_90"]).then_some(folder)
}

/// Runs the program within regions.
fn run(folder: &Folder, out: &str, options: &[&str], arguments: &[&str]) -> (Value, Said) {
    let words = [
        &["run", "--out", out],
        options,
        &["--", "./program"],
        arguments,
    ]
    .concat();
    let said = folder.run(&words);
    assert_eq!(said.code, Some(0), "{said:?}");
    let summary = std::fs::read_to_string(folder.0.join(out).join("summary.json")).unwrap();
    (serde_json::from_str(&summary).unwrap(), said)
}

/// The numbers of launches that took their time, and the region of each launch. The first cells hold no comma.
fn rows(folder: &Path) -> (Vec<usize>, Vec<String>) {
    let text = std::fs::read_to_string(folder.join("kernels.csv")).unwrap();
    let mut rows = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = rows.next().unwrap();
    let find = |name: &str| head.iter().position(|known| *known == name).unwrap();
    let (mode, region) = (find("mode"), find("region"));
    let rows: Vec<_> = rows.collect();
    let timed = rows.iter().filter(|row| row[mode] == "timing");
    let numbers = timed.map(|row| row[0].parse().unwrap()).collect();
    let regions = rows.iter().map(|row| row[region].to_owned()).collect();
    (numbers, regions)
}

#[test]
fn ranges_the_profiler_names_and_numbers_choose_launches() {
    let Some(folder) = prepared() else {
        return;
    };
    let check = |out: &str, regions: &[&str], expected: &[usize]| {
        let options: Vec<&str> = regions.iter().flat_map(|one| ["--region", *one]).collect();
        let (summary, said) = run(&folder, out, &options, &[]);
        let (timed, named) = rows(&folder.0.join(out));
        assert_eq!(timed, expected, "{regions:?}: {said:?}");
        assert_eq!(named.len(), 9);
        for (number, name) in named.iter().enumerate() {
            assert_eq!(name == "outside", !expected.contains(&number), "{named:?}");
        }
        assert_eq!(summary["warnings"], Value::Array(Vec::new()));
        summary
    };
    check("early", &["nvtx:early"], &[0, 1, 2]);
    check("wide", &["nvtx:inn.."], &[2]);
    check("domain", &["nvtx:solve@library"], &[4]);
    check("process", &["nvtx:process"], &[5]);
    check("profiler", &["profiler"], &[7]);
    check(
        "all",
        &["nvtx:solve", "profiler", "launch:8-"],
        &[1, 2, 4, 7, 8],
    );
    let one = ["--region", "nvtx:solve", "--launches", "2-", "--threads"];
    let (first, _) = run(&folder, "one", &[&one[..], &["1"]].concat(), &[]);
    let (second, _) = run(&folder, "four", &[&one[..], &["4"]].concat(), &[]);
    assert_eq!(rows(&folder.0.join("one")).0, [2, 4]);
    assert_eq!(first["digest"], second["digest"]);
    assert_ne!(first["digest"], Value::Null);
}

#[test]
fn what_is_not_balanced_or_not_there_is_said() {
    let Some(folder) = prepared() else {
        return;
    };
    let options = ["--region", "nvtx:open", "--region", "nvtx:solver"];
    let (summary, _) = run(&folder, "open", &options, &["unbalanced"]);
    assert_eq!(rows(&folder.0.join("open")).0, [9]);
    let warnings: Vec<&str> = summary["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(Value::as_str)
        .collect();
    let warned = |words: &str| {
        let said = warnings.iter().any(|warning| warning.contains(words));
        assert!(said, "{words}: {warnings:?}");
    };
    warned("no launch was within --region nvtx:solver; ranges of the program: early, inner, open");
    warned("popped an NVTX range where its thread had pushed none");
    warned("ended an NVTX range that is not open (number 12345)");
    warned("stopped its profiler, which it had not started");
    warned("never closed the NVTX range `open`");
}

#[test]
fn a_region_chooses_what_is_traced() {
    let Some(folder) = prepared() else {
        return;
    };
    let words = [
        "trace",
        "--output",
        "traces",
        "--region",
        "nvtx:early",
        "--",
        "./program",
    ];
    let said = folder.run(&words);
    assert_eq!(said.code, Some(0), "{said:?}");
    assert!(said.out.starts_with("3 kernels and "), "{said:?}");
}

#[test]
fn what_is_no_region_is_refused() {
    let folder = Folder::new();
    let refused = |options: &[&str], expected: &str| {
        let said = folder.run(&[&["run"], options, &["--", "./program"]].concat());
        assert_ne!(said.code, Some(0));
        assert!(said.err.contains(expected), "{said:?}");
    };
    refused(&["--region", "solve"], "write nvtx:NAME");
    refused(&["--region", "kernel:("], "kernel:(");
    refused(&["--region", "launch:9-5"], "no range");
    refused(
        &["--region", "profiler", "--mode", "functional"],
        "leave --mode functional out",
    );
    refused(
        &["--region", "profiler", "--detail", "sampled"],
        "--region out",
    );
}
