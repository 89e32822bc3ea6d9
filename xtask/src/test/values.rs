//! Values: kernels that once had another result here than on an H200, against what an H200 prints.
//!
//! `validation/values/known.cu` has them all. It is compiled optimised, for a debugger and without optimisation, and
//! runs in both modes, as machine code and as PTX. Lanes that part are held to tables of who was with whom, and random
//! programs to the values that an H200 gave.

use super::conformance::first_difference;
use super::programs::{Check, Tally};
use crate::cuda::Toolkit;
use crate::{process, project, random_programs, simulator};
use anyhow::{Context, Result, bail};
use std::path::PathBuf;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(300);

/// Compilations of the program: a name and nvcc's options.
const COMPILED: [(&str, &[&str]); 3] = [
    ("optimised", &["-O3"]),
    ("debug", &["-G"]),
    ("unoptimised", &["-O3", "-Xptxas", "-O0"]),
];

/// Options of `lockstep run` with which it runs.
const RUNS: [&[&str]; 3] = [
    &["--mode", "functional"],
    &["--mode", "timing"],
    &["--mode", "functional", "--frontend", "ptx"],
];

/// Programs of `validation/microbench` that say which lanes are together: mode, and lines of their tables that differ.
const LANES: [(&str, &str, usize); 2] = [
    ("yield_in_calls", "functional", 0),
    ("barrier_parts", "timing", 20),
];

/// Random programs of those recorded, of 16 kernels each.
const RANDOM_PROGRAMS: &str = "19";

/// Compiles and runs it every way, prints a line for each, and counts.
pub fn check_all(toolkit: &Toolkit) -> Result<Tally> {
    let recorded = project::root().join("validation/values/known.txt");
    let recorded = std::fs::read_to_string(&recorded)
        .with_context(|| format!("cannot read {}", project::shown(&recorded)))?;
    println!("Values that an H200 gave");
    let mut tally = Tally {
        passed: 0,
        failed: 0,
    };
    let all = process::in_parallel(&COMPILED, |(name, options)| {
        check_compiled(toolkit, name, options, &recorded)
    });
    for ((name, _), checks) in COMPILED.iter().zip(all) {
        for check in checks {
            tally.add(name, &check);
        }
    }
    for (name, mode, differ) in LANES {
        tally.add(name, &check_lanes(toolkit, name, mode, differ));
    }
    tally.add("random programs", &check_random(toolkit));
    Ok(tally)
}

/// Holds a program to its table of lanes.
fn check_lanes(toolkit: &Toolkit, name: &str, mode: &str, differ: usize) -> Check {
    let begin = process::now();
    let compare = || -> Result<String> {
        let table = format!("validation/hardware/h200/{name}.txt");
        let recorded = std::fs::read_to_string(project::root().join(&table))
            .with_context(|| format!("cannot read {table}"))?;
        let source = format!("validation/microbench/{name}.cu");
        let executable = build(toolkit, name, &["-O3"], &source)?;
        let options = ["--record", "none", "--mode", mode];
        let run = simulator::run(&options, &executable, &[], LIMIT)?;
        let (real, simulated) = (groups(&recorded), groups(&run.output.out));
        let wrong: Vec<_> = real
            .iter()
            .zip(&simulated)
            .filter(|(a, b)| a != b)
            .collect();
        Ok(if real.len() != simulated.len() {
            format!("{} lines instead of {}", simulated.len(), real.len())
        } else if wrong.len() > differ {
            format!("{} lines differ, first {:?}", wrong.len(), wrong[0])
        } else {
            String::new()
        })
    };
    let trouble = compare().unwrap_or_else(|error| format!("{error:#}"));
    Check {
        what: format!("lanes --mode {mode}"),
        seconds: begin.elapsed().as_secs_f64(),
        trouble,
    }
}

/// Lines without times: who was with whom.
fn groups(table: &str) -> Vec<String> {
    let telling = |line: &&str| {
        !line.starts_with('#') && !line.starts_with("sum") && !line.contains(" after ")
    };
    let timeless = |word: &str| word.split('@').next().unwrap_or(word).to_owned();
    let lines = table.lines().filter(telling);
    lines
        .map(|line| line.split(' ').map(timeless).collect::<Vec<_>>().join(" "))
        .collect()
}

/// Holds random programs to recorded values.
fn check_random(toolkit: &Toolkit) -> Check {
    let begin = process::now();
    let golden = random_programs::recorded();
    let golden = golden.to_string_lossy();
    let arguments = ["--golden", &*golden, "--programs", RANDOM_PROGRAMS];
    let trouble = random_programs::check(toolkit, &arguments);
    Check {
        what: format!("{RANDOM_PROGRAMS} programs"),
        seconds: begin.elapsed().as_secs_f64(),
        trouble: trouble.map_or_else(|error| format!("{error:#}"), |()| String::new()),
    }
}

fn check_compiled(toolkit: &Toolkit, name: &str, options: &[&str], recorded: &str) -> Vec<Check> {
    let begin = process::now();
    let built = build(
        toolkit,
        &format!("known-{name}"),
        options,
        "validation/values/known.cu",
    );
    RUNS.iter()
        .map(|options| {
            let run = built.as_ref().map_err(|error| format!("{error:#}"));
            let said = run.and_then(|executable| {
                let run = [&["--record", "none"], *options].concat();
                simulator::run(&run, executable, &[], LIMIT).map_err(|error| format!("{error:#}"))
            });
            Check {
                what: format!("values {}", options.join(" ")),
                seconds: begin.elapsed().as_secs_f64(),
                trouble: said.map_or_else(
                    |error| error,
                    |run| first_difference(recorded, &run.output.out, |_, _| false),
                ),
            }
        })
        .collect()
}

fn build(toolkit: &Toolkit, name: &str, options: &[&str], source: &str) -> Result<PathBuf> {
    let folder = project::local().join("values");
    std::fs::create_dir_all(&folder)?;
    let executable = folder.join(name);
    let mut nvcc = process::command(toolkit.nvcc());
    nvcc.args(["-std=c++17", "-arch=sm_90"])
        .args(options)
        .arg(project::root().join(source))
        .arg("-o")
        .arg(&executable);
    let output = process::capture(&mut nvcc, LIMIT)?;
    if !output.success() {
        bail!("nvcc refuses {source}:\n{}", output.tail(12));
    }
    Ok(executable)
}
