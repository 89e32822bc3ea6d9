//! `cargo xtask bench --record`: the speed that `docs/status.md` tells, with the machine and the commit it was measured on.

use super::Figures;
use crate::{process, project};
use anyhow::{Context, Result, bail};
use std::fmt::Write;

/// Where the record is.
pub const PATH: &str = "validation/speed.csv";

const HEAD: &str = "# Speed of the simulator by `cargo xtask bench --record`: the best of several runs, by processor time while\n\
    # simulating. It is about one machine and no part of any digest.\n";
const COLUMNS: &str = "date,commit,processor,program,arguments,mode,threads,warp_instructions,warp_instructions_per_second,cycles_per_second,peak_memory_bytes";

/// One program, mode and number of threads.
#[derive(Clone, Debug, PartialEq)]
pub struct Measured {
    /// Name of the workload.
    pub program: String,
    /// Its arguments.
    pub arguments: String,
    /// `functional` or `timing`.
    pub mode: String,
    /// Worker threads.
    pub threads: u32,
    /// What was simulated, and how fast.
    pub figures: Figures,
}

/// A row of the record.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// When, as the commit is dated.
    pub date: String,
    /// The commit that was measured.
    pub commit: String,
    /// The host's processor.
    pub processor: String,
    /// What was measured.
    pub measured: Measured,
}

/// Replaces the record by these rows.
pub fn write(measured: &[Measured]) -> Result<()> {
    let commit = process::git(&["log", "-1", "--format=%h,%cs"])?;
    let (commit, date) = commit.split_once(',').context("git log")?;
    if !process::git(&["status", "--porcelain", "--", "crates", "configs"])?.is_empty() {
        bail!("crates/ or configs/ hold changes that no commit names; commit them before --record");
    }
    let processor = processor(&std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default());
    let mut text = format!("{HEAD}{COLUMNS}\n");
    for one in measured {
        let figures = &one.figures;
        writeln!(
            text,
            "{date},{commit},{processor},{},{},{},{},{},{:.0},{},{}",
            one.program,
            one.arguments,
            one.mode,
            one.threads,
            figures.instructions,
            figures.per_second,
            figures
                .cycles_per_second
                .map_or(String::new(), |cycles| format!("{cycles:.0}")),
            figures.peak_memory
        )?;
    }
    std::fs::write(project::root().join(PATH), text).with_context(|| PATH)?;
    println!("wrote {PATH}");
    Ok(())
}

/// The rows of the record.
pub fn load() -> Result<Vec<Row>> {
    parse(&std::fs::read_to_string(project::root().join(PATH)).with_context(|| PATH)?)
}

fn parse(text: &str) -> Result<Vec<Row>> {
    let mut lines = text.lines().filter(|line| !line.starts_with('#'));
    if lines.next() != Some(COLUMNS) {
        bail!("{PATH} must begin with the columns {COLUMNS}");
    }
    lines.map(row).collect()
}

fn row(line: &str) -> Result<Row> {
    let cells: Vec<&str> = line.split(',').collect();
    let [
        date,
        commit,
        processor,
        program,
        arguments,
        mode,
        threads,
        instructions,
        per_second,
        cycles,
        memory,
    ] = cells[..]
    else {
        bail!("{PATH}: {} cells in `{line}`, not 11", cells.len());
    };
    Ok(Row {
        date: date.into(),
        commit: commit.into(),
        processor: processor.into(),
        measured: Measured {
            program: program.into(),
            arguments: arguments.into(),
            mode: mode.into(),
            threads: threads.parse().with_context(|| line.to_string())?,
            figures: Figures {
                instructions: instructions.parse().with_context(|| line.to_string())?,
                per_second: per_second.parse().with_context(|| line.to_string())?,
                cycles_per_second: match cycles {
                    "" => None,
                    cycles => Some(cycles.parse().with_context(|| line.to_string())?),
                },
                peak_memory: memory.parse().with_context(|| line.to_string())?,
            },
        },
    })
}

/// The processor's name from `/proc/cpuinfo`, without what would break a cell.
fn processor(information: &str) -> String {
    information
        .lines()
        .find_map(|line| line.strip_prefix("model name"))
        .and_then(|rest| rest.split_once(':'))
        .map_or("unknown".into(), |(_, name)| name.trim().replace(',', ";"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let text = format!(
            "{HEAD}{COLUMNS}\n2026-11-16,abc1234,Some CPU @ 3 GHz,bfs,4096,timing,1,1000,2000,30,4096\n\
             2026-11-16,abc1234,Some CPU @ 3 GHz,bfs,4096,functional,1,1000,9000,,4096\n"
        );
        let rows = parse(&text).expect("a record");
        assert_eq!(rows.len(), 2);
        assert_eq!(rows[0].measured.figures.cycles_per_second, Some(30.0));
        assert_eq!(rows[1].measured.figures.cycles_per_second, None);
        assert_eq!(rows[1].measured.figures.per_second, 9000.0);
    }

    #[test]
    fn a_damaged_record_is_refused_with_its_line() {
        let text = format!("{COLUMNS}\n2026-11-16,abc1234\n");
        let error = parse(&text).expect_err("refused").to_string();
        assert!(error.contains("2026-11-16,abc1234"), "{error}");
        assert!(parse("date,commit\n").is_err());
    }

    #[test]
    fn the_processor_has_no_comma() {
        assert_eq!(processor("cores : 2\nmodel name\t: A, B\n"), "A; B");
        assert_eq!(processor(""), "unknown");
    }
}
