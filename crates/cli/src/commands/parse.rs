//! `lockstep parse`: whether command lines would be taken, for programs that make them.

use crate::Cli;
use anyhow::Context;
use clap::{Args, Parser};
use lockstep_text::say;
use std::io::BufRead;

/// Check command lines on standard input, a JSON array of words a line, and answer with the first that is refused.
#[derive(Args)]
pub struct Parse {}

impl Parse {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<i32> {
        let mut refused = None;
        for (number, line) in std::io::stdin().lock().lines().enumerate() {
            let line = line.context("standard input")?;
            if refused.is_some() {
                continue;
            }
            let words: Vec<String> = serde_json::from_str(&line)
                .with_context(|| format!("standard input, line {}", number + 1))?;
            let words = std::iter::once("lockstep".to_string()).chain(words);
            if let Err(error) = Cli::try_parse_from(words) {
                refused = Some((number, error.to_string()));
            }
        }
        say!("{}\n", serde_json::to_string(&refused)?);
        Ok(0)
    }
}
