//! The `lockstep` command.
//!
//! One file a command under `commands/`; only here do errors become text and exit codes.

// `print!` and `eprint!` panic when nobody reads on; `say!` and `note!` do not.
#![deny(clippy::print_stdout, clippy::print_stderr)]

mod commands;
mod data;
mod options;
mod report;
mod say;
mod watch;

use clap::Parser;
use std::io::{IsTerminal, Write};
use std::process::ExitCode;

/// Workers start blocks, which takes memory, at the same time: the allocator of the C library grows its
/// arenas by changing the protection of pages, and every such call holds up all threads that touch a new one.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

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
pub struct Cli {
    /// Say more about what happens (-v: what is done, -vv: every call)
    #[arg(short, long, global = true, action = clap::ArgAction::Count)]
    verbose: u8,
    #[command(subcommand)]
    command: commands::Command,
}

fn main() -> ExitCode {
    let cli = Cli::try_parse().unwrap_or_else(|error| refuse(&error));
    start_logging(cli.verbose);
    end_on_panic();
    match cli.command.run() {
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
    if let Some(tip) = tip(std::env::args().skip(1)).filter(|_| unknown) {
        let _ = writeln!(std::io::stderr(), "\n{tip}");
    }
    std::process::exit(error.exit_code())
}

/// A tip with the right command line, if a program stands where `--` is missing before it.
fn tip(words: impl Iterator<Item = String>) -> Option<String> {
    let words: Vec<String> = words.collect();
    let command = words.first()?;
    let runs = ["run", "sample", "sampled", "trace", "verify"].contains(&command.as_str());
    if !runs || words.iter().any(|word| word == "--") {
        return None;
    }
    let is_program = |word: &String| std::path::Path::new(word).is_file();
    let place = words.iter().skip(1).position(is_program)? + 1;
    let (options, program) = words.split_at(place);
    Some(format!(
        "tip: put `--` before the program: lockstep {} -- {}",
        options.join(" "),
        program.join(" ")
    ))
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
        .with_ansi(std::io::stderr().is_terminal())
        .without_time()
        .with_target(false);
    tracing_subscriber::registry()
        .with(lines.with_filter(filter))
        .init();
}
