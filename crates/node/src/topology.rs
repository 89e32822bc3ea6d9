//! The links of a node with so many GPUs, and the way from one GPU to another.

use crate::config::{Kind, NodeConfig, NodeError, Shape};
use lockstep_units::{Bandwidth, Bytes, Duration};
use std::collections::BTreeSet;
use std::fmt::Write;
use std::ops::Range;

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

/// The links between the GPUs of a node, or of several equal ones. GPUs are counted node by node.
#[derive(Clone, Debug)]
pub struct Topology {
    config: NodeConfig,
    /// GPUs of each node.
    each: u32,
    nodes: u32,
    links: Vec<Link>,
}

impl Topology {
    /// A node with so many GPUs.
    ///
    /// # Errors
    /// It does not hold as many.
    pub fn new(config: NodeConfig, gpus: u32) -> Result<Self, NodeError> {
        Self::cluster(config, gpus, 1)
    }

    /// So many nodes with so many GPUs each.
    ///
    /// # Errors
    /// A node does not hold as many GPUs, or the network does not join as many nodes.
    pub fn cluster(config: NodeConfig, each: u32, nodes: u32) -> Result<Self, NodeError> {
        if each > config.gpus {
            return Err(NodeError::TooMany {
                gpus: each,
                most: config.gpus,
            });
        }
        let network = config.network.as_ref();
        if let Some(network) = network.filter(|network| nodes > network.nodes) {
            return Err(NodeError::TooManyNodes {
                nodes,
                most: network.nodes,
            });
        }
        let links =
            (0..nodes).flat_map(|node| links_of(&config, each, (nodes > 1).then_some(node)));
        Ok(Self {
            links: links.collect(),
            config,
            each,
            nodes,
        })
    }

    /// GPUs that it has, all nodes together.
    pub fn gpus(&self) -> u32 {
        self.each * self.nodes
    }

    /// Nodes that it has.
    pub fn nodes(&self) -> u32 {
        self.nodes
    }

