//! Fuzzing that executes, on stable Rust: good inputs are changed by seeds, and everything that
//! reads bytes from outside reads them, loads them and runs them.
//!
//! ```text
//!  lockstep-fuzz corpus --out FILE PATH…     gathers good inputs into one file
//!  lockstep-fuzz run --corpus FILE           workers under limits of time and memory
//!  lockstep-fuzz case --target T --seed N    one case again, or its input
//!  lockstep-fuzz try FILE…                   files as they are
//! ```
//!
//! A case is a seed: it makes the same input on every machine with the same corpus. Program and
//! corpus are all that another machine needs.
//!
//! Start reading at [`targets::TARGETS`].

mod corpus;
mod mutate;
mod random;
mod samples;
mod schedule;
mod supervise;
mod targets;
mod tiny;
mod worker;

use anyhow::{Context, Result, bail};
use clap::{Parser, Subcommand};
use corpus::Corpus;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;
use supervise::{Outcome, Plan};
use targets::{TARGETS, Target};
use worker::Share;

/// Bytes from outside, thrown at what reads and runs them.
#[derive(Parser)]
#[command(name = "lockstep-fuzz", max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Gather good inputs into one file
    Corpus {
        /// Where it goes
        #[arg(long)]
        out: PathBuf,
        /// Files and folders: PTX, cubins, fat binaries, programs with them, TOML, records
        paths: Vec<PathBuf>,
    },
    /// Run cases in worker processes and list what went wrong
    Run {
        /// The gathered inputs
        #[arg(long)]
        corpus: PathBuf,
        /// One target, or all, one after the other
        #[arg(long, default_value = "all")]
        target: String,
        /// Workers side by side
        #[arg(long, default_value_t = 2)]
        jobs: u64,
        /// Seconds for each target
        #[arg(long, default_value_t = 60)]
        seconds: u64,
        /// First seed
        #[arg(long, default_value_t = 1)]
        seed: u64,
    },
    /// Run one case in this process
    Case {
        /// The gathered inputs
        #[arg(long)]
        corpus: PathBuf,
        /// The target
        #[arg(long)]
        target: String,
        /// The seed
        #[arg(long)]
        seed: u64,
        /// Write the input here and run nothing
        #[arg(long)]
        write: Option<PathBuf>,
    },
    /// Load files of code as they are, launch every kernel and say what came of it
    Try {
        /// PTX, cubins, fat binaries
        files: Vec<PathBuf>,
    },
    /// Run cases until ended
    #[command(hide = true)]
    Worker {
        #[arg(long)]
        corpus: PathBuf,
        #[arg(long)]
        target: String,
        #[arg(long)]
        from: u64,
        #[arg(long)]
        stride: u64,
        #[arg(long)]
        done: u64,
        #[arg(long)]
        status: PathBuf,
    },
}

fn main() -> ExitCode {
    match run(Cli::parse().task) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("lockstep-fuzz: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> Result<ExitCode> {
    match task {
        Task::Corpus { out, paths } => {
            let mut corpus = Corpus::default();
            for path in paths {
                corpus.gather(&path)?;
            }
            corpus.write(&out)?;
            println!("{}: {}", out.display(), corpus.summary());
        }
        Task::Run {
            corpus,
            target,
            jobs,
            seconds,
            seed,
        } => {
            println!("corpus: {}", Corpus::read(&corpus)?.summary());
            let plan = Plan {
                corpus: &corpus,
                jobs: jobs.max(1),
                time: Duration::from_secs(seconds),
                seed,
            };
            return run_targets(&chosen(&target)?, &plan);
        }
        Task::Case {
            corpus,
            target,
            seed,
            write,
        } => {
            let (target, corpus) = (one(&target)?, Corpus::read(&corpus)?);
            if let Some(path) = write {
                std::fs::write(&path, worker::input(target, &corpus, seed))?;
                return Ok(ExitCode::SUCCESS);
            }
            (target.run)(&worker::input(target, &corpus, seed));
        }
        Task::Try { files } => {
            for file in files {
                let bytes = std::fs::read(&file).with_context(|| file.display().to_string())?;
                println!("{}", file.display());
                targets::try_image(&bytes);
            }
        }
        Task::Worker {
            corpus,
            target,
            from,
            stride,
            done,
            status,
        } => {
            let share = Share { from, stride, done };
            worker::run(one(&target)?, &Corpus::read(&corpus)?, share, &status)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn one(name: &str) -> Result<&'static Target> {
    let known: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    targets::find(name)
        .with_context(|| format!("no target is called `{name}`; known: {}", known.join(", ")))
}

fn chosen(name: &str) -> Result<Vec<&'static Target>> {
    if name == "all" {
        return Ok(TARGETS.iter().collect());
    }
    Ok(vec![one(name)?])
}

/// Runs targets one after the other; a finding is a failure.
fn run_targets(chosen: &[&Target], plan: &Plan<'_>) -> Result<ExitCode> {
    let (mut cases, mut clean) = (0, true);
    for target in chosen {
        println!("{}: {}", target.name, target.sentence);
        let outcome = supervise::run(target, plan)?;
        report(target, plan, &outcome);
        cases += outcome.cases;
        clean &= outcome.findings.is_empty();
        if outcome.cases == 0 {
            bail!("no case of `{}` ended", target.name);
        }
    }
    let verdict = if clean { "clean" } else { "not clean" };
    println!("{cases} cases from seed {}, {verdict}", plan.seed);
    Ok(if clean {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

fn report(target: &Target, plan: &Plan<'_>, outcome: &Outcome) {
    let seconds = plan.time.as_secs();
    println!(
        "  {} cases in {seconds} s on {} workers, seeds from {}",
        outcome.cases, plan.jobs, plan.seed
    );
    for (what, finding) in &outcome.findings {
        let (name, seeds) = (target.name, &finding.seeds);
        println!("  {} x {what}: {}", finding.count, finding.example);
        println!("      --target {name} --seed {seeds:?}");
    }
}
