//! `cargo xtask bench --against COMMIT`: is this tree as fast as that commit?
//!
//! Both are built on this machine and run the same executables in pairs: this, that, that, this, … so that a machine
//! which slows down meanwhile slows both down. What counts is processor time, which other programs on the machine
//! change less than wall time. A ratio above 1 says that this tree is faster.

use super::statistics::{Estimate, Interval};
use super::{Case, cases};
use crate::simulator::{self, Run};
use crate::{process, project};
use anyhow::{Context, Result, bail};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

/// What is compared, and how.
pub struct Comparison<'a> {
    /// The other commit, as git knows it.
    pub commit: &'a str,
    /// How many pairs of runs each program and mode gets.
    pub pairs: u32,
    /// The least ratio that the interval over all must reach.
    pub bound: Option<f64>,
    /// Modes to time.
    pub modes: &'a [String],
    /// Worker threads of both.
    pub threads: u32,
    /// Only programs whose name contains this.
    pub only: &'a str,
}

/// The two times of a run, in seconds of a processor.
#[derive(Clone, Copy)]
struct Times {
    /// While kernels were simulated.
    simulating: f64,
    /// From start to end, the CUDA program with it.
    process: f64,
}

/// The ratios of a program in a mode.
struct Ratios {
    simulating: Estimate,
    process: Estimate,
    same_digest: bool,
}

/// Builds both, compares, prints; the code says whether the bound was reached.
pub fn run(comparison: &Comparison) -> Result<ExitCode> {
    let cases = cases(comparison.only)?;
    let that = build_other(comparison.commit)?;
    simulator::build()?;
    let this = simulator::executable();
    process::step(&format!(
        "Speed of this tree over that of {}, {} pairs of runs, by processor time with 95 % intervals",
        comparison.commit, comparison.pairs
    ));
    println!(
        "{:<18} {:<11} {:>24} {:>24}  digest",
        "program", "mode", "simulating", "whole process"
    );
    let mut all = Vec::new();
    for case in &cases {
        for mode in comparison.modes {
            let ratios = compare(comparison, case, mode, &this, &that)?;
            print_row(case.name, mode, &ratios);
            all.push(ratios);
        }
    }
    verdict(&all, comparison.bound)
}

/// Runs the pairs of one program in one mode.
fn compare(
    comparison: &Comparison,
    case: &Case,
    mode: &str,
    this: &Path,
    that: &Path,
) -> Result<Ratios> {
    let threads = comparison.threads.to_string();
    let options = [&["--mode", mode, "--threads", &threads], case.frontend].concat();
    let run = |lockstep: &Path| -> Result<(Times, Option<String>)> {
        let run = simulator::run_by(
            lockstep,
            &options,
            &case.executable,
            &case.arguments,
            Duration::from_secs(600),
        )?;
        let name = format!("{} ({mode}) under {}", case.name, project::shown(lockstep));
        times(&run).with_context(|| name)
    };
    // The first run of each fills the host's caches and is not counted.
    let (_, digest) = run(this)?;
    let (_, other_digest) = run(that)?;
    let (mut simulating, mut whole) = (Vec::new(), Vec::new());
    for pair in 0..comparison.pairs {
        let (ours, theirs) = if pair % 2 == 0 {
            let ours = run(this)?.0;
            (ours, run(that)?.0)
        } else {
            let theirs = run(that)?.0;
            (run(this)?.0, theirs)
        };
        simulating.push(theirs.simulating / ours.simulating);
        whole.push(theirs.process / ours.process);
    }
    let estimate = |ratios: &[f64]| {
        Estimate::of(ratios).with_context(|| format!("{} ({mode}) took no time at all", case.name))
    };
    Ok(Ratios {
        simulating: estimate(&simulating)?,
        process: estimate(&whole)?,
        same_digest: digest == other_digest,
    })
}

