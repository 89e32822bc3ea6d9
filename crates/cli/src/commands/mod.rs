//! The commands, one file each; to add one, a file and a line here.

mod calls;
mod correlate;
mod counters;
mod disasm;
mod doctor;
mod export;
mod figures;
mod gpus;
mod job_rank;
mod kernel;
mod output;
mod pages;
mod replay;
mod report;
mod resume;
mod run;
mod sample;
mod sampled;
mod sweep;
mod topology;
mod trace;
mod verify;
mod view;

use clap::Subcommand;

/// What the command line can ask for.
#[derive(Subcommand)]
pub enum Command {
    /// Run a CUDA program on a simulated GPU
    Run(run::Run),
    /// Go on with a run from its checkpoint, or start one with other settings from there
    Resume(resume::Resume),
    /// Run one kernel of a PTX or cubin file, without a host program
    Kernel(kernel::Kernel),
    /// Write what a CUDA program's kernels execute as traces for Accel-Sim, without a GPU
    Trace(trace::Trace),
    /// Simulate a recorded run again, or the kernels of Accel-Sim traces, cycle by cycle
    Replay(replay::Replay),
    /// Simulate a program in many ways and check that all answers are equal
    Verify(verify::Verify),
    /// Simulate many points of a file: grids and lists of settings, GPUs, programs, arguments
    Sweep(sweep::SweepArguments),
    /// List the calls that a run recorded
    Calls(calls::Calls),
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
    /// Show the parts of a simulated GPU and the links between them
    Topology(topology::Topology),
    /// Show the instructions of device code as the simulator sees them
    Disasm(disasm::Disasm),
    /// List the GPUs that can be simulated, or show the file of one
    Gpus(gpus::Gpus),
    /// List every counter and statistic, with its meaning and its names elsewhere
    Counters(counters::Counters),
    /// Write manual pages and completions of shells into a folder
    #[command(hide = true)]
    Pages(pages::Pages),
    /// Check what works on this machine and say what is missing
    Doctor(doctor::Doctor),
}

impl Command {
    /// Runs it; the exit code.
    pub fn run(self) -> anyhow::Result<i32> {
        match self {
            Self::Run(command) => command.run(),
            Self::Resume(command) => command.run(),
            Self::Kernel(command) => command.run(),
            Self::Trace(command) => command.run(),
            Self::Replay(command) => command.run(),
            Self::Verify(command) => command.run(),
            Self::Sweep(command) => command.run(),
            Self::Calls(command) => command.run(),
            Self::Report(command) => command.run(),
            Self::Compare(command) => command.run(),
            Self::View(command) => command.run(),
            Self::Export(command) => command.run(),
            Self::Correlate(command) => command.run(),
            Self::Figures(command) => command.run(),
            Self::Sample(command) => command.run(),
            Self::Sampled(command) => command.run(),
            Self::Topology(command) => command.run(),
            Self::Disasm(command) => command.run(),
            Self::Pages(command) => command.run(),
            Self::Gpus(command) => command.run(),
            Self::Counters(command) => command.run(),
            Self::Doctor(command) => command.run(),
        }
    }
}
