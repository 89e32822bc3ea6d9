//! `cargo xtask viewer --measure`: how fast a long run opens and pans in a browser.

use super::{browser_test_lacks, prepare};
use crate::process;
use anyhow::{Result, bail};

/// The test that writes such a run, opens it and holds it to its bounds. It prints what it found.
const TEST: &str = "a_long_run_opens_within_two_seconds_and_pans_smoothly";

/// Runs that test, which is left out elsewhere since it needs a quiet machine.
pub fn measure() -> Result<()> {
    prepare();
    if let Some(lacking) = browser_test_lacks() {
        bail!("nothing can be measured: {lacking}");
    }
    process::step("a run of 1,400 launches with ten million samples, five times");
    let mut cargo = process::command("cargo");
    cargo.args([
        "test",
        "--release",
        "-p",
        "lockstep-cli",
        "--test",
        "viewer",
    ]);
    cargo.args(["--", "--ignored", "--exact", "--nocapture", TEST]);
    process::run(&mut cargo)
}
