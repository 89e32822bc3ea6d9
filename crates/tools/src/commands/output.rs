//! Where a command writes what it made: standard output, or a file.

use anyhow::Context;
use clap::Args;
use std::io::{ErrorKind, Write};
use std::path::PathBuf;

/// Where to write.
#[derive(Args)]
pub struct Output {
    /// File to write instead of standard output; one that is there is replaced
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Output {
    /// Writes all of it; the exit code.
    pub fn write(&self, bytes: &[u8]) -> anyhow::Result<i32> {
        match &self.output {
            Some(path) => {
                std::fs::write(path, bytes).with_context(|| path.display().to_string())?;
            }
            None => match std::io::stdout().write_all(bytes) {
                // A reader that has seen enough (`| head`) is no fault.
                Err(error) if error.kind() == ErrorKind::BrokenPipe => {}
                written => written.context("cannot write to standard output")?,
            },
        }
        Ok(0)
    }
}
