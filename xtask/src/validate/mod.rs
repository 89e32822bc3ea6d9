//! `cargo xtask validate`: error of the simulator against measured hardware.
//!
//! Builds the simulator and the programs (the machine code that hardware was measured with), then
//! runs `lockstep correlate`. With `--record` the figures join `validation/history.csv`.

pub mod all;

use crate::{
    clients, cuda, frontends, microbench, process, project, random_programs, simulator, workloads,
};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::path::PathBuf;

/// Error of the simulator against measured hardware.
#[derive(Args)]
pub struct Validate {
    /// GPU whose measurements are compared
    #[arg(long, default_value = "h200")]
    gpu: String,
    /// The development set at the default size, in minutes
    #[arg(long)]
    quick: bool,
    /// Add the figures to validation/history.csv under the newest commit
    #[arg(long)]
    record: bool,
    /// Every figure of the pages from this commit: cycles in both states, ranking, scenarios, in an hour or two of one
    /// processor
    #[arg(long, conflicts_with_all = ["quick", "record"])]
    all: bool,
    /// Build the programs and stop
    #[arg(long)]
    build: bool,
    /// The microbenchmarks beside the hardware's figures, into validation/microbench-GPU.csv;
    /// options after `--` are parts of it by name
    #[arg(long, conflicts_with_all = ["quick", "record"])]
    microbench: bool,
    /// Every program on four GPUs as machine code, its control bits checked, and as PTX, into
    /// validation/frontends.csv; options after `--` are programs by name
    #[arg(long, conflicts_with_all = ["quick", "record", "microbench"])]
    frontends: bool,
    /// All inputs of the special function unit against checksums of an H200, in minutes
    #[arg(long, conflicts_with_all = ["quick", "record", "microbench", "frontends"])]
    special_functions: bool,
    /// Random programs against the results that an H200 gave, in functional mode; options after `--` are those of
    /// fuzz/programs/check.py
    #[arg(long, conflicts_with_all = ["quick", "record", "microbench", "frontends", "special_functions"])]
    programs: bool,
    /// Packages of Python that call CUDA, all or those that are named, in functional mode; installs some
    /// gigabytes into .lockstep/clients. Options after `--` are checks by name
    #[arg(long, value_name = "NAME", num_args = 0..,
        conflicts_with_all = ["quick", "record", "microbench", "frontends", "special_functions"])]
    clients: Option<Vec<String>>,
    /// More options for `lockstep correlate`
    #[arg(last = true)]
    options: Vec<String>,
}

/// The architecture whose machine code was measured.
const ARCHITECTURE: &str = "sm_90";

impl Validate {
    /// Runs it.
    pub fn run(self) -> Result<()> {
        if self.microbench {
            return microbench::run(&self.gpu, &self.options);
        }
        if self.frontends {
            return frontends::sweep(&self.options);
        }
        if self.special_functions {
            return special_functions();
        }
        if self.programs {
            return random_programs(&self.options);
        }
        if let Some(names) = &self.clients {
            return clients::run(&self.gpu, names, &self.options);
        }
        simulator::build_with_tools()?;
        build_programs()?;
        if self.build {
            return Ok(());
        }
        if self.all {
            return all::run(&self.gpu, &commit()?);
        }
        let mut arguments = vec!["correlate".to_owned(), "--gpu".into(), self.gpu.clone()];
        if self.quick {
            arguments.push("--quick".into());
        }
        if self.record {
            arguments.extend(["--commit".into(), commit()?]);
            arguments.extend(["--history".into(), "validation/history.csv".into()]);
        }
        arguments.extend(self.options);
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        process::run(&mut simulator::lockstep(&words))
    }
}

/// The commit that is built and its day, as `lockstep correlate` takes them.
fn commit() -> Result<String> {
    if !process::git(&["status", "--porcelain", "--", "crates", "configs"])?.is_empty() {
        bail!(
            "crates/ or configs/ hold changes that no commit names; commit them before figures are recorded"
        );
    }
    process::git(&["log", "-1", "--format=%h:%cs"])
}

/// Holds random programs to what an H200 gave.
fn random_programs(options: &[String]) -> Result<()> {
    simulator::build_with_tools()?;
    let recorded = random_programs::recorded();
    let mut arguments = vec![
        "--golden",
        recorded.to_str().context("a path that is no text")?,
    ];
    arguments.extend(options.iter().map(String::as_str));
    random_programs::check(&cuda::required()?, &arguments)
}

/// Checks every input of every function that was recorded.
fn special_functions() -> Result<()> {
    process::run(&mut process::cargo(&[
        "test",
        "--release",
        "--package=lockstep-isa",
        "--test=special_functions",
        "--",
        "--ignored",
    ]))
}

/// Where the executables with machine code that was measured are.
pub fn programs() -> PathBuf {
    programs_for(ARCHITECTURE)
}

/// Where the executables with machine code for an architecture are.
pub fn programs_for(architecture: &str) -> PathBuf {
    project::local().join("bin").join(architecture)
}

/// Compiles what was measured.
pub fn build_programs() -> Result<()> {
    build_programs_for(ARCHITECTURE)
}

/// Compiles what is missing or older than its source, for an architecture or the one that a program needs.
pub fn build_programs_for(architecture: &str) -> Result<()> {
    let folder = programs_for(architecture);
    let mut stale = Vec::new();
    for program in workloads::all()? {
        // One GPU was measured.
        if program.gpus.is_some() {
            continue;
        }
        if !program.is_built(&folder.join(&program.name))? {
            stale.push(program.name);
        }
    }
    if stale.is_empty() {
        return Ok(());
    }
    let toolkit = cuda::required()?;
    println!("Compiling {} programs for {architecture}", stale.len());
    process::run(
        process::command("python3")
            .arg("workloads/run_all.py")
            .args(["--build-only", "--arch", architecture, "--bin"])
            .arg(&folder)
            .args(["--only", &format!("^({})$", stale.join("|"))])
            .env("NVCC", toolkit.nvcc())
            // The driver's library exists only where a driver does, except for ours.
            .env("DRIVER_FOLDER", project::release().join("lockstep-shims")),
    )
}

/// The model card of a GPU, from the history and the heads of its measurements.
pub fn model_card(gpu: &str) -> Result<String> {
    use lockstep_correlation::{Hardware, Sets, card, history};
    let validation = project::root().join("validation");
    let hardware = Hardware::load(&validation.join("hardware").join(gpu))?;
    let sets = Sets::load(&validation.join("sets.toml"))?;
    let rows = history::load(&validation.join("history.csv")).context("validation/history.csv")?;
    Ok(card::markdown(gpu, &hardware, &sets, &rows))
}
