//! Project tasks, run as `cargo xtask <task>`.
//!
//! One file a task; `project` knows where things are, `process` how commands are run, `cuda`
//! where the CUDA compiler comes from, `workloads` which CUDA programs there are and how they
//! are built, `simulator` how the `lockstep` command is called.

mod bench;
mod bless;
mod book;
mod clients;
mod configuration;
mod coverage;
mod cuda;
mod demo;
mod docs;
mod frontends;
mod fuzz;
mod glossary;
mod instructions;
mod links;
mod map;
mod microbench;
mod nvml;
mod options;
mod package;
mod packages;
mod process;
mod project;
mod random_programs;
mod readme;
mod regions;
mod routing;
mod simulator;
mod soak;
mod status;
mod status_page;
mod test;
mod validate;
mod viewer;
mod virtual_environment;
mod workloads;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Project tasks.
#[derive(Parser)]
#[command(name = "cargo xtask", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Build everything, compile a CUDA program with plain nvcc and run it on a simulated H200
    Demo(demo::Demo),
    /// Everything that CI checks
    Test(test::Test),
    /// Speed of the simulator on this machine
    Bench(bench::Bench),
    /// Error of the simulator against measured hardware
    Validate(validate::Validate),
    /// Write the generated pages of the documentation, or check that they are up to date
    Docs(docs::Docs),
    /// Build the book with mdBook if it is installed, and check its chapters and links
    Book(book::Book),
    /// Run workloads while random things go wrong: kills, signals, full disks, little memory
    Soak(soak::Soak),
    /// Make an archive and a Debian package of the release build
    Package(package::Package),
    /// Build the command and all of its subcommands, with the charts of the viewer
    Tools,
    /// Fetch the charting library of the viewer; the next build has it
    Viewer(viewer::Viewer),
    /// Accept what tests found where they keep expected output
    Bless(bless::Bless),
    /// Throw changed inputs at everything that reads bytes from outside, and run what they hold
    Fuzz(fuzz::Fuzz),
}

fn main() -> ExitCode {
    let done = match Cli::parse().task {
        // These end with a verdict of their own.
        Task::Test(task) => task.run(),
        Task::Bench(task) => task.run(),
        Task::Demo(task) => task.run().map(|()| ExitCode::SUCCESS),
        Task::Validate(task) => task.run().map(|()| ExitCode::SUCCESS),
        Task::Docs(task) => task.run().map(|()| ExitCode::SUCCESS),
        Task::Book(task) => task.run().map(|()| ExitCode::SUCCESS),
        Task::Soak(task) => task.run().map(|()| ExitCode::SUCCESS),
        Task::Package(task) => task.run().map(|()| ExitCode::SUCCESS),
        Task::Tools => simulator::build_with_tools().map(|()| ExitCode::SUCCESS),
        Task::Viewer(task) => task.run().map(|()| ExitCode::SUCCESS),
        Task::Bless(task) => task.run().map(|()| ExitCode::SUCCESS),
        Task::Fuzz(task) => task.run().map(|()| ExitCode::SUCCESS),
    };
    match done {
        Ok(code) => code,
        Err(error) => {
            eprintln!("xtask: {error:#}");
            ExitCode::FAILURE
        }
    }
}
