//! `lockstep trace`: what kernels execute, as traces for Accel-Sim.

use crate::options::SimulationOptions;
use crate::say::say;
use crate::{report, watch};
use clap::Args;
use lockstep_simulation::trace_program;
use std::path::PathBuf;

/// Write what a CUDA program's kernels execute as traces for Accel-Sim, without a GPU.
#[derive(Args)]
#[command(
    after_help = "The program runs functionally. --kernels and --launches choose what is traced.\n\nExamples:\n  lockstep trace --output traces -- ./vector_add\n  lockstep trace --output traces --kernels reduce --gpu a100 -- ./shoc"
)]
pub struct Trace {
    #[command(flatten)]
    options: SimulationOptions,
    /// Folder for kernelslist.g and the traces, new or empty
    #[arg(long, value_name = "DIR")]
    output: PathBuf,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    command: Vec<String>,
}

impl Trace {
    /// Runs it; the exit code is the program's.
    pub fn run(self) -> anyhow::Result<i32> {
        let description = self.options.describe()?;
        let watcher = watch::Watcher::start(&description.progress);
        let outcome = trace_program(&description, &self.command, &self.output);
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
