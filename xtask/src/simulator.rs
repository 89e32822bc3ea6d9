//! Calling the `lockstep` command that was built here.

use crate::process::{self, Output};
use crate::{project, viewer};
use anyhow::{Context, Result};
use serde::Deserialize;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Builds the simulator and the libraries that it loads into programs, in release.
pub fn build() -> Result<()> {
    process::run(&mut build_command())
}

/// Builds `lockstep-tools` too, with the charts of the viewer.
pub fn build_with_tools() -> Result<()> {
    viewer::prepare();
    process::run(build_command().args(["--package", "lockstep-tools"]))
}

/// The command that builds the simulator, in this tree unless it is sent elsewhere.
pub fn build_command() -> Command {
    process::cargo(&[
        "build",
        "--release",
        "--package",
        "lockstep-cli",
        "--package",
        "lockstep-interpose",
    ])
}

/// The `lockstep` command of this tree.
pub fn executable() -> PathBuf {
    project::release().join("lockstep")
}

/// `lockstep` with these arguments.
pub fn lockstep(arguments: &[&str]) -> Command {
    let mut command = command(&executable());
    command.args(arguments);
    command
}

/// A simulator that keeps what it assembles with the project.
fn command(lockstep: &Path) -> Command {
    let mut command = process::command(lockstep);
    command.env("LOCKSTEP_CACHE", project::local().join("cache"));
    command
}

/// What tasks read of a run's `summary.json`.
#[derive(Debug, Deserialize)]
pub struct Summary {
    /// One number for everything that was simulated.
    pub digest: Option<String>,
    /// What memory held.
    pub memory_digest: Option<String>,
    /// Sums over the run.
    pub totals: Totals,
    /// Speed of the simulation.
    pub host: Host,
}

/// Sums over the run.
#[derive(Debug, Deserialize)]
pub struct Totals {
    /// Warp instructions.
    pub inst_executed: Option<u64>,
}

/// Speed of the simulation.
#[derive(Debug, Deserialize)]
pub struct Host {
    /// From the start to the first answer to a CUDA call, in seconds.
    pub first_answer_seconds: Option<f64>,
    /// Processor time of all threads while simulating, in seconds.
    pub processor_seconds: Option<f64>,
    /// Warp instructions per second while simulating.
    pub inst_per_second: Option<f64>,
    /// Simulated cycles per second while simulating.
    pub cycles_per_second: Option<f64>,
    /// Most memory that the simulator had, in bytes.
    pub peak_memory: u64,
}

/// A run that is over.
pub struct Run {
    /// What the program and the simulator said.
    pub output: Output,
    /// What the run folder says, where there is one.
    pub summary: Option<Summary>,
}

impl Run {
    /// Whether the program ended with 0 and said that it passed.
    pub fn verifies(&self, name: &str) -> bool {
        let passed = format!("PASS {name} ");
        self.output.success()
            && self
                .output
                .out
                .lines()
                .any(|line| line.starts_with(&passed))
    }
}

/// Runs a program under `lockstep run` and reads its run folder, which is then removed.
pub fn run(options: &[&str], program: &Path, arguments: &[String], limit: Duration) -> Result<Run> {
    run_by(&executable(), options, program, arguments, limit)
}

/// The same by another build of the simulator.
pub fn run_by(
    lockstep: &Path,
    options: &[&str],
    program: &Path,
    arguments: &[String],
    limit: Duration,
) -> Result<Run> {
    let folder = scratch_folder();
    let mut command = command(lockstep);
    command
        .args(["run", "--quiet"])
        .args(options)
        .arg("--out")
        .arg(&folder)
        .arg("--")
        .arg(program)
        .args(arguments);
    let output = process::capture(&mut command, limit)?;
    let summary = match std::fs::read_to_string(folder.join("summary.json")) {
        Ok(text) => Some(serde_json::from_str(&text).context("summary.json")?),
        Err(_) => None,
    };
    // Left behind, it would only cost space.
    let _ = std::fs::remove_dir_all(&folder);
    Ok(Run { output, summary })
}

/// A folder that no other run of this process uses.
pub fn scratch_folder() -> PathBuf {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    project::local()
        .join("runs")
        .join(format!("{}-{number}", std::process::id()))
}
