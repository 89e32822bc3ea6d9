//! `lockstep resume`: a run that was killed, from where it was saved.

use super::{Command, run::Run};
use crate::Cli;
use crate::options::{ScheduleName, thread_count};
use anyhow::Context;
use clap::{Args, Parser};
use lockstep_simulation::{Existing, started};
use std::path::PathBuf;

/// Go on with a run that was killed, from its last checkpoint.
#[derive(Args)]
#[command(
    after_help = "The program is started again with the arguments it had, in the directory it had, and its calls are \
                  answered as before until the checkpoint; what it prints before comes again. A call that differs \
                  ends the run.\n\nExamples:\n  lockstep run --checkpoint-every 60s --out long -- ./long_program\n  \
                  lockstep resume long"
)]
pub struct Resume {
    /// The run folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Worker threads at most, or `auto`; those of the run if it is not said
    #[arg(long, value_name = "N|auto", value_parser = thread_count)]
    threads: Option<u32>,
    /// How parts of the GPU are given to threads; as in the run if it is not said
    #[arg(long, value_enum)]
    schedule: Option<ScheduleName>,
    /// No report at the end; the run folder has it all
    #[arg(short, long)]
    quiet: bool,
}

impl Resume {
    /// Runs it; the exit code is the program's.
    pub fn run(self) -> anyhow::Result<i32> {
        let folder = std::path::absolute(&self.folder)?;
        let started = started(&folder).map_err(lockstep_simulation::RunError::from)?;
        // Names in the command line mean what they meant.
        std::env::set_current_dir(&started.directory)
            .with_context(|| format!("{}: the run began there", started.directory.display()))?;
        let mut run = run_of(&started.arguments)?;
        let mut description = run.describe()?;
        description.out = Some(folder);
        description.existing = Existing::Resume;
        if let Some(threads) = self.threads {
            description.execution.threads = threads;
        }
        if let Some(schedule) = self.schedule {
            description.execution.schedule = schedule.into();
        }
        if let Some(checkpoints) = &mut description.checkpoints {
            checkpoints.resume = true;
            checkpoints.arguments = started.arguments;
        }
        if self.quiet {
            run.silence();
        }
        run.simulate(&description)
    }
}

/// The run that a command line asked for.
fn run_of(arguments: &[String]) -> anyhow::Result<Run> {
    let words = ["lockstep".to_string()];
    let cli = Cli::try_parse_from(words.iter().chain(arguments))
        .context("the command line in the checkpoint")?;
    match cli.command {
        Command::Run(run) if run.is_saved() => Ok(run),
        _ => anyhow::bail!(
            "the command line in the checkpoint is no `lockstep run --checkpoint-every`"
        ),
    }
}
