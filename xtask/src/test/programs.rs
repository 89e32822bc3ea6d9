//! CUDA programs under `lockstep run`: each verifies its own result, and its digest must not
//! depend on the number of threads or on how work is given to them.

use super::bits;
use crate::cuda::Toolkit;
use crate::simulator::{self, Run};
use crate::workloads::{self, Program, Runtime};
use crate::{frontends, process, project, readme, status};
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(180);

/// Outcomes of all checks.
pub struct Tally {
    /// Checks that passed.
    pub passed: usize,
    /// Checks that did not.
    pub failed: usize,
}

/// One check of one program.
pub struct Check {
    /// What is checked.
    pub what: String,
    /// How long it took.
    pub seconds: f64,
    /// Empty when it passed.
    pub trouble: String,
}

impl Tally {
    /// Prints a line for a check and counts it.
    pub fn add(&mut self, program: &str, check: &Check) {
        let verdict = if check.trouble.is_empty() {
            "pass"
        } else {
            "FAIL"
        };
        println!(
            "{program:<26} {:<34} {verdict} {:>7.2} s",
            check.what, check.seconds
        );
        if check.trouble.is_empty() {
            self.passed += 1;
            return;
        }
        self.failed += 1;
        for line in check.trouble.lines() {
            println!("    {line}");
        }
    }
}

/// Builds and runs the programs, prints a line for each check, and counts.
pub fn check_all(toolkit: &Toolkit, every: bool) -> Result<Tally> {
    let programs: Vec<Program> = workloads::all()?
        .into_iter()
        .filter(|program| every || program.is("core") || program.is("litmus"))
        .collect();
    println!("{} programs, compiled with plain nvcc", programs.len());
    let mut tally = Tally {
        passed: 0,
        failed: 0,
    };
    for (program, checks) in programs
        .iter()
        .zip(process::in_parallel(&programs, |program| {
            check_program(toolkit, program)
        }))
    {
        for check in checks {
            tally.add(&program.name, &check);
        }
    }
    tally.add(RACES, &check_races(toolkit));
    // Empty unless a run was cut off; its folder then is the only trace of it.
    let _ = std::fs::remove_dir(project::local().join("runs"));
    Ok(tally)
}

/// README's first example, and the programs that `docs/status.md` says cannot run.
pub fn check_readme(toolkit: &Toolkit, tally: &mut Tally) -> Result<()> {
    let begin = process::now();
    let trouble = readme::example::check(toolkit).unwrap_or_else(|error| format!("{error:#}"));
    tally.add(
        readme::PATH,
        &Check {
            what: "its example".into(),
            seconds: begin.elapsed().as_secs_f64(),
            trouble,
        },
    );
    for (program, trouble, time) in status::load()?.check_programs(toolkit) {
        tally.add(
            &program,
            &Check {
                what: "is refused as docs/status.toml says".into(),
                seconds: time.as_secs_f64(),
                trouble,
            },
        );
    }
    Ok(())
}

/// A way to run a program; those of one group must agree on the digest.
struct Way {
    gpu: &'static str,
    runtime: Runtime,
    mode: &'static str,
    threads: &'static str,
    schedule: &'static str,
    /// Machine code, with its control bits, memory, races and barriers checked: plain nvcc makes it for sm_75, and its
    /// PTX is assembled for others. Otherwise PTX, where a program has any.
    native: bool,
    /// Small sizes.
    small: bool,
}

/// Every cycle costs more than a value: timing runs take the small size.
const WAYS: &[Way] = &[
    Way {
        gpu: "h200",
        runtime: Runtime::Static,
        mode: "functional",
        threads: "1",
        schedule: "static",
        native: false,
        small: false,
    },
    Way {
        gpu: "h200",
        runtime: Runtime::Static,
        mode: "functional",
        threads: "3",
        schedule: "dynamic",
        native: false,
        small: false,
    },
    Way {
        gpu: "h200",
        runtime: Runtime::Static,
        mode: "timing",
        threads: "1",
        schedule: "static",
        native: false,
        small: true,
    },
    Way {
        gpu: "h200",
        runtime: Runtime::Static,
        mode: "timing",
        threads: "2",
        schedule: "dynamic",
        native: false,
        small: true,
    },
    Way {
        gpu: "h200",
        runtime: Runtime::Shared,
        mode: "functional",
        threads: "2",
        schedule: "auto",
        native: false,
        small: false,
    },
    Way {
        gpu: "rtx2060",
        runtime: Runtime::Static,
        mode: "functional",
        threads: "2",
        schedule: "auto",
        native: true,
        small: false,
    },
    // Machine code of the oldest and of a newer GPU, which the project's assemblers make from PTX.
    Way {
        gpu: "v100",
        runtime: Runtime::Static,
        mode: "functional",
        threads: "2",
        schedule: "auto",
        native: true,
        small: true,
    },
    Way {
        gpu: "a100",
        runtime: Runtime::Static,
        mode: "functional",
        threads: "2",
        schedule: "auto",
        native: true,
        small: true,
    },
];

