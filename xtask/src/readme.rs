//! README.md: what is told there comes from the code and from measurements.
//!
//! The page is written by hand, but for regions between `<!-- begin NAME -->` and `<!-- end NAME -->`, which
//! `cargo xtask docs` fills and `cargo xtask test` compares. Its first example is run like a workload.

mod accuracy;
pub mod example;

use crate::bench::{engineering, record};
use crate::{coverage, project, status, workloads};
use anyhow::{Context, Result, bail};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The page.
pub const PATH: &str = "README.md";

/// The page as it should be, the example as it is.
pub fn page() -> Result<String> {
    let status = status::load()?;
    let mut page = read()?;
    page = with_region(&page, "accuracy", &accuracy::table()?)?;
    page = with_region(&page, "speed", &speed()?)?;
    page = with_region(&page, "works", &format!("{}{}", counts()?, status.works()))?;
    page = with_region(&page, "lacks", &status.lacks())?;
    Ok(page)
}

fn read() -> Result<String> {
    std::fs::read_to_string(project::root().join(PATH)).context(PATH)
}

/// Where a region's text is in the page.
fn region(page: &str, name: &str) -> Result<std::ops::Range<usize>> {
    let (begin, end) = (
        format!("<!-- begin {name} -->\n"),
        format!("<!-- end {name} -->\n"),
    );
    match (page.find(&begin), page.find(&end)) {
        (Some(from), Some(to)) if from < to => Ok(from + begin.len()..to),
        _ => bail!("{PATH} has no region `{name}`: it must stand between {begin}and {end}"),
    }
}

/// The page with another text in a region.
fn with_region(page: &str, name: &str, text: &str) -> Result<String> {
    let place = region(page, name)?;
    Ok(format!(
        "{}\n{}\n\n{}",
        &page[..place.start],
        text.trim(),
        &page[place.end..]
    ))
}

/// What can be counted: calls, instructions, programs, GPUs.
fn counts() -> Result<String> {
    let mut text = String::new();
    let calls: Vec<String> = coverage::interfaces()?
        .iter()
        .map(|interface| {
            format!(
                "{} of {} names of the {} ({} of them called by a test)",
                interface.answered.len(),
                interface.names.len(),
                interface.title.to_lowercase().replace("api", "API"),
                interface.tested()
            )
        })
        .collect();
    writeln!(
        text,
        "- **CUDA calls**: {} are answered, for programs with the static runtime (nvcc's default), the shared runtime of CUDA 11, 12 and 13, and the driver API. Every other entry point exists, answers \"not supported\" and is listed at the end of the run ([list](docs/reference/cuda_calls.md)).",
        calls.join(" and ")
    )?;
    writeln!(
        text,
        "- **Instructions**: PTX, {} forms of {} opcodes that compute, beside loads, stores, atomics, control, barriers and matrix products; machine code (SASS) of {}, {} opcodes.",
        ptx_rows().count(),
        ptx_rows().map(opcode).collect::<BTreeSet<_>>().len(),
        architectures(),
        sass_opcodes().len()
    )?;
    let programs = workloads::all()?;
    writeln!(
        text,
        "- **Programs**: {} CUDA programs with {} kernels of our own, each of which verifies its own result ([list](docs/reference/workloads.md)).",
        programs.len(),
        programs
            .iter()
            .map(|program| program.kernels.len())
            .sum::<usize>()
    )?;
    let gpus: Vec<String> = lockstep_config::CATALOGUE
        .iter()
        .map(|gpu| format!("`{}`", gpu.name))
        .collect();
    writeln!(text, "- **GPUs**: {}, one TOML file each.", gpus.join(", "))?;
    Ok(text)
}

fn ptx_rows() -> impl Iterator<Item = &'static str> {
    lockstep_isa::ptx::FAMILIES
        .iter()
        .flat_map(|(_, rows)| rows.iter())
        .map(|row| row.spelling)
}

/// `add` of `add[.sat].s32`.
fn opcode(spelling: &str) -> &str {
    let end = spelling.find(|c: char| !c.is_ascii_alphanumeric());
    &spelling[..end.unwrap_or(spelling.len())]
}

fn sass_opcodes() -> BTreeSet<&'static str> {
    lockstep_isa::sass::architecture::ARCHITECTURES
        .iter()
        .flat_map(|architecture| lockstep_isa::sass::table::TABLE.operations(*architecture))
        .map(|(_, opcode)| opcode.name())
        .collect()
}

fn architectures() -> String {
    let names: Vec<String> = lockstep_isa::sass::architecture::ARCHITECTURES
        .iter()
        .map(|architecture| format!("sm_{}", architecture.sm()))
        .collect();
    names.join(", ")
}

/// Speed by program and mode, from the record.
fn speed() -> Result<String> {
    let rows = record::load()?;
    let first = rows.first().context("the record of speed is empty")?;
    let mut text = format!(
        "One thread on {}, by processor time while simulating, commit {} of {} (`cargo xtask bench --record`). `cargo xtask bench --against COMMIT` compares two commits, and the book says [where the time goes](docs/book/speed.md).\n\n\
         | program | mode | warp instructions | of these a second | simulated cycles a second | peak memory |\n|---|---|---|---|---|---|\n",
        first.processor, first.commit, first.date
    );
    for row in rows.iter().filter(|row| row.measured.threads == 1) {
        let figures = &row.measured.figures;
        writeln!(
            text,
            "| `{} {}` | {} | {} | {} | {} | {} MiB |",
            row.measured.program,
            row.measured.arguments,
            row.measured.mode,
            engineering(figures.instructions as f64),
            engineering(figures.per_second),
            figures.cycles_per_second.map_or("".into(), engineering),
            figures.peak_memory >> 20
        )?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_replaced_and_the_rest_is_kept() {
        let page = "a\n<!-- begin x -->\nold\n<!-- end x -->\nb\n";
        let new = with_region(page, "x", "new\n").expect("region");
        assert_eq!(new, "a\n<!-- begin x -->\n\nnew\n\n<!-- end x -->\nb\n");
        assert_eq!(with_region(&new, "x", "new").expect("region"), new);
        assert!(with_region(page, "y", "").is_err());
    }

    #[test]
    fn an_opcode_ends_at_its_first_modifier() {
        assert_eq!(opcode("add[.sat].s32"), "add");
        assert_eq!(opcode("setp.lt"), "setp");
        assert_eq!(opcode("not"), "not");
    }

    #[test]
    fn what_is_counted_is_not_nothing() {
        assert!(ptx_rows().count() > 100);
        assert!(sass_opcodes().len() > 100);
    }
}
