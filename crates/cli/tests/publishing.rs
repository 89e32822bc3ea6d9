//! A run that publishes: what readers of shared memory see of it, and that being seen changes no answer.

#[path = "../../exporter/tests/support/page.rs"]
mod page;
#[path = "../../exporter/tests/support/prometheus.rs"]
mod prometheus;
mod support;

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;
use support::{Folder, Said, build_cuda, scale_run};

/// A kernel that one warp needs long for.
const LONG: &str = "\
.version 8.0
.target sm_70
.address_size 64
.visible .entry long_loop(.param .u64 out, .param .u32 count)
{
    .reg .b32 %r<3>;
    .reg .b64 %d<2>;
    .reg .pred %p;
    ld.param.u64 %d0, [out];
    ld.param.u32 %r0, [count];
    mov.u32 %r1, 0;
AGAIN:
    add.u32 %r1, %r1, 3;
    sub.u32 %r0, %r0, 1;
    setp.ne.u32 %p, %r0, 0;
    @%p bra AGAIN;
    cvta.to.global.u64 %d1, %d0;
    st.global.u32 [%d1], %r1;
    ret;
}
";

/// Runs `lockstep` with shared memory in the folder.
fn run(folder: &Folder, words: &[&str]) -> Said {
    let mut command = folder.lockstep();
    command.env("LOCKSTEP_SAMPLE_BASE", folder.0.join("base"));
    Said::from(command.args(words).output().unwrap())
}

fn scale(folder: &Folder, out: &str, more: &[&str]) {
    let said = run(folder, &scale_run(folder, out, more));
    assert_eq!(said.code, Some(0), "{said:?}");
}

fn summary(folder: &Folder, out: &str) -> Value {
    let text = std::fs::read_to_string(folder.0.join(out).join("summary.json")).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// What a reader of shared memory stores of what was published.
fn attach(folder: &Folder) -> Value {
    let out = folder.0.join("attached");
    let _ = std::fs::remove_dir_all(&out);
    let words = ["sample", "--attach", "base/programs", "--out", "attached"];
    let said = run(folder, &words);
    assert_eq!(said.code, Some(0), "{said:?}");
    summary(folder, "attached")
}

/// Sums of counters over the launches of `kernels.csv`, by GPU.
fn counted(folder: &Folder, out: &str, counter: &str) -> Vec<u64> {
    let text = std::fs::read_to_string(folder.0.join(out).join("kernels.csv")).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let head = lines.next().unwrap();
    let place = |name: &str| head.iter().position(|column| *column == name).unwrap();
    let (gpu, counter) = (place("gpu"), place(counter));
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for cells in lines {
        *sums.entry(cells[gpu]).or_default() += cells[counter].parse::<u64>().unwrap();
    }
    sums.into_values().collect()
}

/// Sums of a counter over what was published, by GPU.
fn published(summary: &Value, counter: &str) -> Vec<u64> {
    let mut sums: BTreeMap<&str, u64> = BTreeMap::new();
    for total in summary["totals"].as_array().unwrap() {
        let count = total["counters"][counter].as_u64().unwrap();
        *sums.entry(total["gpu"].as_str().unwrap()).or_default() += count;
        assert_eq!(total["exact"], true);
    }
    sums.into_values().collect()
}

#[test]
fn published_counts_are_those_of_the_run_and_change_no_digest() {
    let folder = Folder::new();
    for mode in ["timing", "functional"] {
        let (plain, told) = (format!("{mode}-plain"), format!("{mode}-told"));
        scale(&folder, &plain, &["--mode", mode]);
        scale(&folder, &told, &["--mode", mode, "--publish"]);
        let digest = |out: &str| summary(&folder, out)["digest"].clone();
        assert_eq!(digest(&plain), digest(&told), "{mode}");
        let read = attach(&folder);
        assert_eq!(read["source"], "simulated");
        assert_eq!(read["totals"][0]["launches"], 3, "{read}");
        assert_eq!(read["lost"], 0);
        let counters: &[&str] = match mode {
            "timing" => &["inst_executed", "active_cycles", "warps_launched"],
            _ => &["inst_executed", "warps_launched"],
        };
        for counter in counters {
            let expected = counted(&folder, &told, counter);
            assert!(expected[0] > 0);
            assert_eq!(published(&read, counter), expected, "{mode}: {counter}");
        }
        let text = std::fs::read_to_string(folder.0.join("attached/kernels.csv")).unwrap();
        assert!(
            text.lines()
                .skip(1)
                .all(|line| line.contains(",simulated,"))
        );
    }
    let left = std::fs::read_dir(folder.0.join("base/programs")).unwrap();
    assert_eq!(left.count(), 0, "no segment stays");
}

#[test]
fn a_metadata_file_says_what_is_published() {
    let folder = Folder::new();
    let file = folder.0.join("counters.toml");
    std::fs::write(
        &file,
        "interval = \"1 ms\"\ncounters = [\"warps_launched\"]\n",
    )
    .unwrap();
    scale(&folder, "out", &["--publish", "counters.toml"]);
    let read = attach(&folder);
    let counters = read["totals"][0]["counters"].as_object().unwrap();
    assert_eq!(counters.len(), 1, "{counters:?}");
    assert_eq!(counters["warps_launched"], 3 * 300 * 4);
    std::fs::write(&file, "interval = \"1 ms\"\ncounters = [\"warps\"]\n").unwrap();
    let words = ["kernel", "scale.ptx", "--publish", "counters.toml"];
    let said = run(&folder, &words);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("--publish"), "{said:?}");
    assert!(said.err.contains("warps_launched"), "{said:?}");
}

