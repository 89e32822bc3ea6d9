//! `lockstep replay`: a record of a run, or kernels of Accel-Sim traces, cycle by cycle.

use crate::options::{RecordingOptions, SimulationOptions};
use crate::{report, watch};
use clap::Args;
use lockstep_simulation::{record_at, replay_record, replay_traces};
use std::path::PathBuf;

/// Simulate a recorded run again, or the kernels of Accel-Sim traces, cycle by cycle.
#[derive(Args)]
#[command(
    after_help = "A run that was made with --record full needs no program any more: its record gives the same cycles, counters and digest on the same GPU, and others on another.\n\nTraces may be plain or compressed (.xz, .gz, .zst), of versions 1 to 5, of machine code from Volta to\nHopper.\n\nExamples:\n  lockstep run --record full --out kept -- ./program\n  lockstep replay kept --set l2.capacity=\"30 MiB\"\n  lockstep replay traces --gpu h200\n  lockstep replay traces/kernelslist.g --gpu a100 --out results"
)]
pub struct Replay {
    /// Run folder with a full record, or the record itself; folder with kernelslist.g, or the list itself
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
        let record = record_at(&self.traces);
        anyhow::ensure!(
            record.is_some() || !self.recording.lines,
            "--lines needs the code of a program, and a trace has none; leave it out"
        );
        self.recording.add(&mut description)?;
        let watcher = watch::Watcher::start(&description.progress);
        let results = match &record {
            Some(record) => replay_record(&description, record),
            None => replay_traces(&description, &self.traces),
        };
        watcher.finish();
        let results = results?;
        report::print(&results);
        report::print_problems(&results);
        Ok(results.summary.ending.exit_code)
    }
}
