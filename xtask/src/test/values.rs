//! Values: kernels that once had another result here than on an H200, against what an H200 prints.
//!
//! `validation/values/known.cu` has them all. It is compiled optimised, for a debugger and without optimisation, and
//! runs in both modes, as machine code and as PTX.

use super::conformance::first_difference;
use super::programs::{Check, Tally};
use crate::cuda::Toolkit;
use crate::{process, project, simulator};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(300);

/// How the program is compiled: a name and nvcc's options.
const COMPILED: [(&str, &[&str]); 3] = [
    ("optimised", &["-O3"]),
    ("debug", &["-G"]),
    ("unoptimised", &["-O3", "-Xptxas", "-O0"]),
];

/// How it runs: options of `lockstep run`.
const RUNS: [&[&str]; 3] = [
    &["--mode", "functional"],
    &["--mode", "timing"],
    &["--mode", "functional", "--frontend", "ptx"],
];

/// Compiles and runs it every way, prints a line for each, and counts.
pub fn check_all(toolkit: &Toolkit) -> Result<Tally> {
    let recorded = project::root().join("validation/values/known.txt");
    let recorded = std::fs::read_to_string(&recorded)
        .with_context(|| format!("cannot read {}", project::shown(&recorded)))?;
    println!("Values that an H200 gave");
    let mut tally = Tally {
        passed: 0,
        failed: 0,
    };
    let all = process::in_parallel(&COMPILED, |(name, options)| {
        check_compiled(toolkit, name, options, &recorded)
    });
    for ((name, _), checks) in COMPILED.iter().zip(all) {
        for check in checks {
            tally.add(name, &check);
        }
    }
    Ok(tally)
}

fn check_compiled(toolkit: &Toolkit, name: &str, options: &[&str], recorded: &str) -> Vec<Check> {
    let begin = process::now();
    let built = build(toolkit, name, options);
    RUNS.iter()
        .map(|options| {
            let run = built.as_ref().map_err(|error| format!("{error:#}"));
            let said = run.and_then(|executable| {
                let run = [&["--record", "none"], *options].concat();
                simulator::run(&run, executable, &[], LIMIT).map_err(|error| format!("{error:#}"))
            });
            Check {
                what: format!("values {}", options.join(" ")),
                seconds: begin.elapsed().as_secs_f64(),
                trouble: said.map_or_else(
                    |error| error,
                    |run| first_difference(recorded, &run.output.out, |_, _| false),
                ),
            }
        })
        .collect()
}

fn build(toolkit: &Toolkit, name: &str, options: &[&str]) -> Result<PathBuf> {
    let folder = project::local().join("values");
    std::fs::create_dir_all(&folder)?;
    let executable = folder.join(format!("known-{name}"));
    let mut nvcc = process::command(toolkit.nvcc());
    nvcc.args(["-std=c++17", "-arch=sm_90"])
        .args(options)
        .arg(project::root().join("validation/values/known.cu"))
        .arg("-o")
        .arg(&executable);
    let output = process::capture(&mut nvcc, LIMIT)?;
    if !output.success() {
        bail!("nvcc refuses known.cu:\n{}", output.tail(12));
    }
    Ok(executable)
}
