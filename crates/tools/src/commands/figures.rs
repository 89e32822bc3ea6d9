//! `lockstep figures`: the rules of the validation protocol, for scripts.
//!
//! Scripts of studies and measurements ask here instead of having a rule of their own, so that an
//! error, a spread, a launch that repeats and the name of a kernel mean one thing everywhere.

use anyhow::{Context, anyhow};
use clap::{Args, Subcommand};
use lockstep_correlation::{Hardware, counts, pairs, simulated};
use lockstep_text::say::Output;
use std::io::{Read, Write};
use std::path::PathBuf;

/// Apply the rules of the validation protocol to tables, for scripts.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  printf 'name,simulated,hardware\\nadd,5100,5000 5010 5020\\n' | lockstep figures errors\n  lockstep figures repeating validation/hardware/h200\n  echo _Z9vectorAddPKfS0_Pfi | lockstep figures kernel-names"
)]
pub struct Figures {
    #[command(subcommand)]
    question: Question,
}

/// What can be asked.
#[derive(Subcommand)]
enum Question {
    /// Errors of a table on standard input, with the columns name, simulated and hardware (one
    /// value a repetition, separated by blanks), as JSON
    Errors,
    /// The counts of launches that repeat on hardware, which simulated ones must equal, as CSV
    Repeating {
        /// Folder of measurements, or one table
        #[arg(value_name = "DIR|CSV")]
        hardware: PathBuf,
    },
    /// The plain name of each kernel on standard input, mangled or as a profiler prints it
    KernelNames,
}

impl Figures {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<i32> {
        let answer = match self.question {
            Question::Errors => {
                let found = pairs::figures(&input()?)
                    .map_err(|problem| anyhow!("standard input: {problem}"))?;
                (serde_json::to_string_pretty(&found)? + "\n").into_bytes()
            }
            Question::Repeating { hardware } => counts::repeating(&Hardware::load(&hardware)?)?,
            Question::KernelNames => {
                let names = input()?;
                let plain = names.lines().map(|name| simulated::plain_name(name) + "\n");
                plain.collect::<String>().into_bytes()
            }
        };
        Output
            .write_all(&answer)
            .context("cannot write the answer")?;
        Ok(0)
    }
}

fn input() -> anyhow::Result<String> {
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .context("cannot read standard input")?;
    Ok(text)
}
