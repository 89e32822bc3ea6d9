//! `cargo xtask validate --clients`: packages of Python that call CUDA, each in an environment of its own,
//! with checks of ours whose results numpy knows.
//!
//! `clients/table.rs` says which there are, `clients/verdict.rs` reads what their scripts say. The scripts
//! are in `validation/clients`. Downloads are gigabytes, so no stage of `cargo xtask test` runs this.

mod table;
mod verdict;

use crate::cuda::Missing;
use crate::virtual_environment::VirtualEnvironment;
use crate::{packages, process, project, simulator};
use anyhow::{Result, bail};
use std::path::Path;
use std::process::Command;
use std::time::Duration;
use table::Client;
use verdict::{Outcome, Verdict};

/// Longer than any client takes on a busy machine of two cores.
const LIMIT: Duration = Duration::from_secs(3600);

/// Lines of a failed run that are shown.
const TAIL: usize = 12;

/// What one client came to.
struct Row {
    client: String,
    version: String,
    checks: usize,
    passed: usize,
    seconds: f64,
    /// Checks, or the whole client, that are known to lack something: name and reason.
    lacking: Vec<String>,
    /// What went wrong; none where all is well.
    problems: Vec<String>,
}

/// Runs the named clients, or all; `checks` are names of single ones.
pub fn run(gpu: &str, names: &[String], checks: &[String]) -> Result<()> {
    let clients = table::chosen(table::all()?, names)?;
    simulator::build_with_tools()?;
    let mut rows = Vec::new();
    for client in &clients {
        rows.push(run_client(gpu, client, checks)?);
    }
    println!("\n{}", shown(&rows));
    let failed: Vec<&str> = rows
        .iter()
        .filter(|row| !row.problems.is_empty())
        .map(|row| row.client.as_str())
        .collect();
    if !failed.is_empty() {
        bail!("clients that failed: {}", failed.join(", "));
    }
    Ok(())
}

/// Installs and runs one.
fn run_client(gpu: &str, client: &Client, checks: &[String]) -> Result<Row> {
    let environment = VirtualEnvironment::at(client.environment());
    install(client, &environment)?;
    process::step(&format!("{}: {}", client.name, client.script));
    let start = process::now();
    let options = ["--gpu", gpu, "--mode", "functional"];
    let arguments = arguments(client, &environment, checks)?;
    let output = if client.alone {
        process::capture(&mut with_package(&arguments), LIMIT)?
    } else {
        simulator::run(&options, Path::new("/usr/bin/env"), &arguments, LIMIT)?.output
    };
    let seconds = start.elapsed().as_secs_f64();
    print!("{}", output.out);
    let verdict = verdict::read(&output.out);
    Ok(judge(client, checks.is_empty(), verdict, &output, seconds))
}

/// A script by itself, which finds the Python package and the command of this tree.
fn with_package(arguments: &[String]) -> Command {
    let mut command = process::command("/usr/bin/env");
    command
        .args(arguments)
        .env("PYTHONPATH", project::root().join("python/src"))
        .env("LOCKSTEP", simulator::executable())
        .env("LOCKSTEP_CACHE", project::local().join("cache"));
    command
}

fn install(client: &Client, environment: &VirtualEnvironment) -> Result<()> {
    let requirements = client.packages.join("\n");
    if environment.holds(&requirements) {
        return Ok(());
    }
    packages::need(&[packages::CXX, packages::VENV])?;
    process::step(&format!(
        "installing {} packages into {}",
        client.packages.len(),
        project::shown(environment.folder())
    ));
    environment
        .install(&requirements)
        .map_err(|missing| match missing {
            Missing::Index(reason) => anyhow::anyhow!("{}: {reason}", client.name),
            Missing::Machine(error) => error,
        })
}

/// What `env` starts: the interpreter with the script. Caches and temporary files of clients stay in the
/// environment's folder.
fn arguments(
    client: &Client,
    environment: &VirtualEnvironment,
    checks: &[String],
) -> Result<Vec<String>> {
    let home = environment.folder().join("home");
    std::fs::create_dir_all(&home)?;
    let script = table::folder().join(&client.script);
    let mut arguments = vec![
        format!("HOME={}", home.display()),
        format!("TMPDIR={}", home.display()),
        environment.python().display().to_string(),
        "-B".into(),
        "-Wignore".into(),
        script.display().to_string(),
    ];
    arguments.extend_from_slice(checks);
    Ok(arguments)
}

/// Holds what a script said against what the table says; `whole` is a run of all checks.
fn judge(
    client: &Client,
    whole: bool,
    verdict: Result<Verdict>,
    output: &process::Output,
    seconds: f64,
) -> Row {
    let mut row = Row {
        client: client.name.clone(),
        version: "-".into(),
        checks: client.checks,
        passed: 0,
        seconds,
        lacking: Vec::new(),
        problems: Vec::new(),
    };
    if let Ok(verdict) = &verdict {
        row.version.clone_from(&verdict.version);
        row.checks = verdict.checks.len();
        row.passed = verdict.passed();
    }
    if let Some(lacks) = &client.lacks {
        let said = format!("{}{}", output.out, output.err);
        if row.passed > 0 || !said.contains(&lacks.says) {
            let tail = output.tail(TAIL);
            row.problems.push(format!(
                "it no longer fails with `{}`; mend its entry in clients.toml\n{tail}",
                lacks.says
            ));
        }
        row.lacking.push(lacks.why.clone());
        return row;
    }
    let verdict = match verdict {
        Ok(verdict) => verdict,
        Err(error) => {
            row.problems.push(format!("{error}\n{}", output.tail(TAIL)));
            return row;
        }
    };
    for (name, outcome) in &verdict.checks {
        match outcome {
            Outcome::Passed => {}
            Outcome::Failed(why) => row.problems.push(format!("{name}: {why}")),
            Outcome::Lacks(why) => row.lacking.push(format!("{name}: {why}")),
        }
    }
    if whole && verdict.checks.len() != client.checks {
        row.problems.push(format!(
            "{} checks ran, clients.toml says {}",
            verdict.checks.len(),
            client.checks
        ));
    }
    if row.problems.is_empty() && !output.success() {
        let code = output
            .code
            .map_or("a signal".into(), |code| code.to_string());
        row.problems.push(format!(
            "every check passed and the run ended with {code}\n{}",
            output.tail(TAIL)
        ));
    }
    row
}

/// The table, and below it what lacks and what failed.
fn shown(rows: &[Row]) -> String {
    use std::fmt::Write as _;
    let mut text = format!(
        "{:<16} {:>12} {:>7} {:>7} {:>7} {:>8}\n",
        "client", "version", "checks", "passed", "lacking", "seconds"
    );
    for row in rows {
        let _ = writeln!(
            text,
            "{:<16} {:>12} {:>7} {:>7} {:>7} {:>8.1}",
            row.client,
            row.version,
            row.checks,
            row.passed,
            row.lacking.len(),
            row.seconds
        );
    }
    for row in rows {
        for reason in &row.lacking {
            let _ = writeln!(text, "{} lacks: {reason}", row.client);
        }
        for problem in &row.problems {
            let _ = writeln!(text, "{} FAILED: {problem}", row.client);
        }
    }
    text
}

#[cfg(test)]
mod tests;
