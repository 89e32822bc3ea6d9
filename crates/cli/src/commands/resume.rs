//! `lockstep resume`: a run that was killed, from where it was saved; or another one, from a launch on.

use super::{Command, run::Run};
use crate::Cli;
use crate::options::{ScheduleName, thread_count};
use anyhow::Context;
use clap::{Args, Parser};
use lockstep_simulation::{CheckpointOptions, Existing, started};
use std::path::PathBuf;
use std::time::Duration;

/// Go on with a run from its checkpoint, or start one with other settings from there.
#[derive(Args)]
#[command(
    after_help = "The program is started again with the arguments it had, in the directory it had, and its calls are \
                  answered as before until the checkpoint; what it prints before comes again. A call that differs \
                  ends the run.\n\nWith --out, memory and calls are those of a checkpoint between two kernels \
                  (--checkpoint-before), the GPU has the settings given here, and every launch from there on takes \
                  its time.\n\nExamples:\n  lockstep run --checkpoint-every 60s --out long -- ./long_program\n  \
                  lockstep resume long\n  \
                  lockstep run --mode functional --checkpoint-before 100 --out warm -- ./long_program\n  \
                  lockstep resume warm --out fast --set device.clock=\"2 GHz\""
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
    /// Begin a new run here, from a checkpoint between two kernels, which is left as it is
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// With --out: remove what an earlier run left in its folder
    #[arg(long, visible_alias = "force", requires = "out")]
    overwrite: bool,
    /// With --out: another GPU, with SMs of the same number and size
    #[arg(long, value_name = "NAME|FILE", requires = "out")]
    gpu: Option<String>,
    /// With --out: change one setting of the GPU; may be repeated
    #[arg(long = "set", value_name = "KEY=VALUE", requires = "out")]
    settings: Vec<String>,
    /// No report at the end; the run folder has it all
    #[arg(short, long)]
    quiet: bool,
}

impl Resume {
    /// Runs it; the exit code is the program's.
    pub fn run(self) -> anyhow::Result<i32> {
        let folder = std::path::absolute(&self.folder)?;
        let out = self.out.as_ref().map(std::path::absolute).transpose()?;
        let gpu = self.gpu.as_deref().map(gpu_from_here).transpose()?;
        let started = started(&folder).map_err(lockstep_simulation::RunError::from)?;
        // Names in the command line mean what they meant.
        std::env::set_current_dir(&started.directory)
            .with_context(|| format!("{}: the run began there", started.directory.display()))?;
        let mut run = run_of(&started.arguments)?;
        let mut description = run.describe()?;
        match out {
            Some(out) => {
                let seen = description.config;
                run.change(gpu.as_deref(), &self.settings);
                description = run.describe()?;
                description.seen = Some(seen);
                description.out = Some(out);
                description.existing = match self.overwrite {
                    true => Existing::Overwrite,
                    false => Existing::MustBeEmpty,
                };
                description.checkpoints = Some(CheckpointOptions {
                    every: Duration::MAX,
                    from: Some(folder),
                    ..CheckpointOptions::default()
                });
            }
            None => {
                description.out = Some(folder);
                description.existing = Existing::Resume;
                if let Some(checkpoints) = &mut description.checkpoints {
                    checkpoints.resume = true;
                    checkpoints.arguments.clone_from(&started.arguments);
                }
            }
        }
        if let Some(threads) = self.threads {
            description.execution.threads = threads;
        }
        if let Some(schedule) = self.schedule {
            description.execution.schedule = schedule.into();
        }
        if self.quiet {
            run.silence();
        }
        run.simulate(&description)
    }
}

/// A GPU as it is named here: a file is found from another directory as well.
fn gpu_from_here(name: &str) -> anyhow::Result<String> {
    let path = std::path::Path::new(name);
    Ok(match path.is_file() {
        true => std::path::absolute(path)?.display().to_string(),
        false => name.to_owned(),
    })
}

/// The run that a command line asked for.
fn run_of(arguments: &[String]) -> anyhow::Result<Run> {
    let words = ["lockstep".to_string()];
    let cli = Cli::try_parse_from(words.iter().chain(arguments))
        .context("the command line in the checkpoint")?;
    match cli.command {
        Command::Run(run) if run.is_saved() => Ok(run),
        _ => anyhow::bail!("the command line in the checkpoint is no `lockstep run` that is saved"),
    }
}
