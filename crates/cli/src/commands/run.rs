//! `lockstep run`: a CUDA program on a simulated GPU.

use crate::options::{NodeOptions, RecordingOptions, SimulationOptions};
use crate::{report, watch};
use clap::{Args, ValueEnum};
use lockstep_simulation::{Recording, run_program};

/// Run a CUDA program on a simulated GPU.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  lockstep run -- ./vector_add\n  lockstep run --gpu a100 --mode functional -- python3 train.py\n  lockstep run --set sm.warps=32 --out results -- ./matmul 512"
)]
pub struct Run {
    #[command(flatten)]
    options: SimulationOptions,
    #[command(flatten)]
    node: NodeOptions,
    #[command(flatten)]
    recording: RecordingOptions,
    /// What to keep of the program's calls: nothing, the calls, or also all data it sent
    #[arg(long, value_enum, default_value_t = RecordName::Calls)]
    record: RecordName,
    /// No report at the end; the run folder has it all
    #[arg(short, long)]
    quiet: bool,
    /// The program and its arguments
    #[arg(last = true, required = true, value_name = "PROGRAM")]
    command: Vec<String>,
}

/// Names for [`Recording`].
#[derive(Clone, Copy, ValueEnum)]
enum RecordName {
    /// Nothing
    None,
    /// What was called
    Calls,
    /// And every byte that the program wrote to the device
    Full,
}

impl Run {
    /// Runs it; the exit code is the program's.
    pub fn run(self) -> anyhow::Result<i32> {
        let mut description = self.options.describe()?;
        self.node.apply(&mut description);
        self.recording.add(&mut description)?;
        description.recording = match self.record {
            RecordName::None => Recording::None,
            RecordName::Calls => Recording::Calls,
            RecordName::Full => Recording::Full,
        };
        let watcher = watch::Watcher::start(&description.progress);
        let results = run_program(&description, &self.command);
        watcher.finish();
        let results = results?;
        match self.quiet {
            true => report::print_bad_ending(&results),
            false => report::print(&results),
        }
        report::print_problems(&results);
        Ok(results.summary.ending.exit_code)
    }
}
