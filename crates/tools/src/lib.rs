//! The commands of `lockstep` that look at runs and at real GPUs: reports, the viewer, exports, sweeps, comparison with
//! hardware, sampling.
//!
//! They are a program of their own (`lockstep-tools`), so that the simulator links neither a web server nor Parquet.
//! `lockstep` starts it as git starts its subcommands; users call `lockstep` alone.

// `print!` and `eprint!` panic on a closed pipe; `say!` and `note!` do not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod commands;
mod data;
mod simulator;

use clap::{CommandFactory, Parser};
use std::io::Write;
use std::process::ExitCode;

/// Reports, viewer, exports, sweeps, correlation and sampling of lockstep
#[derive(Parser)]
#[command(
    name = "lockstep",
    bin_name = "lockstep",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Cli {
    /// Say more about what happens
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: commands::Command,
}

/// The command line, for manual pages and completions.
pub fn command() -> clap::Command {
    Cli::command()
}

/// Runs the command line of this process.
pub fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| refuse(&error));
    match cli.command.run() {
        Ok(code) => ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1)),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "lockstep: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// Says what is wrong with the command line, and ends.
fn refuse(error: &clap::Error) -> ! {
    let _ = error.print();
    let unknown = error.kind() == clap::error::ErrorKind::UnknownArgument;
    let tip = lockstep_text::tip::program_without_dashes(&["sample"], std::env::args().skip(1));
    if let Some(tip) = tip.filter(|_| unknown) {
        let _ = writeln!(std::io::stderr(), "\n{tip}");
    }
    std::process::exit(error.exit_code())
}
