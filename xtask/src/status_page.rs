//! `docs/status.md`: what works, what is lacking, how accurate it is and how fast.

pub mod accuracy;
pub mod speed;

use crate::{coverage, regions, status, workloads};
use anyhow::Result;
use std::collections::BTreeSet;
use std::fmt::Write;

/// The page.
pub const PATH: &str = "docs/status.md";

/// The page as it should be.
pub fn page() -> Result<String> {
    let status = status::load()?;
    let mut page = regions::read(PATH)?;
    page = regions::with(&page, "accuracy", &accuracy::table()?)?;
    page = regions::with(&page, "speed", &speed::table()?)?;
    page = regions::with(&page, "works", &format!("{}{}", counts()?, status.works()))?;
    regions::with(&page, "lacks", &status.lacks())
}

/// Counts of calls, instructions, programs and GPUs.
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
        "- **CUDA calls**: {} are answered, for programs with the static runtime (nvcc's default), the shared runtime of CUDA 11, 12 and 13, and the driver API. Every other entry point exists, answers \"not supported\" and is listed at the end of the run ([list](reference/cuda_calls.md)).",
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
        "- **Programs**: {} CUDA programs with {} kernels of our own, each of which verifies its own result ([list](reference/workloads.md)).",
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

#[cfg(test)]
mod tests {
    use super::*;

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
