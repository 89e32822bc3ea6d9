//! `cargo xtask test`: everything that CI checks.
//!
//! Stages run in an order that lets the quick ones fail first; a failed stage does not stop the
//! next, so that one call shows all there is to mend. The CUDA compiler and packages of Python are
//! fetched meanwhile.

mod bits;
mod conformance;
#[cfg(test)]
mod documentation;
mod package;
mod programs;
mod python;
mod values;

use crate::cuda::{Missing, Toolkit};
use crate::{book, cuda, docs, map, packages, process, simulator, validate, viewer};
use anyhow::{Result, anyhow, bail};
use clap::{Args, ValueEnum};
use std::process::ExitCode;
use std::time::Duration;

/// Everything that CI checks.
#[derive(Args)]
pub struct Test {
    /// Only these stages
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Stage>,
    /// Without these stages
    #[arg(long, value_enum, value_delimiter = ',')]
    skip: Vec<Stage>,
    /// Run every workload, not only the core and the litmus programs
    #[arg(long)]
    all_workloads: bool,
}

/// Parts of the test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Stage {
    /// `cargo fmt --check`
    Format,
    /// ARCHITECTURE.md against the tree
    Map,
    /// `cargo clippy` with warnings denied
    Lints,
    /// A release build
    Build,
    /// Unit, integration and documentation tests
    Tests,
    /// Unit tests of the scripts of validation and studies
    Python,
    /// `cargo doc` with warnings denied
    Documentation,
    /// Generated pages are up to date, and what README says of the product is so
    #[value(alias = "pages")]
    Docs,
    /// The Python package, installed into an environment of its own
    Package,
    /// CUDA programs under `lockstep run`
    Workloads,
}

impl Test {
    /// Runs it; a failed stage is told at the end, after all others have had their turn.
    pub fn run(self) -> Result<ExitCode> {
        let wants = |stage: Stage| {
            (self.only.is_empty() || self.only.contains(&stage)) && !self.skip.contains(&stage)
        };
        packages::need(&[packages::CXX, packages::VENV])?;
        let stages: Vec<String> = Stage::value_variants()
            .iter()
            .filter(|stage| wants(**stage))
            .map(|stage| name_of(*stage))
            .collect();
        println!("Stages: {}.", stages.join(", "));
        if stages.len() == Stage::value_variants().len() {
            println!(
                "All of them take some 25 minutes on two quiet cores; `--only {}` takes a few.",
                QUICK.map(name_of).join(",")
            );
        }
        // Before the first stage that compiles the viewer, so that it is compiled once.
        if [Stage::Lints, Stage::Build, Stage::Tests]
            .into_iter()
            .any(wants)
        {
            viewer::prepare();
        }
        let fetching = wants(Stage::Workloads).then(|| std::thread::spawn(cuda::toolkit));
        let packages = wants(Stage::Package).then(|| std::thread::spawn(package::environment));

        let mut outcome = Outcome::default();
        for stage in Stage::value_variants()
            .iter()
            .copied()
            .filter(|stage| !WAITING.contains(stage) && wants(*stage))
        {
            outcome.stage(&name_of(stage), || run_stage(stage));
        }
        if let Some(packages) = packages {
            outcome.stage(&name_of(Stage::Package), || {
                package::check(
                    &packages
                        .join()
                        .map_err(|_| anyhow!("installing packages of Python ended in a panic"))??,
                )
            });
        }
        if let Some(fetching) = fetching {
            let mut tally = None;
            outcome.stage(&name_of(Stage::Workloads), || {
                let toolkit = fetching
                    .join()
                    .map_err(|_| anyhow!("fetching the CUDA compiler ended in a panic"))?;
                let toolkit = toolkit_or_error(toolkit)?;
                let mut counted = programs::check_all(&toolkit, self.all_workloads)?;
                programs::check_readme(&toolkit, &mut counted)?;
                for more in [
                    conformance::check_all(&toolkit)?,
                    values::check_all(&toolkit)?,
                ] {
                    counted.passed += more.passed;
                    counted.failed += more.failed;
                }
                let failed = counted.failed;
                tally = Some(counted);
                if failed > 0 {
                    bail!("{failed} failed");
                }
                Ok(())
            });
            outcome.tally = tally;
        }
        println!("\n{}", outcome.report());
        Ok(if outcome.failed() {
            ExitCode::FAILURE
        } else {
            ExitCode::SUCCESS
        })
    }
}

/// Stages that are quick and find most mistakes.
const QUICK: [Stage; 4] = [Stage::Format, Stage::Map, Stage::Lints, Stage::Python];
/// Stages that wait for what is fetched meanwhile.
const WAITING: [Stage; 2] = [Stage::Package, Stage::Workloads];

/// What the stages did.
#[derive(Default)]
struct Outcome {
    /// Name, time and success of each, in the order in which they ran.
    stages: Vec<(String, Duration, bool)>,
    /// Programs that passed and failed, if programs ran.
    tally: Option<programs::Tally>,
}

