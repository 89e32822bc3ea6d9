//! `cargo xtask test`: everything that CI checks.
//!
//! Stages run in an order that lets the quick ones fail first; a failed stage does not stop the
//! next, so that one call shows all there is to mend. The CUDA compiler is fetched meanwhile.

mod conformance;
mod programs;

use crate::cuda::{Missing, Toolkit};
use crate::{cuda, docs, map, packages, process, simulator};
use anyhow::{Result, anyhow};
use clap::{Args, ValueEnum};
use std::process::ExitCode;

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
    /// `cargo doc` with warnings denied
    Documentation,
    /// Every interleaving of the engine's exchange
    Loom,
    /// Generated pages are up to date
    Pages,
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
        let fetching = wants(Stage::Workloads).then(|| std::thread::spawn(cuda::toolkit));

        let start = process::now();
        let mut failed: Vec<String> = Vec::new();
        let mut times: Vec<String> = Vec::new();
        for stage in Stage::value_variants()
            .iter()
            .copied()
            .filter(|stage| *stage != Stage::Workloads && wants(*stage))
        {
            let name = name_of(stage);
            process::step(&name);
            let begin = process::now();
            if let Err(error) = run_stage(stage) {
                eprintln!("{name}: {error:#}");
                failed.push(name.clone());
            }
            times.push(format!("{name} {:.0} s", begin.elapsed().as_secs_f64()));
        }

        let mut tally = None;
        if let Some(fetching) = fetching {
            process::step("workloads");
            let begin = process::now();
            let toolkit = fetching
                .join()
                .map_err(|_| anyhow!("fetching the CUDA compiler ended in a panic"))?;
            match toolkit_or_error(toolkit).and_then(|toolkit| {
                let mut counted = programs::check_all(&toolkit, self.all_workloads)?;
                let chapters = conformance::check_all(&toolkit)?;
                counted.passed += chapters.passed;
                counted.failed += chapters.failed;
                Ok(counted)
            }) {
                Ok(counted) => {
                    if counted.failed > 0 {
                        failed.push("workloads".into());
                    }
                    tally = Some(counted);
                }
                Err(error) => {
                    eprintln!("workloads: {error:#}");
                    failed.push("workloads".into());
                }
            }
            times.push(format!("workloads {:.0} s", begin.elapsed().as_secs_f64()));
        }

        println!(
            "\n{}; {:.0} s in all",
            times.join(", "),
            start.elapsed().as_secs_f64()
        );
        if !failed.is_empty() {
            println!("Failed stages: {}", failed.join(", "));
        }
        if let Some(tally) = tally {
            println!("{} passed, {} failed", tally.passed, tally.failed);
        }
        Ok(if failed.is_empty() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        })
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
        Stage::Build => simulator::build(),
        // In release: what the build stage made is used again, and simulating is fast.
        Stage::Tests => process::run(&mut process::cargo(&[
            "test",
            "--quiet",
            "--release",
            "--workspace",
        ])),
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
        Stage::Loom => process::run(&mut process::cargo(&[
            "test",
            "--quiet",
            "--release",
            "--package",
            "lockstep-engine",
            "--features",
            "loom",
            "--lib",
            "loom",
        ])),
        Stage::Pages => docs::check(),
        Stage::Workloads => Ok(()),
    }
}
