//! The commands, one file each. One that is added here is named in `lockstep` too (`crates/cli/src/commands/mod.rs`).

mod correlate;
mod export;
mod figures;
mod job_rank;
mod output;
mod report;
mod sample;
mod sampled;
mod sweep;
mod view;

use clap::Subcommand;

/// The commands of the command line.
#[derive(Subcommand)]
pub enum Command {
    /// Simulate many points of a file: grids and lists of settings, GPUs, programs, arguments
    Sweep(sweep::SweepArguments),
    /// Say where the time of runs went, what bounds each kernel, and what would help
    Report(report::ReportArguments),
    /// Show runs in a browser: time line, counters over time, heat maps, kernels
    View(view::View),
    /// Set two runs side by side: two simulations, or a real GPU and a simulated one
    Compare(report::CompareArguments),
    /// Write the launches or the series of a run for other tools: CSV, Parquet, Perfetto
    Export(export::Export),
    /// Error against a real GPU: figures, plot and page
    Correlate(correlate::Correlate),
    /// Apply the rules of the validation protocol to tables, for scripts
    Figures(figures::Figures),
    /// Read counters of a real GPU as time series, without touching the program
    Sample(sample::SampleArguments),
    /// Own the counters of every real GPU of this node
    Sampled(sampled::SampledArguments),
}

impl Command {
    /// Runs it; the exit code.
    pub fn run(self) -> anyhow::Result<i32> {
        match self {
            Self::Sweep(command) => command.run(),
            Self::Report(command) => command.run(),
            Self::Compare(command) => command.run(),
            Self::View(command) => command.run(),
            Self::Export(command) => command.run(),
            Self::Correlate(command) => command.run(),
            Self::Figures(command) => command.run(),
            Self::Sample(command) => command.run(),
            Self::Sampled(command) => command.run(),
        }
    }
}
