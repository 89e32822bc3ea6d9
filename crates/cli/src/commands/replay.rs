//! `lockstep replay`: kernels of Accel-Sim traces, cycle by cycle.

use crate::options::{RecordingOptions, SimulationOptions};
use crate::{report, watch};
use clap::Args;
use lockstep_simulation::replay_traces;
use std::path::PathBuf;

/// Simulate the kernels of Accel-Sim traces, cycle by cycle.
#[derive(Args)]
#[command(
    after_help = "Traces may be plain or compressed (.xz, .gz, .zst), of versions 1 to 5, of machine code from Volta to\nHopper.\n\nExamples:\n  lockstep replay traces --gpu h200\n  lockstep replay traces/kernelslist.g --gpu a100 --out results"
)]
pub struct Replay {
    /// Folder with kernelslist.g, or the list itself
    #[arg(value_name = "DIR|FILE")]
    traces: PathBuf,
    #[command(flatten)]
    options: SimulationOptions,
    #[command(flatten)]
    recording: RecordingOptions,
}

impl Replay {
    /// Runs it; 0 if all kernels ended well.
    pub fn run(self) -> anyhow::Result<i32> {
        let mut description = self.options.describe()?;
        anyhow::ensure!(
            !self.recording.lines,
            "--lines needs the code of a program, and a trace has none; leave it out"
        );
        self.recording.add(&mut description)?;
        let watcher = watch::Watcher::start(&description.progress);
        let results = replay_traces(&description, &self.traces);
        watcher.finish();
        let results = results?;
        report::print(&results);
        report::print_problems(&results);
        Ok(results.summary.ending.exit_code)
    }
}
