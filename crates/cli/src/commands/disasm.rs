//! `lockstep disasm`: a file of device code as the simulator sees it.

use clap::Args;
use lockstep_text::say;
use std::path::PathBuf;

/// Show the instructions of a PTX, cubin or fat binary file as the simulator sees them.
#[derive(Args)]
pub struct Disasm {
    /// PTX, cubin, fat binary, or a program that carries one
    file: PathBuf,
    /// Only this kernel
    #[arg(long, value_name = "NAME")]
    entry: Option<String>,
}

impl Disasm {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<i32> {
        let listing = lockstep_simulation::disassemble(&self.file, self.entry.as_deref())?;
        say!("{listing}");
        Ok(0)
    }
}
