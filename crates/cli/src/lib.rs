//! The `lockstep` command.
//!
//! One file a command under `commands/`; only here do errors become text and exit codes.

// `print!` and `eprint!` panic on a closed pipe; `say!` and `note!` do not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod commands;
mod options;
mod report;
mod tools;
mod watch;

use clap::{CommandFactory, Parser};
use std::io::Write;
use std::process::ExitCode;

/// Runs unmodified CUDA programs on simulated NVIDIA GPUs: cycle by cycle, in parallel, with one
/// answer however many threads run it.
#[derive(Parser)]
#[command(
    name = "lockstep",
    version,
    max_term_width = 100,
    subcommand_required = true,
    arg_required_else_help = true
)]
struct Cli {
    /// Say more about what happens (-v: what is done, -vv: every call)
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
    if tools::is_asked_for_help() {
        return ended(tools::become_tools());
    }
    let cli = Cli::try_parse().unwrap_or_else(|error| refuse(&error));
    start_logging(cli.verbose);
    end_on_panic();
    ended(cli.command.run())
}

/// The exit code for the outcome of a command; an error is printed.
fn ended(outcome: anyhow::Result<i32>) -> ExitCode {
    match outcome {
        Ok(code) => ExitCode::from(u8::try_from(code & 0xff).unwrap_or(1)),
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "lockstep: {error:#}");
            let code = error
                .downcast_ref::<lockstep_simulation::RunError>()
                .map_or(2, |error| error.exit_code());
            ExitCode::from(u8::try_from(code & 0xff).unwrap_or(2))
        }
    }
}

/// Says what is wrong with the command line, and ends.
fn refuse(error: &clap::Error) -> ! {
    let _ = error.print();
    let unknown = error.kind() == clap::error::ErrorKind::UnknownArgument;
    let commands = ["run", "trace", "verify"];
    let tip = lockstep_text::tip::program_without_dashes(&commands, std::env::args().skip(1));
    if let Some(tip) = tip.filter(|_| unknown) {
        let _ = writeln!(std::io::stderr(), "\n{tip}");
    }
    std::process::exit(error.exit_code())
}

/// A fault of the simulator in any thread ends it, and with it the program that waits for an answer.
fn end_on_panic() {
    let print = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |fault| {
        print(fault);
        let _ = writeln!(
            std::io::stderr(),
            "lockstep: this is a fault of the simulator, not of the program; please report it with the lines above"
        );
        std::process::exit(101);
    }));
}

fn start_logging(verbose: u8) {
    use tracing_subscriber::filter::{LevelFilter, Targets};
    use tracing_subscriber::prelude::*;
    let level = match verbose {
        0 => LevelFilter::ERROR,
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    let mut filter = Targets::new().with_default(level);
    if let Ok(text) = std::env::var("LOCKSTEP_LOG") {
        match text.parse() {
            Ok(asked) => filter = asked,
            Err(error) => {
                let _ = writeln!(
                    std::io::stderr(),
                    "lockstep: LOCKSTEP_LOG=`{text}` is not followed: {error}; a level or `module=level` is expected"
                );
            }
        }
    }
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .without_time()
        .with_target(false);
    tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .init();
}