/// What a run took, and its digest; a run that failed has no times.
fn times(run: &Run) -> Result<(Times, Option<String>)> {
    if !run.output.success() {
        bail!("the run failed:\n{}", run.output.tail(6));
    }
    let summary = run
        .summary
        .as_ref()
        .context("the run left no summary.json")?;
    let simulating = summary.host.processor_seconds.context(
        "summary.json has no host.processor_seconds; the commit is too old to compare with",
    )?;
    let times = Times {
        simulating,
        process: run.output.processor.as_secs_f64(),
    };
    Ok((times, summary.digest.clone()))
}

fn print_row(name: &str, mode: &str, ratios: &Ratios) {
    println!(
        "{name:<18} {mode:<11} {:>24} {:>24}  {}",
        ratios.simulating.interval().to_string(),
        ratios.process.interval().to_string(),
        if ratios.same_digest {
            "same"
        } else {
            "differs"
        }
    );
}

/// The last lines: over all programs and modes, and whether both intervals reach the bound.
fn verdict(all: &[Ratios], bound: Option<f64>) -> Result<ExitCode> {
    let over_all = |of: fn(&Ratios) -> Estimate| -> Result<Interval> {
        let parts: Vec<Estimate> = all.iter().map(of).collect();
        Ok(Estimate::mean_of(&parts)
            .context("no program was compared")?
            .interval())
    };
    let simulating = over_all(|ratios| ratios.simulating)?;
    let whole = over_all(|ratios| ratios.process)?;
    println!(
        "{:<18} {:<11} {:>24} {:>24}",
        "all",
        "",
        simulating.to_string(),
        whole.to_string()
    );
    let Some(bound) = bound else {
        return Ok(ExitCode::SUCCESS);
    };
    if simulating.reaches(bound) && whole.reaches(bound) {
        println!("Passed: both intervals over all reach {bound}");
        return Ok(ExitCode::SUCCESS);
    }
    println!("Failed: an interval over all lies below {bound}");
    Ok(ExitCode::FAILURE)
}

/// Checks the commit out into a worktree of its own and builds it into a target folder of its own. Both are kept, so
/// that the next comparison builds only what differs.
fn build_other(commit: &str) -> Result<PathBuf> {
    let folder = project::local().join("against");
    let source = folder.join("source");
    let hash = process::git(&["rev-parse", "--verify", &format!("{commit}^{{commit}}")])
        .with_context(|| format!("`{commit}` names no commit"))?;
    if source.join(".git").exists() {
        let inside = source.display().to_string();
        process::git(&[
            "-C", &inside, "checkout", "--quiet", "--detach", "--force", &hash,
        ])?;
    } else {
        std::fs::create_dir_all(&folder)?;
        process::git(&["worktree", "prune"])?;
        let path = source.display().to_string();
        process::git(&["worktree", "add", "--quiet", "--detach", &path, &hash])?;
    }
    process::step(&format!("Building {commit} in {}", project::shown(&source)));
    let target = folder.join("target");
    process::run(
        simulator::build_command()
            .current_dir(&source)
            .env("CARGO_TARGET_DIR", &target),
    )?;
    Ok(target.join("release/lockstep"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ratios(ratio: f64) -> Ratios {
        let estimate = Estimate::of(&[ratio * 0.99, ratio * 1.01, ratio]).expect("three pairs");
        Ratios {
            simulating: estimate,
            process: estimate,
            same_digest: true,
        }
    }

    fn code(found: Result<ExitCode>) -> String {
        format!("{:?}", found.expect("a verdict"))
    }

    #[test]
    fn a_bound_that_no_interval_reaches_fails() {
        let passed = format!("{:?}", ExitCode::SUCCESS);
        assert_eq!(
            code(verdict(&[ratios(1.0), ratios(0.97)], Some(0.98))),
            passed
        );
        assert_ne!(
            code(verdict(&[ratios(0.9), ratios(0.9)], Some(0.98))),
            passed
        );
        assert_eq!(code(verdict(&[ratios(0.9), ratios(0.9)], None)), passed);
    }

    #[test]
    fn nothing_compared_is_an_error() {
        assert!(verdict(&[], None).is_err());
    }

    #[test]
    fn a_name_that_git_does_not_know_is_refused() {
        let error = build_other("no-such-commit").expect_err("refused");
        assert!(format!("{error:#}").contains("no-such-commit"), "{error:#}");
    }
}
