//! `lockstep trace`: what kernels execute, as traces for Accel-Sim.

use crate::options::SimulationOptions;
use crate::{report, watch};
use anyhow::Context;
use clap::Args;
use lockstep_simulation::{record_at, trace_program, trace_record};
use lockstep_text::say;
use std::path::PathBuf;

/// Write what a CUDA program's kernels execute as traces for Accel-Sim, without a GPU.
#[derive(Args)]
#[command(
    after_help = "The program runs functionally. --kernels and --launches choose what is traced.\n\nExamples:\n  lockstep trace --output traces -- ./vector_add\n  lockstep trace --output traces --record kept\n  lockstep trace --output traces --kernels reduce --gpu a100 -- ./shoc"
)]
pub struct Trace {
    #[command(flatten)]
    options: SimulationOptions,
    /// Folder for kernelslist.g and the traces, new or empty
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// Trace what an earlier run did instead of running a program: its folder, or the record in it (made with --record
    /// full)
    #[arg(long, value_name = "DIR|FILE", conflicts_with = "command")]
    record: Option<PathBuf>,
    /// The program and its arguments
    #[arg(
        last = true,
        required_unless_present = "record",
        value_name = "PROGRAM"
    )]
    command: Vec<String>,
}

impl Trace {
    /// Runs it; the exit code is the program's.
    pub fn run(self) -> anyhow::Result<i32> {
        let description = self.options.describe()?;
        let watcher = watch::Watcher::start(&description.progress);
        let outcome = match &self.record {
            Some(place) => {
                let record = record_at(place);
                let record = record
                    .with_context(|| format!("{}: there is no record of calls", place.display()))?;
                trace_record(&description, &record, &self.output)
            }
            None => trace_program(&description, &self.command, &self.output),
        };
        watcher.finish();
        let (results, traced) = outcome?;
        say!(
            "{} kernels and {} instructions of warps in {}\n",
            traced.kernels,
            traced.instructions,
            self.output.display()
        );
        report::print_problems(&results);
        Ok(results.summary.ending.exit_code)
    }
}