    /// The GPUs of the node that a GPU is on.
    pub fn neighbours(&self, gpu: u32) -> Range<u32> {
        let each = self.each.max(1);
        let first = gpu / each * each;
        first..first + each
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
    /// itself, to one on another node or to one that is not there.
    pub fn route(&self, from: u32, to: u32) -> Vec<usize> {
        let near = self.neighbours(from);
        if from == to || from >= self.gpus() || !near.contains(&to) {
            return Vec::new();
        }
        let (own, other) = ((from - near.start) as usize, (to - near.start) as usize);
        let gpus = self.each as usize;
        let before = near.start as usize / gpus * (self.links.len() / self.nodes as usize);
        match self.config.shape {
            Shape::Switch => vec![before + 2 * own, before + 2 * other + 1],
            // A GPU has no link to itself.
            Shape::Mesh => vec![before + own * (gpus - 1) + other - usize::from(other > own)],
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
        let Self { config, each, .. } = self;
        let mut text = match self.nodes {
            1 => format!("{each} GPUs, {} from one to another\n", config.latency),
            nodes => format!(
                "{nodes} nodes of {each} GPUs, {} from one to another of a node\n",
                config.latency
            ),
        };
        for link in &self.links {
            let Link {
                from,
                to,
                bandwidth,
            } = link;
            let _ = writeln!(text, "  {from} -> {to}  {} {bandwidth}", self.kind_name());
        }
        for (node, words) in self.uplinks() {
            let _ = writeln!(text, "  {node} <-> network  {words}");
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
        for (node, words) in self.uplinks() {
            let _ = writeln!(
                text,
                "  \"{node}\" -> \"network\" [dir=both, label=\"{words}\"];"
            );
            let own = self.links.iter().map(|link| link.from.as_str());
            let gpu = format!("{node}/gpu ");
            let parts: BTreeSet<&str> = own.filter(|part| part.starts_with(&gpu)).collect();
            for part in parts {
                let _ = writeln!(text, "  \"{part}\" -> \"{node}\" [dir=none, style=dashed];");
            }
        }
        text.push_str("}\n");
        text
    }

    /// What joins each of several nodes to the network, in words.
    fn uplinks(&self) -> impl Iterator<Item = (String, String)> {
        let words = match &self.config.network {
            Some(network) => {
                let latency = network.latency.map(|latency| format!(", {latency}"));
                format!(
                    "{} adapters of {}{}",
                    network.adapters,
                    network.bandwidth,
                    latency.unwrap_or_default()
                )
            }
            None => "not described".into(),
        };
        let nodes = if self.nodes > 1 { self.nodes } else { 0 };
        (0..nodes).map(move |node| (format!("node {node}"), words.clone()))
    }

    fn kind_name(&self) -> &'static str {
        match self.config.kind {
            Kind::Pcie => "PCIe",
            Kind::Nvlink => "NVLink",
        }
    }
}

/// Every direction of every link of a node, named after it if there are several.
fn links_of(config: &NodeConfig, gpus: u32, node: Option<u32>) -> Vec<Link> {
    let named = |part: String| match node {
        Some(node) => format!("node {node}/{part}"),
        None => part,
    };
    let name = |gpu: u32| named(format!("gpu {gpu}"));
    let link = |from: String, to: String| Link {
        from,
        to,
        bandwidth: config.bandwidth,
    };
    match config.shape {
        Shape::Switch => (0..gpus)
            .flat_map(|gpu| {
                let switch = || named("switch".to_owned());
                [link(name(gpu), switch()), link(switch(), name(gpu))]
            })
            .collect(),
        Shape::Mesh => (0..gpus)
            .flat_map(|from| (0..gpus).map(move |to| (from, to)))
            .filter(|(from, to)| from != to)
            .map(|(from, to)| link(name(from), name(to)))
            .collect(),
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

    #[test]
    fn ways_stay_within_a_node() {
        for name in ["nvlink-mesh", "hgx-cluster"] {
            let config = NodeConfig::load(name).unwrap();
            let topology = Topology::cluster(config, 3, 2).unwrap();
            assert_eq!((topology.gpus(), topology.nodes()), (6, 2));
            assert_eq!(topology.neighbours(4), 3..6);
            for (from, to) in (0..6).flat_map(|from| (0..6).map(move |to| (from, to))) {
                let route = topology.route(from, to);
                assert_eq!(route.is_empty(), from == to || from / 3 != to / 3, "{name}");
                let links: Vec<&Link> = route.iter().map(|at| &topology.links()[*at]).collect();
                if let (Some(first), Some(last)) = (links.first(), links.last()) {
                    let part = |gpu: u32| format!("node {}/gpu {}", gpu / 3, gpu % 3);
                    assert_eq!((&first.from, &last.to), (&part(from), &part(to)), "{name}");
                }
            }
        }
    }

    #[test]
    fn a_cluster_is_drawn_with_its_network() {
        let config = NodeConfig::load("hgx-cluster").unwrap();
        let text = Topology::cluster(config.clone(), 8, 8).unwrap().text();
        assert!(text.starts_with("8 nodes of 8 GPUs, 500 ns from"), "{text}");
        assert!(text.contains("node 7/gpu 7 -> node 7/switch  NVLink 450 GB/s"));
        assert!(text.contains("node 7 <-> network  8 adapters of 50 GB/s"));
        let drawn = Topology::cluster(config.clone(), 1, 2).unwrap().graphviz();
        assert!(
            drawn.contains("\"node 1\" -> \"network\" [dir=both"),
            "{drawn}"
        );
        assert!(drawn.contains("\"node 1/gpu 0\" -> \"node 1\""), "{drawn}");
        let refused = Topology::cluster(config, 1, 65).unwrap_err();
        assert_eq!(refused.to_string(), "65 nodes, and the network joins 64");
    }
}
