//! The stage `python`: the scripts of `validation/`, `studies/` and `workloads/`, and the library that they share.
//!
//! The tests need the standard library only. Those that ask the simulator for a rule of the protocol
//! run with the release build of the stage before.

use crate::{process, project};
use anyhow::Result;

/// Runs the unit tests of all Python; one of them compiles every file.
pub fn check() -> Result<()> {
    process::run(
        process::command("python3")
            // Nothing is left beside the sources.
            .args(["-B", "-W", "error", "-m", "unittest", "discover"])
            .args(["--quiet", "--buffer", "-t", ".", "-s", "tests"])
            .current_dir(project::root().join("validation"))
            .env("LOCKSTEP", project::release().join("lockstep")),
    )
}
