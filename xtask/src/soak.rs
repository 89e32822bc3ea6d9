//! `cargo xtask soak`: workloads while random things go wrong (`workloads/soak.py`).

use crate::cuda::Missing;
use crate::workloads::Runtime;
use crate::{cuda, process, project, simulator, workloads};
use anyhow::{Result, bail};
use clap::Args;

/// Programs that are run: small ones, of every kind.
const TAG: &str = "core";

/// Run workloads under random kills, signals, full disks and little memory, and check what is left.
#[derive(Args)]
pub struct Soak {
    /// How long
    #[arg(long, value_name = "N", default_value_t = 5.0)]
    minutes: f64,
    /// Draw the same runs again; one is chosen and printed if it is not given
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Runs at the same time
    #[arg(long, value_name = "N", default_value_t = 1)]
    jobs: u32,
}

impl Soak {
    /// Runs it.
    pub fn run(self) -> Result<()> {
        process::step("Building lockstep (release)");
        simulator::build_with_tools()?;
        process::step("Compiling workloads");
        let toolkit = match cuda::toolkit() {
            Ok(toolkit) => toolkit,
            Err(Missing::Index(error)) => bail!("the workloads need nvcc, from PyPI: {error}"),
            Err(Missing::Machine(error)) => return Err(error.context("the workloads need nvcc")),
        };
        let programs = workloads::all()?;
        for program in programs.iter().filter(|program| program.is(TAG)) {
            program.build(&toolkit, Runtime::Static)?;
        }
        let mut command = process::command("python3");
        command
            .arg(project::root().join("workloads/soak.py"))
            .args(["--minutes", &self.minutes.to_string()])
            .args(["--jobs", &self.jobs.to_string()])
            .arg("--lockstep")
            .arg(simulator::executable())
            .arg("--bin")
            .arg(project::local().join("workloads/static"));
        if let Some(seed) = self.seed {
            command.args(["--seed", &seed.to_string()]);
        }
        process::run(&mut command)
    }
}
