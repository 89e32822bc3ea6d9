//! `cargo xtask bench`: speed of the simulator on this machine.

use crate::cuda::Missing;
use crate::workloads::Runtime;
use crate::{cuda, frontends, process, scaling, simulator, workloads};
use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use std::path::PathBuf;
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

impl Bench {
    /// Runs it.
    pub fn run(mut self) -> Result<()> {
        if self.scaling {
            return scaling::run(&self.threads, &self.out);
        }
        if self.frontends {
            return frontends::speed(&self.only, self.repeat);
        }
        if self.threads.is_empty() {
            self.threads.push(1);
        }
        simulator::build()?;
        let toolkit = cuda::toolkit().map_err(|missing| match missing {
            Missing::Index(error) => anyhow!("PyPI could not be reached: {error}"),
            Missing::Machine(error) => error,
        })?;
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
        for (name, arguments) in PROGRAMS
            .iter()
            .filter(|(name, _)| name.contains(&self.only))
        {
            let executable = workloads::named(name)?.build(&toolkit, Runtime::Static)?;
            let arguments: Vec<String> = arguments.iter().map(|word| (*word).to_string()).collect();
            for mode in &self.mode {
                // The ratio compares thread counts of one program and mode in this one run.
                let mut reference = None;
                for threads in &self.threads {
                    let threads = threads.to_string();
                    let options = ["--mode", mode, "--threads", &threads];
                    let mut best: Option<simulator::Summary> = None;
                    for _ in 0..self.repeat.max(1) {
                        let run = simulator::run(
                            &options,
                            &executable,
                            &arguments,
                            Duration::from_secs(600),
                        )?;
                        if !run.output.success() {
                            bail!("{name} ({mode}) failed:\n{}", run.output.tail(6));
                        }
                        let summary = run.summary.context("the run left no summary.json")?;
                        let faster = best.as_ref().is_none_or(|old| {
                            summary.host.inst_per_second > old.host.inst_per_second
                        });
                        if faster {
                            best = Some(summary);
                        }
                    }
                    let Some(best) = best else { continue };
                    let speed = best.host.inst_per_second.unwrap_or(0.0);
                    let first = *reference.get_or_insert(speed);
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
            }
        }
        process::step("Figures are about this machine and no part of any digest");
        Ok(())
    }
}

/// 1,234,567 as `1.235 M`.
fn engineering(value: f64) -> String {
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
