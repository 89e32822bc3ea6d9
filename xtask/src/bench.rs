//! `cargo xtask bench`: speed of the simulator on this machine.

mod against;
pub mod record;
mod scaling;
mod statistics;

use crate::simulator::Summary;
use crate::workloads::Runtime;
use crate::{cuda, frontends, process, simulator, workloads};
use anyhow::{Context, Result, bail};
use clap::Args;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// Programs and arguments that stand for kinds of work: enough instructions to time, few enough to wait for.
const PROGRAMS: &[(&str, &[&str])] = &[
    ("matrix_multiply", &["192"]),
    ("vector_add", &["163840"]),
    ("histogram", &["65536"]),
    ("bfs", &["4096"]),
    ("dgemm", &["96"]),
    ("spin_lock", &["24", "2"]),
];

/// Speed of the simulator on this machine.
#[derive(Args)]
pub struct Bench {
    /// Worker threads; ratios are to the first [default: 1; with --scaling 1,2,4,8,16]
    #[arg(long, value_name = "N,…", value_delimiter = ',')]
    threads: Vec<u32>,
    /// Build this commit too, and compare both by processor time in alternating pairs of runs
    #[arg(long, value_name = "COMMIT", conflicts_with_all = ["scaling", "frontends", "record"])]
    against: Option<String>,
    /// Pairs of runs of each program and mode with --against
    #[arg(long, value_name = "N", default_value_t = 10, value_parser = clap::value_parser!(u32).range(10..))]
    pairs: u32,
    /// With --against: fail unless the interval of the ratio over all programs reaches this
    #[arg(long, value_name = "RATIO", requires = "against")]
    bound: Option<f64>,
    /// Write the figures to validation/speed.csv, from which the table of `docs/status.md` is made
    #[arg(long, conflicts_with_all = ["scaling", "frontends"])]
    record: bool,
    /// Time the programs of studies/parallel-speedup by threads and schedules, and independent runs beside each other
    #[arg(long)]
    scaling: bool,
    /// Time machine code and PTX beside each other in functional mode, by processor time a warp instruction
    #[arg(long, conflicts_with = "scaling")]
    frontends: bool,
    /// Folder for tables and plot of --scaling
    #[arg(long, value_name = "DIR", default_value = "lockstep-out/scaling")]
    out: PathBuf,
    /// Modes to time
    #[arg(long, value_delimiter = ',', default_value = "functional,timing")]
    mode: Vec<String>,
    /// Take the best of this many runs
    #[arg(long, default_value_t = 2)]
    repeat: u32,
    /// Only programs whose name contains this
    #[arg(long, default_value = "")]
    only: String,
}

/// A program that is built, and its arguments.
struct Case {
    name: &'static str,
    executable: PathBuf,
    frontend: &'static [&'static str],
    arguments: Vec<String>,
}

/// What a run says about speed.
#[derive(Clone, Debug, PartialEq)]
pub struct Figures {
    /// Warp instructions.
    pub instructions: u64,
    /// Of these a second of processor time, while simulating.
    pub per_second: f64,
    /// Simulated cycles a second of processor time; functional mode has none.
    pub cycles_per_second: Option<f64>,
    /// Most memory that the simulator had, in bytes.
    pub peak_memory: u64,
}

impl Bench {
    /// Runs it.
    pub fn run(mut self) -> Result<ExitCode> {
        if self.scaling {
            return scaling::run(&self.threads, &self.out).map(|()| ExitCode::SUCCESS);
        }
        if self.frontends {
            return frontends::speed(&self.only, self.repeat).map(|()| ExitCode::SUCCESS);
        }
        if self.threads.is_empty() {
            self.threads.push(1);
        }
        if let Some(commit) = &self.against {
            return against::run(&against::Comparison {
                commit,
                pairs: self.pairs,
                bound: self.bound,
                modes: &self.mode,
                threads: self.threads[0],
                only: &self.only,
            });
        }
        let measured = self.measure()?;
        if self.record {
            record::write(&measured)?;
        }
        process::step("Figures are about this machine and no part of any digest");
        Ok(ExitCode::SUCCESS)
    }

