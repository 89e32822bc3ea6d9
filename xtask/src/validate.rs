//! `cargo xtask validate`: error of the simulator against measured hardware.

use crate::{process, simulator};
use anyhow::{Result, bail};
use clap::Args;
use std::time::Duration;

/// Error of the simulator against measured hardware.
#[derive(Args)]
pub struct Validate {
    /// GPU whose measurements are compared
    #[arg(long, default_value = "h200")]
    gpu: String,
    /// The development set at coarse sizes
    #[arg(long)]
    quick: bool,
}

impl Validate {
    /// Runs it.
    pub fn run(self) -> Result<()> {
        simulator::build()?;
        let known = process::capture(
            &mut simulator::lockstep(&["correlate", "--help"]),
            Duration::from_secs(30),
        )?;
        if !known.success() {
            bail!(
                "this version of lockstep has no `correlate` command yet, so there is nothing to \
                 compare with; measurements of real GPUs will stand under validation/hardware"
            );
        }
        let mut arguments = vec!["correlate", "--gpu", self.gpu.as_str()];
        if self.quick {
            arguments.push("--quick");
        }
        process::run(&mut simulator::lockstep(&arguments))
    }
}
