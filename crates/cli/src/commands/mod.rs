//! The commands, one file each; to add one, a file and a line here. Those without a file are `lockstep-tools`'s.

mod calls;
mod counters;
mod disasm;
mod doctor;
mod gpus;
mod kernel;
mod parse;
mod replay;
mod resume;
mod run;
mod topology;
mod trace;
mod verify;

use crate::tools::Handed;
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
    #[command(disable_help_flag = true)]
    Sweep(Handed),
    /// List the calls that a run recorded
    Calls(calls::Calls),
    /// Say where the time of runs went, what bounds each kernel, and what would help
    #[command(disable_help_flag = true)]
    Report(Handed),
    /// Show runs in a browser: time line, counters over time, heat maps, kernels
    #[command(disable_help_flag = true)]
    View(Handed),
    /// Set two runs side by side: two simulations, or a real GPU and a simulated one
    #[command(disable_help_flag = true)]
    Compare(Handed),
    /// Write the launches or the series of a run for other tools: CSV, Parquet, Perfetto
    #[command(disable_help_flag = true)]
    Export(Handed),
    /// Error against a real GPU: figures, plot and page
    #[command(disable_help_flag = true)]
    Correlate(Handed),
    /// Apply the rules of the validation protocol to tables, for scripts
    #[command(disable_help_flag = true)]
    Figures(Handed),
    /// Read counters of a real GPU as time series, without touching the program
    #[command(disable_help_flag = true)]
    Sample(Handed),
    /// Own the counters of every real GPU of this node
    #[command(disable_help_flag = true)]
    Sampled(Handed),
    /// Show the parts of a simulated GPU and the links between them
    Topology(topology::Topology),
    /// Show the instructions of device code as the simulator sees them
    Disasm(disasm::Disasm),
    /// List the GPUs that can be simulated, or show the file of one
    Gpus(gpus::Gpus),
    /// List every counter and statistic, with its meaning and its names elsewhere
    Counters(counters::Counters),
    /// Check command lines on standard input
    #[command(hide = true)]
    Parse(parse::Parse),
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
            Self::Calls(command) => command.run(),
            Self::Topology(command) => command.run(),
            Self::Sweep(command)
            | Self::Report(command)
            | Self::Compare(command)
            | Self::View(command)
            | Self::Export(command)
            | Self::Correlate(command)
            | Self::Figures(command)
            | Self::Sample(command)
            | Self::Sampled(command) => command.run(),
            Self::Disasm(command) => command.run(),
            Self::Parse(command) => command.run(),
            Self::Gpus(command) => command.run(),
            Self::Counters(command) => command.run(),
            Self::Doctor(command) => command.run(),
        }
    }
}