impl Outcome {
    /// Runs a stage; its error is told at once, and the next stage has its turn all the same.
    fn stage(&mut self, name: &str, work: impl FnOnce() -> Result<()>) {
        process::step(name);
        let begin = process::now();
        let result = work();
        if let Err(error) = &result {
            eprintln!("{name}: {error:#}");
        }
        self.stages
            .push((name.to_string(), begin.elapsed(), result.is_ok()));
    }

    fn failed(&self) -> bool {
        self.stages.iter().any(|(_, _, passed)| !passed)
    }

    /// A table of the stages with their times; the count of programs is the last line.
    fn report(&self) -> String {
        let mut lines = vec![format!("{:<16} {:>8}", "stage", "seconds")];
        for (name, time, passed) in &self.stages {
            let verdict = if *passed { "" } else { "  FAILED" };
            lines.push(format!("{name:<16} {:>8.0}{verdict}", time.as_secs_f64()));
        }
        let all: Duration = self.stages.iter().map(|(_, time, _)| *time).sum();
        lines.push(format!("{:<16} {:>8.0}", "all", all.as_secs_f64()));
        if let Some(tally) = &self.tally {
            lines.push(format!("{} passed, {} failed", tally.passed, tally.failed));
        }
        lines.join("\n")
    }
}

fn name_of(stage: Stage) -> String {
    stage
        .to_possible_value()
        .map_or_else(String::new, |value| value.get_name().to_string())
}

fn toolkit_or_error(toolkit: Result<Toolkit, Missing>) -> Result<Toolkit> {
    toolkit.map_err(|missing| match missing {
        Missing::Index(error) => anyhow!(
            "workloads need the CUDA compiler, and PyPI could not be reached ({error}); \
             connect, or leave them out with `--skip workloads`"
        ),
        Missing::Machine(error) => error,
    })
}

fn run_stage(stage: Stage) -> Result<()> {
    match stage {
        Stage::Format => process::run(&mut process::cargo(&["fmt", "--all", "--check"])),
        Stage::Map => map::check(),
        Stage::Lints => process::run(&mut process::cargo(&[
            "clippy",
            "--quiet",
            // As the build: its build scripts and macros are used again.
            "--release",
            "--workspace",
            "--all-targets",
            "--",
            "--deny",
            "warnings",
        ])),
        Stage::Build => simulator::build_with_tools(),
        Stage::Tests => run_tests(),
        Stage::Python => python::check(),
        Stage::Documentation => process::run(
            process::cargo(&[
                "doc",
                "--quiet",
                "--release",
                "--workspace",
                "--no-deps",
                "--document-private-items",
            ])
            .env("RUSTDOCFLAGS", "--deny warnings"),
        ),
        Stage::Docs => docs::check()
            .and_then(|()| validate::all::check())
            .and_then(|()| book::build()),
        Stage::Package | Stage::Workloads => Ok(()),
    }
}

/// In release: what the build stage made is used again, and simulating is fast. Of the examples, those that tests
/// start; and of this program, what `cargo xtask` made. The model of the epoch barrier is apart: its dependencies want
/// more of crates that the command uses as well, which would all be built twice.
fn run_tests() -> Result<()> {
    const APART: &str = "lockstep-engine-loom";
    let release = ["--quiet", "--release"];
    let most = ["--workspace", "--exclude", "xtask", "--exclude", APART];
    let examples =
        ["fake_gpu", "fake_ldms", "fake_program", "sample"].map(|name| ["--example", name]);
    // Named to `cargo test`, an example would become a test of its own.
    let started = [&["build"], &release[..], &most, examples.as_flattened()].concat();
    let all = [
        &["test"],
        &release[..],
        &["--no-fail-fast"],
        &most,
        &["--lib", "--tests"],
    ]
    .concat();
    let documentation = [&["test"], &release[..], &most, &["--doc"]].concat();
    if let Some(lacks) = viewer::browser_test_lacks() {
        println!("The viewer is not tested in a browser: {lacks}.");
    }
    for arguments in [
        &started[..],
        &all,
        &[&["test"], &release[..], &["--package", APART]].concat(),
        &documentation,
        &[&["test"], &release[..], &["--package", "xtask"]].concat(),
    ] {
        process::run(&mut process::cargo(arguments))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_stage_does_not_stop_the_next_and_is_named_in_the_table() {
        let mut outcome = Outcome::default();
        outcome.stage("first", || bail!("broken"));
        outcome.stage("second", || Ok(()));
        assert!(outcome.failed());
        let report = outcome.report();
        let lines: Vec<&str> = report.lines().collect();
        assert!(lines[1].starts_with("first") && lines[1].ends_with("FAILED"));
        assert!(lines[2].starts_with("second") && !lines[2].contains("FAILED"));
        assert!(lines[3].starts_with("all"));
    }
}
