//! `cargo xtask bench --scaling`: speed-up by threads, beside independent runs.
//!
//! The study `studies/parallel-speedup` measures with a script of its own, so that it can be taken to machines where
//! nothing can be built; this builds what the script needs and calls it.

use crate::{process, project, simulator, validate};
use anyhow::{Context, Result};
use std::path::Path;

/// What the seed measured.
const THREADS: &[u32] = &[1, 2, 4, 8, 16];

/// Measures, tabulates and plots into a folder.
pub fn run(threads: &[u32], out: &Path) -> Result<()> {
    simulator::build()?;
    validate::build_programs()?;
    let study = project::root().join("studies/parallel-speedup");
    let threads = if threads.is_empty() { THREADS } else { threads };
    let threads: Vec<String> = threads.iter().map(u32::to_string).collect();
    std::fs::create_dir_all(out).with_context(|| format!("cannot make {}", out.display()))?;
    process::run(
        process::command(study.join("measure.py"))
            .arg(project::release().join("lockstep"))
            .arg(validate::programs())
            .arg(out)
            .env("THREADS", threads.join(" ")),
    )?;
    process::run(
        process::command(study.join("tabulate.py"))
            .arg(out.join("runs.txt"))
            .arg("--csv")
            .arg(out.join("scaling.csv"))
            .arg("--plot")
            .arg(out.join("scaling.svg")),
    )
}
