//! Random CUDA programs (`fuzz/programs`): recorded ones held to an H200's results, fresh ones to each other.

use crate::cuda::Toolkit;
use crate::{process, project, simulator};
use anyhow::Result;
use std::path::PathBuf;

/// Kernels that an H200 ran, and what it gave for each.
pub fn recorded() -> PathBuf {
    project::root().join("validation/values/programs-h200.txt")
}

/// Runs `check.py` with these arguments on the release build.
pub fn check(toolkit: &Toolkit, arguments: &[&str]) -> Result<()> {
    process::run(
        process::command("python3")
            .arg("-B")
            .arg(project::root().join("fuzz/programs/check.py"))
            .args(arguments)
            .env("LOCKSTEP", simulator::executable())
            .env("NVCC", toolkit.nvcc()),
    )
}