/// A child that is ended with the test.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn prometheus_sees_a_kernel_before_it_ends() {
    let folder = Folder::new();
    std::fs::write(folder.0.join("long.ptx"), LONG).unwrap();
    let start = |words: &[&str]| {
        let mut command = folder.lockstep();
        command
            .env("LOCKSTEP_SAMPLE_BASE", folder.0.join("base"))
            .env("SLURM_JOB_ID", "77")
            .args(words)
            .stdout(Stdio::piped());
        Ended(command.spawn().unwrap())
    };
    let words = "sampled --serve-only --prometheus 127.0.0.1:0 --top-kernels 1";
    let mut exporter = start(&words.split_whitespace().collect::<Vec<_>>());
    let mut line = String::new();
    let mut said = BufReader::new(exporter.0.stdout.take().unwrap());
    said.read_line(&mut line).unwrap();
    let url = line.trim().strip_prefix("figures are at ").unwrap();
    // It would take an hour, and is ended as soon as it was seen.
    let words = "kernel long.ptx --grid 1 --block 32 --arg u32[32] --arg u32:4000000000 --publish --out out";
    let mut simulation = start(&words.split_whitespace().collect::<Vec<_>>());
    let begun = instant();
    let page = loop {
        let (_, page) = page::get(url, "");
        if page::sum(&page, "lockstep_gpu_inst_executed_total") > 1000.0 {
            break page;
        }
        assert!(simulation.0.try_wait().unwrap().is_none(), "{page}");
        assert!(begun.elapsed() < Duration::from_secs(120), "{page}");
        std::thread::sleep(Duration::from_millis(50));
    };
    if let Some(prometheus) = prometheus::Prometheus::start(&folder.0, url) {
        let query = "lockstep_gpu_inst_executed_total%3E1000";
        let answer = prometheus.wait_for(query, |answer| answer.contains("long_loop"));
        assert!(answer.contains("simulated"), "{answer}");
        // It goes on while it is scraped.
        let query = "deriv(lockstep_gpu_inst_executed_total%5B30s%5D)%3E0";
        prometheus.wait_for(query, |answer| answer.contains("long_loop"));
    }
    let label = "source=\"simulated\",hpc_job=\"77\",kernel=\"long_loop\"";
    assert!(page.contains(label), "{page}");
    assert_eq!(page::sum(&page, "lockstep_gpu_launches_total"), 0.0);
    assert_eq!(page::sum(&page, "lockstep_processes"), 1.0);
    drop(simulation);
    let gone = || page::sum(&page::get(url, "").1, "lockstep_processes") == 0.0;
    while !gone() {
        assert!(begun.elapsed() < Duration::from_secs(120));
        std::thread::sleep(Duration::from_millis(50));
    }
    let left = std::fs::read_dir(folder.0.join("base/programs")).unwrap();
    assert_eq!(left.count(), 0, "what a killed simulator left is removed");
}

#[test]
fn every_gpu_of_a_run_is_named() {
    let folder = Folder::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let source = root.join("workloads/gpu_halves/gpu_halves.cu");
    let source = source.canonicalize().unwrap();
    let source = format!("#include \"{}\"\n", source.display());
    if !build_cuda(&folder, &source, &[]) {
        return;
    }
    let words = "run --gpus 2 --publish --out out --quiet -- ./program 20000";
    let said = run(&folder, &words.split_whitespace().collect::<Vec<_>>());
    assert_eq!(said.code, Some(0), "{said:?}");
    let read = attach(&folder);
    for counter in ["inst_executed", "active_cycles"] {
        let expected = counted(&folder, "out", counter);
        assert_eq!(expected.len(), 2);
        assert_eq!(published(&read, counter), expected, "{counter}");
    }
    let process = read["processes"].as_object().unwrap();
    assert!(process.values().any(|text| text == "./program 20000"));
}

#[allow(clippy::disallowed_methods, reason = "the time that a test may take")]
fn instant() -> Instant {
    Instant::now()
}
