//! One program, many ways to simulate it: the answers must not differ.

use crate::description::{Description, Execution, Schedule};
use crate::program::{RunError, run_program};
use crate::record_replay::record_of;
use crate::replay::replay;
use crate::results::Results;
use crate::server::Recording;
use std::path::Path;
use std::time::Duration;

/// Worker threads that are tried.
const THREADS: &[u32] = &[1, 2, 3, 8, 16];

/// The name of runs of the program itself.
const LIVE: &str = "live";

/// One way to simulate.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// What it is called.
    pub name: &'static str,
    /// How it works.
    pub execution: Execution,
}

impl Variant {
    /// Words for a table.
    pub fn describe(&self) -> String {
        let execution = &self.execution;
        let mut words = Vec::new();
        if self.name == LIVE {
            words.push("the program again".into());
        }
        words.push(format!("{} threads", execution.threads));
        words.push(execution.schedule.name().into());
        if execution.no_jumping {
            words.push("no jumping".into());
        }
        if let Some(seed) = execution.delay_seed {
            words.push(format!("delays (seed {seed})"));
        }
        if let Some(seed) = execution.reload_seed {
            words.push(format!("save and load (seed {seed})"));
        }
        words.join(", ")
    }
}

/// What one way came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The way.
    pub variant: Variant,
    /// Its digest.
    pub digest: String,
    /// What differs from the first run; empty when nothing does.
    pub differences: Vec<String>,
    /// How long it took.
    pub wall: Duration,
    /// Times that the state was saved and loaded.
    pub reloads: u64,
}

/// Every way that is tried: threads, schedules, jumping, delays, and `reloads` runs with saving
/// and loading at random epochs.
pub fn variants(reloads: u64) -> Vec<Variant> {
    let mut variants = Vec::new();
    for (index, threads) in THREADS.iter().enumerate() {
        for schedule in [Schedule::Static, Schedule::Dynamic] {
            let execution = Execution {
                threads: *threads,
                schedule,
                ..Execution::default()
            };
            variants.push(Variant {
                name: "threads",
                execution,
            });
            let delayed = Execution {
                delay_seed: Some(index as u64 + 1),
                ..execution
            };
            variants.push(Variant {
                name: "delays",
                execution: delayed,
            });
        }
        let stepping = Execution {
            threads: *threads,
            no_jumping: true,
            ..Execution::default()
        };
        variants.push(Variant {
            name: "no jumping",
            execution: stepping,
        });
    }
    for seed in 1..=reloads {
        let execution = Execution {
            threads: 1 + (seed % 2) as u32,
            reload_seed: Some(seed),
            ..Execution::default()
        };
        variants.push(Variant {
            name: "save and load",
            execution,
        });
    }
    variants
}

/// Every number of threads under both schedules, all of it `times` over: for programs whose outcome hangs
/// on who comes first, and for hosts that have other things to do.
pub fn repetitions(times: u64) -> Vec<Variant> {
    let all = variants(0);
    let plain = |variant: &&Variant| variant.name == "threads";
    let once: Vec<Variant> = all.iter().filter(plain).copied().collect();
    (0..times).flat_map(|_| once.iter().copied()).collect()
}

/// A few of the ways: one thread, two that are delayed, and one run with saving and loading.
pub fn quick_variants() -> Vec<Variant> {
    let all = variants(1);
    let chosen = |variant: &&Variant| {
        let execution = &variant.execution;
        match variant.name {
            "threads" => execution.threads == 1 && execution.schedule == Schedule::Static,
            "delays" => execution.threads == 2 && execution.schedule == Schedule::Dynamic,
            "save and load" => true,
            _ => false,
        }
    };
    all.iter().filter(chosen).copied().collect()
}

/// The program itself, so many times, with other threads each time: what a replay cannot see is
/// whether the program's own calls come in one order.
pub fn live_variants(times: u32) -> Vec<Variant> {
    let threads = THREADS.iter().copied().cycle();
    let variant = |threads| Variant {
        name: LIVE,
        execution: Execution {
            threads,
            ..Execution::default()
        },
    };
    threads.take(times as usize).map(variant).collect()
}

