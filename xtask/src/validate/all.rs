//! `cargo xtask validate --all`: every figure of the pages from one build.
//!
//! Each step makes one table. `validation/tables.csv` says which commit made which; `cargo xtask test` refuses one that
//! names two, or another than the newest of `validation/history.csv`.

use super::programs;
use crate::{cuda, process, project, simulator};
use anyhow::{Context, Result, bail, ensure};
use lockstep_correlation::history;
use std::fmt::Write as _;
use std::path::Path;

/// Which commit made which table.
const MANIFEST: &str = "validation/tables.csv";

/// Programs of studies that nvcc compiles, by source, and where their table goes. Each script takes command and program.
const STUDIES: &[(&str, &[&str], &str)] = &[
    (
        "studies/ranking/ranking.cu",
        &["studies/ranking/rank.py", "{lockstep}", "{program}"],
        "studies/ranking/obtained.csv",
    ),
    (
        "studies/ranking/further.cu",
        &[
            "studies/ranking/rank.py",
            "{lockstep}",
            "{program}",
            "--hardware=validation/hardware/h200/ranking_further.csv",
        ],
        "studies/ranking/obtained_further.csv",
    ),
    (
        "validation/microbench/scenarios.cu",
        &[
            "validation/compare_scenarios.py",
            "--lockstep={lockstep}",
            "--program={program}",
        ],
        "validation/scenarios-h200.csv",
    ),
];

/// Makes all tables; programs and simulator are built, and `commit` is what they are built from.
pub fn run(gpu: &str, commit: &str) -> Result<()> {
    let mut made = vec!["validation/history.csv"];
    for state in ["cold", "as-run"] {
        for size in ["default", "medium"] {
            process::step(&format!("Cycles, {state}, {size}"));
            let words = [
                "correlate",
                "--gpu",
                gpu,
                "--state",
                state,
                "--size",
                size,
                "--programs=calibration",
                "--programs=development",
                "--commit",
                commit,
                "--history=validation/history.csv",
            ];
            // A count that differs ends it with 1; the row is written all the same.
            let status = simulator::lockstep(&words).status()?;
            ensure!(
                matches!(status.code(), Some(0 | 1)),
                "lockstep correlate ended with {status}"
            );
        }
    }
    for (source, words, table) in STUDIES {
        process::step(&format!("Making {table}"));
        let program = compiled(source)?;
        let mut command = process::command("python3");
        for word in *words {
            let word = word.replace("{lockstep}", &simulator::executable().to_string_lossy());
            command.arg(word.replace("{program}", &program.to_string_lossy()));
        }
        // A study that falls below its bound says so and ends with 1; its table is written all the same.
        let status = command.arg(format!("--write={table}")).status()?;
        ensure!(
            matches!(status.code(), Some(0 | 1)),
            "{source} ended with {status}"
        );
        made.push(table);
    }
    let name = commit.split(':').next().unwrap_or(commit);
    let mut manifest = String::from("table,commit\n");
    for table in made {
        writeln!(manifest, "{table},{name}")?;
    }
    std::fs::write(project::root().join(MANIFEST), manifest).context(MANIFEST)
}

/// Compiles a program of a study, as hardware ran it.
fn compiled(source: &str) -> Result<std::path::PathBuf> {
    let toolkit = cuda::required()?;
    let name = Path::new(source).file_stem().context("a source")?;
    let program = programs().join(name);
    process::run(
        process::command(toolkit.nvcc())
            .args(["-O3", "-std=c++17", "-arch=sm_90", source, "-o"])
            .arg(&program),
    )?;
    Ok(program)
}

/// Refuses tables that several builds made.
pub fn check() -> Result<()> {
    let text = std::fs::read_to_string(project::root().join(MANIFEST)).context(MANIFEST)?;
    let rows = history::load(&project::root().join("validation/history.csv"))?;
    let newest = rows.last().context("an empty history")?;
    one_build(&text, &newest.commit)
}

fn one_build(manifest: &str, newest: &str) -> Result<()> {
    for row in manifest.lines().skip(1) {
        let (table, commit) = row.split_once(',').with_context(|| row.to_owned())?;
        if commit != newest {
            bail!(
                "{MANIFEST}: {table} was made by {commit}, the newest figures by {newest}; make them with `cargo xtask validate --all`"
            );
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_of_two_builds_are_refused() {
        assert!(one_build("table,commit\na.csv,abc\nb.csv,abc\n", "abc").is_ok());
        let error = one_build("table,commit\na.csv,abc\nb.csv,def\n", "abc").expect_err("mixed");
        assert!(error.to_string().contains("b.csv was made by def"));
    }
}
