//! `lockstep calls`: what a program asked of the simulator.

use clap::Args;
use lockstep_text::say::Output;
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// List the calls that a run recorded, with their simulated times and answers.
///
/// A plain run records what was called; with `--record full` (as `lockstep verify` does) also what
/// was answered and what the host wrote. `lockstep -vv run` shows the CUDA calls of the program
/// themselves, while it runs.
#[derive(Args)]
pub struct Calls {
    /// Folder of a run, or its calls.record
    #[arg(value_name = "DIR")]
    place: PathBuf,
}

impl Calls {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<i32> {
        let mut out = BufWriter::new(Output);
        let listed = lockstep_simulation::list_calls(&self.place, &mut out);
        out.flush()?;
        listed?;
        Ok(0)
    }
}
