//! `lockstep topology`: the parts of a simulated GPU and the links between them.

use crate::options::SimulationOptions;
use crate::say::say;
use clap::Args;

/// Show the parts of a simulated GPU and the links between them.
#[derive(Args)]
pub struct Topology {
    #[command(flatten)]
    options: SimulationOptions,
    /// For Graphviz: `lockstep topology --dot | dot -Tsvg > gpu.svg`
    #[arg(long)]
    dot: bool,
}

impl Topology {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<i32> {
        let description = self.options.describe()?;
        say!("{}", lockstep_simulation::topology(&description, self.dot)?);
        Ok(0)
    }
}