    /// Runs every program in every mode with every number of threads, and prints a table.
    fn measure(&self) -> Result<Vec<record::Measured>> {
        simulator::build()?;
        println!(
            "{:<18} {:<11} {:>7} {:>14} {:>14} {:>14} {:>8} {:>10} {:>9}",
            "program",
            "mode",
            "threads",
            "warp inst",
            "warp inst/s",
            "cycles/s",
            "ratio",
            "first call",
            "memory"
        );
        let mut measured = Vec::new();
        for case in cases(&self.only)? {
            for mode in &self.mode {
                // The ratio compares thread counts of one program and mode in this one run.
                let mut reference = None;
                for threads in self.threads.iter().copied() {
                    let best = self.best(&case, mode, threads)?;
                    let speed = best.host.inst_per_second.unwrap_or(0.0);
                    let first = *reference.get_or_insert(speed);
                    print_row(case.name, mode, threads, first, &best);
                    measured.push(record::Measured {
                        program: case.name.into(),
                        arguments: case.arguments.join(" "),
                        mode: mode.clone(),
                        threads,
                        figures: figures(&best),
                    });
                }
            }
        }
        Ok(measured)
    }

    /// The one of several runs that took the least processor time.
    fn best(&self, case: &Case, mode: &str, threads: u32) -> Result<Summary> {
        let threads = threads.to_string();
        let options = [&["--mode", mode, "--threads", &threads], case.frontend].concat();
        let mut best: Option<Summary> = None;
        for _ in 0..self.repeat.max(1) {
            let run = simulator::run(
                &options,
                &case.executable,
                &case.arguments,
                Duration::from_secs(600),
            )?;
            if !run.output.success() {
                bail!("{} ({mode}) failed:\n{}", case.name, run.output.tail(6));
            }
            let summary = run.summary.context("the run left no summary.json")?;
            let faster = best
                .as_ref()
                .is_none_or(|old| summary.host.processor_seconds < old.host.processor_seconds);
            if faster {
                best = Some(summary);
            }
        }
        best.context("no run")
    }
}

/// The programs whose name contains a word, built.
fn cases(only: &str) -> Result<Vec<Case>> {
    let toolkit = cuda::required()?;
    let chosen = PROGRAMS.iter().filter(|(name, _)| name.contains(only));
    let cases: Vec<Case> = chosen
        .map(|(name, arguments)| {
            Ok(Case {
                name,
                executable: workloads::named(name)?.build(&toolkit, Runtime::Static)?,
                frontend: workloads::named(name)?.as_ptx(),
                arguments: arguments.iter().map(|word| (*word).to_string()).collect(),
            })
        })
        .collect::<Result<_>>()?;
    if cases.is_empty() {
        let names: Vec<&str> = PROGRAMS.iter().map(|(name, _)| *name).collect();
        bail!(
            "no program has `{only}` in its name; there are {}",
            names.join(", ")
        );
    }
    Ok(cases)
}

/// What a run says about speed by processor time, which other programs on the machine disturb less than wall time.
fn figures(summary: &Summary) -> Figures {
    let instructions = summary.totals.inst_executed.unwrap_or(0);
    let by_wall = summary.host.inst_per_second.unwrap_or(0.0);
    let per_second = match summary.host.processor_seconds {
        Some(seconds) if seconds > 0.0 => instructions as f64 / seconds,
        _ => by_wall,
    };
    Figures {
        instructions,
        per_second,
        cycles_per_second: summary
            .host
            .cycles_per_second
            .filter(|_| by_wall > 0.0)
            .map(|cycles| cycles / by_wall * per_second),
        peak_memory: summary.host.peak_memory,
    }
}

fn print_row(name: &str, mode: &str, threads: u32, first: f64, best: &Summary) {
    let speed = best.host.inst_per_second.unwrap_or(0.0);
    println!(
        "{name:<18} {mode:<11} {threads:>7} {:>14} {:>14} {:>14} {:>8.2} {:>8.1}ms {:>6}MiB",
        best.totals.inst_executed.unwrap_or(0),
        engineering(speed),
        best.host.cycles_per_second.map_or("-".into(), engineering),
        if first > 0.0 { speed / first } else { 0.0 },
        best.host.first_answer_seconds.unwrap_or(0.0) * 1e3,
        best.host.peak_memory >> 20
    );
}

/// 1,234,567 as `1.235 M`.
pub fn engineering(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{:.3} G", v / 1e9),
        v if v >= 1e6 => format!("{:.3} M", v / 1e6),
        v if v >= 1e3 => format!("{:.3} k", v / 1e3),
        v => format!("{v:.0}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_scaled() {
        assert_eq!(engineering(1_234_567.0), "1.235 M");
        assert_eq!(engineering(999.0), "999");
        assert_eq!(engineering(2.5e9), "2.500 G");
    }

    #[test]
    fn every_benchmark_is_a_workload() {
        for (name, _) in PROGRAMS {
            assert!(workloads::named(name).is_ok(), "{name}");
        }
    }
}
