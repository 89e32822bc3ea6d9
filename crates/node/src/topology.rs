//! The links of a node with so many GPUs, and the way from one GPU to another.

use crate::config::{Kind, NodeConfig, NodeError, Shape};
use lockstep_units::{Bandwidth, Bytes, Duration};
use std::fmt::Write;

/// Data of a packet.
const LINE: Bytes = Bytes(128);

/// One direction of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// The part that it leaves: `gpu 0`, `switch`.
    pub from: String,
    /// The part that it reaches.
    pub to: String,
    /// What it carries.
    pub bandwidth: Bandwidth,
}

/// The links between the GPUs of a node.
#[derive(Clone, Debug)]
pub struct Topology {
    config: NodeConfig,
    gpus: u32,
    links: Vec<Link>,
}

impl Topology {
    /// A node with so many GPUs.
    ///
    /// # Errors
    /// It does not hold as many.
    pub fn new(config: NodeConfig, gpus: u32) -> Result<Self, NodeError> {
        if gpus > config.gpus {
            return Err(NodeError::TooMany {
                gpus,
                most: config.gpus,
            });
        }
        let name = |gpu: u32| format!("gpu {gpu}");
        let link = |from: String, to: String| Link {
            from,
            to,
            bandwidth: config.bandwidth,
        };
        let links = match config.shape {
            Shape::Switch => (0..gpus)
                .flat_map(|gpu| {
                    let switch = || "switch".to_owned();
                    [link(name(gpu), switch()), link(switch(), name(gpu))]
                })
                .collect(),
            Shape::Mesh => (0..gpus)
                .flat_map(|from| (0..gpus).map(move |to| (from, to)))
                .filter(|(from, to)| from != to)
                .map(|(from, to)| link(name(from), name(to)))
                .collect(),
        };
        Ok(Self {
            config,
            gpus,
            links,
        })
    }

    /// GPUs that it has.
    pub fn gpus(&self) -> u32 {
        self.gpus
    }

    /// What the links are.
    pub fn kind(&self) -> Kind {
        self.config.kind
    }

    /// The file that describes it.
    pub fn config(&self) -> &NodeConfig {
        &self.config
    }

    /// Whether a GPU reaches all others through one link.
    pub fn has_switch(&self) -> bool {
        self.config.shape == Shape::Switch
    }

    /// What one direction of a link carries.
    pub fn bandwidth(&self) -> Bandwidth {
        self.config.bandwidth
    }

    /// What a packet has on a link beside its data.
    pub fn packet_header(&self) -> Bytes {
        self.config.packet_header
    }

    /// What one direction of a link carries of data, in packets of a line each.
    pub fn data_bandwidth(&self) -> Bandwidth {
        let packet = u128::from(LINE.0) + u128::from(self.config.packet_header.0);
        let data = u128::from(self.config.bandwidth.get()) * u128::from(LINE.0) / packet;
        Bandwidth::new(data as u64).unwrap_or(self.config.bandwidth)
    }

    /// Every direction of every link.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// From one GPU to another.
    pub fn latency(&self) -> Duration {
        self.config.latency
    }

    /// The links from one GPU to another, by their place in [`Topology::links`]; none from a GPU to
    /// itself or to one that is not there.
    pub fn route(&self, from: u32, to: u32) -> Vec<usize> {
        let (gpus, own, other) = (self.gpus as usize, from as usize, to as usize);
        if from == to || own >= gpus || other >= gpus {
            return Vec::new();
        }
        match self.config.shape {
            Shape::Switch => vec![2 * own, 2 * other + 1],
            // A GPU has no link to itself.
            Shape::Mesh => vec![own * (gpus - 1) + other - usize::from(other > own)],
        }
    }

    /// The links in a few words.
    pub fn words(&self) -> String {
        let shape = match self.config.shape {
            Shape::Switch => "to a switch",
            Shape::Mesh => "from each to each",
        };
        format!(
            "{} {shape}, {} one way, {}",
            self.kind_name(),
            self.config.bandwidth,
            self.config.latency
        )
    }

    /// The node as a list of links.
    pub fn text(&self) -> String {
        let mut text = format!(
            "{} GPUs, {} from one to another\n",
            self.gpus, self.config.latency
        );
        for link in &self.links {
            let Link {
                from,
                to,
                bandwidth,
            } = link;
            let _ = writeln!(text, "  {from} -> {to}  {} {bandwidth}", self.kind_name());
        }
        text
    }

    /// The node for Graphviz.
    pub fn graphviz(&self) -> String {
        let mut text = String::from("digraph node {\n");
        for link in &self.links {
            let Link {
                from,
                to,
                bandwidth,
            } = link;
            let _ = writeln!(text, "  \"{from}\" -> \"{to}\" [label=\"{bandwidth}\"];");
        }
        text.push_str("}\n");
        text
    }

    fn kind_name(&self) -> &'static str {
        match self.config.kind {
            Kind::Pcie => "PCIe",
            Kind::Nvlink => "NVLink",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_way_leads_from_one_gpu_to_the_other() {
        for name in ["pcie", "nvlink-mesh", "hgx"] {
            let config = NodeConfig::load(name).unwrap();
            let gpus = config.gpus;
            let topology = Topology::new(config, gpus).unwrap();
            for from in 0..gpus {
                for to in 0..gpus {
                    let route = topology.route(from, to);
                    if from == to {
                        assert!(route.is_empty());
                        continue;
                    }
                    let links: Vec<&Link> = route.iter().map(|at| &topology.links()[*at]).collect();
                    assert_eq!(links.first().unwrap().from, format!("gpu {from}"), "{name}");
                    assert_eq!(links.last().unwrap().to, format!("gpu {to}"), "{name}");
                    assert!(links.windows(2).all(|pair| pair[0].to == pair[1].from));
                }
            }
            assert!(topology.route(0, gpus).is_empty());
        }
    }

    #[test]
    fn a_node_is_drawn() {
        let config = NodeConfig::load("nvlink-mesh").unwrap();
        let topology = Topology::new(config, 2).unwrap();
        expect_test::expect![[r#"
            digraph node {
              "gpu 0" -> "gpu 1" [label="100 GB/s"];
              "gpu 1" -> "gpu 0" [label="100 GB/s"];
            }
        "#]]
        .assert_eq(&topology.graphviz());
        assert!(topology.text().contains("gpu 0 -> gpu 1  NVLink 100 GB/s"));
        let refused = Topology::new(NodeConfig::load("nvlink-mesh").unwrap(), 5).unwrap_err();
        assert_eq!(refused.to_string(), "5 GPUs, and the node holds 4");
    }
}
