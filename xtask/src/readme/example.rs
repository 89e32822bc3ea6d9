//! The first example of README: its output is what the command prints.

use super::PATH;
use crate::cuda::Toolkit;
use crate::workloads::{self, Runtime};
use crate::{process, project, regions, simulator};
use anyhow::{Result, bail};
use std::time::Duration;

const REGION: &str = "example";
/// The program and its argument, as README names them.
const PROGRAM: &str = "matrix_multiply";
const ARGUMENT: &str = "128";
const COMMAND: &str = "target/release/lockstep run --gpu h200 -- ./matrix_multiply 128";

/// Writes what the command prints into README, if it differs by more than the host's own figures.
pub fn write(toolkit: &Toolkit) -> Result<()> {
    let page = regions::read(PATH)?;
    let text = text(&run(toolkit)?);
    let old = &page[regions::place(&page, REGION)?];
    if simulated(old) != simulated(&text) {
        std::fs::write(
            project::root().join(PATH),
            regions::with(&page, REGION, &text)?,
        )?;
        println!("wrote the example of {PATH}");
    }
    Ok(())
}

/// What is wrong with the example; empty if it says what the command prints.
pub fn check(toolkit: &Toolkit) -> Result<String> {
    let page = regions::read(PATH)?;
    if !page.contains(COMMAND) {
        bail!("{PATH} does not name the command `{COMMAND}`");
    }
    let found = text(&run(toolkit)?);
    let told = &page[regions::place(&page, REGION)?];
    if simulated(told) == simulated(&found) {
        return Ok(String::new());
    }
    Ok(format!(
        "{PATH} tells another output than the command has; run `cargo xtask docs`. It prints\n{found}"
    ))
}

/// What the command prints: first the program, then the report.
fn run(toolkit: &Toolkit) -> Result<String> {
    let executable = workloads::named(PROGRAM)?.build(toolkit, Runtime::Static)?;
    let folder = simulator::scratch_folder();
    let mut command = simulator::lockstep(&["run", "--gpu", "h200", "--out"]);
    command.arg(&folder).arg("--").arg(executable).arg(ARGUMENT);
    let output = process::capture(&mut command, Duration::from_secs(120))?;
    // Left behind, it would only cost space.
    let _ = std::fs::remove_dir_all(&folder);
    if !output.success() {
        bail!("`{COMMAND}` failed:\n{}", output.tail(6));
    }
    Ok(format!("{}{}", output.out, output.err))
}

/// The region: the output as a block, with the folder that the command would have chosen.
fn text(output: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in output.lines() {
        lines.push(if line.starts_with("results in ") {
            format!("results in lockstep-out/{PROGRAM}-1")
        } else {
            line.trim_end().to_string()
        });
    }
    format!("```\n{}\n```", lines.join("\n"))
}

/// The lines that are about the simulated GPU. Those about the host differ from machine to machine.
fn simulated(text: &str) -> Vec<&str> {
    text.lines()
        .map(str::trim_end)
        .filter(|line| !line.is_empty() && !line.contains(" slower than the GPU"))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_the_host_are_not_compared_and_all_others_are() {
        let one = text(
            "PASS\n28 cycles\n3.7 s on 2 threads, 254kx slower than the GPU, 83 MiB at most\nresults in /a/b\n",
        );
        let two = text(
            "PASS\n28 cycles\n9.9 s on 8 threads, 100kx slower than the GPU, 90 MiB at most\nresults in /c\n",
        );
        let three = text("PASS\n29 cycles\n");
        assert_eq!(simulated(&one), simulated(&two));
        assert_ne!(simulated(&one), simulated(&three));
        assert!(one.contains("results in lockstep-out/matrix_multiply-1"));
    }
}
