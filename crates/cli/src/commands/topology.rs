//! `lockstep topology`: the parts of a simulated GPU and the links between them, or those of a node.

use crate::options::{NodeOptions, SimulationOptions};
use clap::Args;
use lockstep_text::say;

/// Show the parts of a simulated GPU and the links between them; with --gpus, --nodes or --node, the links between GPUs.
#[derive(Args)]
pub struct Topology {
    #[command(flatten)]
    options: SimulationOptions,
    #[command(flatten)]
    node: NodeOptions,
    /// For Graphviz: `lockstep topology --dot | dot -Tsvg > gpu.svg`
    #[arg(long)]
    dot: bool,
    /// The links between GPUs as NCCL's topology file, which a run with several GPUs names in NCCL_TOPO_FILE
    #[arg(long, conflicts_with = "dot")]
    nccl_xml: bool,
}

impl Topology {
    /// Runs it.
    pub fn run(self) -> anyhow::Result<i32> {
        let mut description = self.options.describe()?;
        self.node.apply(&mut description, &self.options.settings)?;
        if self.nccl_xml {
            say!("{}", description.nccl_topology()?);
            return Ok(0);
        }
        if description.all_gpus() > 1 || description.node.is_some() {
            let links = description.links()?;
            let drawn = match self.dot {
                true => links.graphviz(),
                false => links.text(),
            };
            say!("{drawn}");
            return Ok(0);
        }
        say!("{}", lockstep_simulation::topology(&description, self.dot)?);
        Ok(0)
    }
}