fn check_program(toolkit: &Toolkit, program: &Program) -> Vec<Check> {
    // Digests so far.
    let mut digests: Vec<(&Way, String)> = Vec::new();
    let mut checks = Vec::new();
    for way in WAYS {
        // A program of the driver API has no runtime to share.
        if way.runtime == Runtime::Shared && (!program.links.is_empty() || program.is("litmus")) {
            continue;
        }
        if way.native && !frontends::meets_needs(program, way.gpu) {
            continue;
        }
        let code = if way.native { " machine code" } else { "" };
        let what = format!(
            "{} {:?} {} {} threads{code}",
            way.gpu, way.runtime, way.mode, way.threads
        )
        .to_lowercase();
        let begin = process::now();
        let trouble = match program.build(toolkit, way.runtime) {
            Ok(executable) => run_one_way(program, &executable, way, &mut digests),
            Err(error) => format!("{error:#}"),
        };
        checks.push(Check {
            what,
            seconds: begin.elapsed().as_secs_f64(),
            trouble,
        });
    }
    checks
}

/// The program with data races, sums of floats in any order, and spin locks.
const RACES: &str = "data_race";

/// Repeats it with all numbers of threads while other processes want the processors. The whole of it, fifty
/// times, is `lockstep verify --repeat 50 --load 4`.
fn check_races(toolkit: &Toolkit) -> Check {
    let begin = process::now();
    let attempt = || -> Result<String> {
        let program = workloads::named(RACES)?;
        let executable = program.build(toolkit, Runtime::Static)?;
        let folder = simulator::scratch_folder();
        let mut command = simulator::lockstep(&["verify", "--mode", "timing", "--repeat", "2"]);
        command.args(program.as_ptx());
        command.args(["--load", "4", "--out"]).arg(&folder);
        command.arg("--").arg(executable).args(&program.small);
        let output = process::capture(&mut command, LIMIT)?;
        // Left behind, it would only cost space.
        let _ = std::fs::remove_dir_all(&folder);
        let agreed = output.out.contains("all 20 ways gave the digest");
        Ok(if output.success() && agreed {
            String::new()
        } else {
            format!("exit code {:?}\n{}", output.code, output.tail(30))
        })
    };
    Check {
        what: "20 repetitions under load".into(),
        trouble: attempt().unwrap_or_else(|error| format!("{error:#}")),
        seconds: begin.elapsed().as_secs_f64(),
    }
}

/// What went wrong, or nothing.
fn run_one_way(
    program: &Program,
    executable: &PathBuf,
    way: &'static Way,
    digests: &mut Vec<(&'static Way, String)>,
) -> String {
    let mut options = vec![
        "--gpu",
        way.gpu,
        "--mode",
        way.mode,
        "--threads",
        way.threads,
        "--schedule",
        way.schedule,
    ];
    if way.native {
        // The driver's own program brings PTX, which a driver assembles.
        options.extend([
            "--frontend",
            "sass",
            "--assemble",
            "--check",
            "control-bits,all",
        ]);
    } else {
        options.extend(program.as_ptx());
    }
    let gpus = program.gpus.map(|gpus| gpus.to_string());
    if let Some(gpus) = &gpus {
        options.extend(["--gpus", gpus]);
    }
    let arguments: &[String] = if way.small { &program.small } else { &[] };
    let run = match simulator::run(&options, Path::new(executable), arguments, LIMIT) {
        Ok(run) => run,
        Err(error) => return format!("{error:#}"),
    };
    let verdict = verdict(program, &run);
    if !verdict.is_empty() {
        return verdict;
    }
    if way.gpu == bits::GPU {
        let trouble = bits::check(&program.name, arguments, &run.output.out)
            .unwrap_or_else(|error| format!("{error:#}"));
        if !trouble.is_empty() {
            return trouble;
        }
    }
    let Some(digest) = run.summary.and_then(|summary| summary.digest) else {
        return "the run left no digest in summary.json".into();
    };
    let kind = |way: &Way| (way.gpu, way.runtime, way.mode, way.native);
    for (earlier, other) in digests.iter() {
        if kind(earlier) == kind(way) && *other != digest {
            return format!("digest {digest}, but {other} with another number of threads");
        }
    }
    digests.push((way, digest));
    String::new()
}

/// Nothing if the program ended with 0 and said that it passed.
fn verdict(program: &Program, run: &Run) -> String {
    if run.verifies(&program.name) {
        return String::new();
    }
    format!("exit code {:?}\n{}", run.output.code, run.output.tail(8))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Output;

    fn run_that_said(out: &str, code: i32) -> Run {
        Run {
            output: Output {
                code: Some(code),
                out: out.into(),
                err: String::new(),
                processor: Duration::ZERO,
            },
            summary: None,
        }
    }

    #[test]
    fn a_program_passes_only_with_its_own_verdict_and_exit_code_0() {
        let program = workloads::named("bfs").expect("bfs");
        assert_eq!(
            verdict(&program, &run_that_said("PASS bfs 3 nodes\n", 0)),
            ""
        );
        for (out, code) in [
            ("PASS bfs 3 nodes\n", 1),
            ("FAIL bfs 3 nodes\n", 0),
            ("PASS bfs_other\n", 0),
            ("", 0),
        ] {
            assert_ne!(
                verdict(&program, &run_that_said(out, code)),
                "",
                "{out} {code}"
            );
        }
    }

    #[test]
    fn the_core_set_has_the_runtime_and_the_driver_api() {
        let core: Vec<Program> = workloads::all()
            .expect("table")
            .into_iter()
            .filter(|program| program.is("core"))
            .collect();
        assert!(core.len() >= 10);
        assert!(core.iter().any(|program| !program.links.is_empty()));
    }
}
