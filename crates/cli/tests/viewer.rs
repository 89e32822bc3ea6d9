//! The viewer in a browser, with real clicks, over two runs side by side and alone.

#[path = "viewer/long_run.rs"]
mod long_run;
mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Instant;
use support::{Folder, SCALE};

/// A name that would do harm as markup.
const HARMFUL: &str =
    "<img src=x onerror=document.title='harmed'><script>document.title='harmed'</script>";

/// A viewer that ends with its owner.
struct Viewer(Child, String);

impl Viewer {
    fn start(folder: &Folder, runs: &[&str]) -> Self {
        let mut command = folder.lockstep();
        command.arg("view").args(runs).stdout(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut line).unwrap();
        Self(child, line.trim().to_string())
    }

    /// What the script says of the page.
    fn check(&self, options: &[&str]) -> String {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/viewer/check.py");
        let output = Command::new("python3")
            .arg("-B")
            .arg(script)
            .arg(&self.1)
            .args(options)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{said}\n{error}");
        eprintln!("{said}");
        said
    }
}

impl Drop for Viewer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A run of a kernel with series and counts by instruction.
fn run(folder: &Folder, out: &str, blocks: &str) {
    std::fs::write(folder.0.join("scale.ptx"), SCALE).unwrap();
    let words = "kernel scale.ptx --block 128 --arg f32[38400]=iota --arg f32:1.5 --arg u32:38400 --repeat 6 \
                 --series 200 --lines --grid";
    let mut words: Vec<&str> = words.split_whitespace().collect();
    words.extend([blocks, "--out", out]);
    let said = folder.run(&words);
    assert_eq!(said.code, Some(0), "{said:?}");
}

#[test]
fn three_clicks_say_which_kernel_why_and_when() {
    let folder = Folder::new();
    run(&folder, "one", "300");
    // A second kernel, whose name carries markup.
    let path = folder.0.join("one/kernels.csv");
    let text = std::fs::read_to_string(&path).unwrap();
    let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
    for line in &mut lines[5..] {
        *line = line.replacen("scale", HARMFUL, 1);
    }
    std::fs::write(&path, lines.join("\n") + "\n").unwrap();
    let said = Viewer::start(&folder, &["one"]).check(&[]);
    assert!(
        said.contains("all is well") || said.contains("skipped"),
        "{said}"
    );
}

#[test]
fn two_runs_stand_side_by_side() {
    let folder = Folder::new();
    run(&folder, "one", "100");
    run(&folder, "two", "300");
    let said = Viewer::start(&folder, &["one", "two"]).check(&[]);
    assert!(
        said.contains("all is well") || said.contains("skipped"),
        "{said}"
    );
}

/// Viewers that are started one after the other, since each reads the series anew.
const OPENINGS: usize = 5;

/// 1,400 launches with ten million samples. Figures of the host, so a quiet machine is needed.
#[test]
#[ignore = "takes minutes, and a quiet machine: cargo xtask viewer --measure"]
fn a_long_run_opens_within_two_seconds_and_pans_smoothly() {
    let folder = Folder::new();
    run(&folder, "one", "300");
    let rows = long_run::write(&folder.0.join("one"), &folder.0.join("long"));
    assert!(rows >= 10_000_000, "{rows}");
    let words = [
        "report",
        "long",
        "--format",
        "html",
        "--output",
        "long.html",
    ];
    let said = folder.run(&words);
    assert_eq!(said.code, Some(0), "{said:?}");
    let page = std::fs::metadata(folder.0.join("long.html")).unwrap().len();
    eprintln!("{rows} samples; the report has {page} bytes");
    assert!(page < 5_000_000, "{page}");
    let (mut opened, mut frames) = (Vec::new(), Vec::new());
    for _ in 0..OPENINGS {
        let begun = now();
        let viewer = Viewer::start(&folder, &["long"]);
        let started = begun.elapsed().as_millis() as u64;
        let said = viewer.check(&["--speed"]);
        if said.contains("skipped") {
            return;
        }
        eprintln!("the command was ready after {started} ms");
        opened.push(started + number_before(&said, " ms;"));
        frames.push(number_before(&said, " frames"));
    }
    let (opened, frames) = (median(&mut opened), median(&mut frames));
    eprintln!(
        "medians of {OPENINGS}: {opened} ms from the command to the page, {frames} frames a second"
    );
    assert!(opened < 2_000, "it took {opened} ms to open");
    assert!(frames >= 30, "{frames} frames a second");
}

#[allow(
    clippy::disallowed_methods,
    reason = "what is measured is time of the host"
)]
fn now() -> Instant {
    Instant::now()
}

/// The last number before some words.
fn number_before(text: &str, words: &str) -> u64 {
    let (before, _) = text.split_once(words).unwrap();
    before.split_whitespace().last().unwrap().parse().unwrap()
}

fn median(values: &mut [u64]) -> u64 {
    values.sort_unstable();
    values[values.len() / 2]
}

#[test]
fn a_folder_that_no_run_left_is_refused() {
    let folder = Folder::new();
    let said = folder.run(&["view", "nowhere"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.err.contains("nowhere"), "{said:?}");
}
