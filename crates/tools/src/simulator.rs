//! The `lockstep` command, which simulates.

use anyhow::{Context, bail};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Its path: it lies beside this program.
pub fn path() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe().context("where this program is")?;
    let path = own.with_file_name("lockstep");
    if !path.is_file() {
        bail!(
            "{}: the simulator is not there; in a checkout, `cargo build --release` makes it",
            path.display()
        );
    }
    Ok(path)
}

/// Asks the simulator whether it would take command lines. The first that it refuses, and why.
pub fn first_refused(lines: &[Vec<String>]) -> anyhow::Result<Option<(usize, String)>> {
    let mut child = Command::new(path()?)
        .arg("parse")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .context("the simulator does not start")?;
    let mut text = Vec::new();
    for line in lines {
        serde_json::to_writer(&mut text, line)?;
        text.push(b'\n');
    }
    let mut input = child.stdin.take().context("no way to the simulator")?;
    // It answers only once it has read all.
    input.write_all(&text).context("the simulator ended")?;
    drop(input);
    let answer = child.wait_with_output().context("the simulator ended")?;
    if !answer.status.success() {
        bail!("`lockstep parse` ended with {}", answer.status);
    }
    Ok(serde_json::from_slice(&answer.stdout)?)
}