/// Runs the program once, recording everything, then replays it in every way, or runs it again where
/// the way says so. `told` hears of each outcome as it comes.
///
/// # Errors
/// The program could not be run or its record not be replayed.
pub fn verify(
    description: &Description,
    command: &[String],
    variants: &[Variant],
    told: impl FnMut(&Outcome),
) -> Result<(Results, Vec<Outcome>), RunError> {
    let mut first = description.clone();
    first.recording = Recording::Full;
    let reference = run_program(&first, command)?;
    let Some(folder) = &reference.folder else {
        return Err(RunError::Request("the run left no folder to replay".into()));
    };
    let record = record_of(folder);
    let live = Some((folder.as_path(), command));
    let outcomes = try_all(description, &reference, &record, live, variants, told)?;
    Ok((reference, outcomes))
}

/// Replays the record that an earlier run left, in every way; the first replay is what the others
/// are compared with, and is held itself against what the program was answered.
///
/// # Errors
/// The record cannot be replayed.
pub fn verify_record(
    description: &Description,
    record: &Path,
    variants: &[Variant],
    told: impl FnMut(&Outcome),
) -> Result<(Results, Vec<Outcome>), RunError> {
    let record = record_of(record);
    let reference = replay(description, &record)?;
    let outcomes = try_all(description, &reference, &record, None, variants, told)?;
    Ok((reference, outcomes))
}

/// Tries every way; `live` has the folder of the first run and the command of the program.
fn try_all(
    description: &Description,
    reference: &Results,
    record: &Path,
    live: Option<(&Path, &[String])>,
    variants: &[Variant],
    mut told: impl FnMut(&Outcome),
) -> Result<Vec<Outcome>, RunError> {
    let mut outcomes = Vec::new();
    for variant in variants {
        let mut description = description.clone();
        description.execution = variant.execution;
        description.progress = std::sync::Arc::default();
        let results = match live {
            Some((folder, command)) if variant.name == LIVE => {
                description.recording = Recording::None;
                description.out = Some(folder.join(format!("live-{}", outcomes.len())));
                run_program(&description, command)?
            }
            _ => replay(&description, record)?,
        };
        let outcome = Outcome {
            variant: *variant,
            digest: results.summary.digest.clone().unwrap_or_default(),
            differences: differences(reference, &results),
            wall: Duration::from_secs_f64(results.summary.host.seconds),
            reloads: results.reloads,
        };
        told(&outcome);
        outcomes.push(outcome);
    }
    Ok(outcomes)
}

/// What differs between two runs, the most telling first.
fn differences(reference: &Results, other: &Results) -> Vec<String> {
    let mut found = Vec::new();
    if reference.kernels.len() != other.kernels.len() {
        found.push(format!(
            "{} kernels instead of {}",
            other.kernels.len(),
            reference.kernels.len()
        ));
    }
    for (expected, row) in reference.kernels.iter().zip(&other.kernels) {
        if expected != row {
            found.push(format!(
                "launch {} ({}) counts otherwise",
                row.launch, row.kernel
            ));
            break;
        }
    }
    let (rows, others) = (reference.statistics.rows(), other.statistics.rows());
    for (expected, row) in rows.iter().zip(&others) {
        if expected != row {
            found.push(format!(
                "{} {}: {} instead of {}",
                row.component, row.name, row.value, expected.value
            ));
            break;
        }
    }
    let times = (
        reference.summary.totals.simulated_ns,
        other.summary.totals.simulated_ns,
    );
    if times.0 != times.1 {
        found.push(format!("{} ns instead of {} ns", times.1, times.0));
    }
    if reference.summary.digest != other.summary.digest {
        found.push("the digest".into());
    }
    // What the program was answered, and what it read.
    let known = &reference.summary.ending.problems;
    let problems = other.summary.ending.problems.iter();
    found.extend(problems.filter(|problem| !known.contains(problem)).cloned());
    found
}
