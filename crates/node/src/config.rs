//! Files that describe nodes.

use crate::nvlink::MOST_NVLINKS;
use lockstep_units::{Bandwidth, Bytes, Duration};
use serde::{Deserialize, Serialize};
use std::path::Path;
use thiserror::Error;

/// A file that is part of the binary: the name that `--node` takes, and its text.
pub const CATALOGUE: &[(&str, &str)] = &[
    ("pcie", include_str!("../../../configs/nodes/pcie.toml")),
    (
        "nvlink-mesh",
        include_str!("../../../configs/nodes/nvlink-mesh.toml"),
    ),
    ("hgx", include_str!("../../../configs/nodes/hgx.toml")),
    (
        "hgx-cluster",
        include_str!("../../../configs/nodes/hgx-cluster.toml"),
    ),
];

/// How GPUs are joined.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Shape {
    /// Each has a link to one switch, and reaches every other through it.
    Switch,
    /// Each has a link to every other.
    Mesh,
}

/// What the links are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// PCI Express.
    Pcie,
    /// NVLink.
    Nvlink,
}

/// The links of a node.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct NodeConfig {
    /// What the links are: `pcie` or `nvlink`.
    pub kind: Kind,
    /// How GPUs are joined: `switch` or `mesh`.
    pub shape: Shape,
    /// The most GPUs that it holds.
    pub gpus: u32,
    /// What one direction of a link carries.
    pub bandwidth: Bandwidth,
    /// From one GPU to another, whatever is on the way.
    pub latency: Duration,
    /// NVLinks that `bandwidth` is the sum of; as many of 25 GB/s as come near it, if it is not said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub links: Option<u32>,
    /// What a packet of up to a line of 128 bytes has on a link beside its data; nothing, if `bandwidth` is that of
    /// data.
    #[serde(default)]
    pub packet_header: Bytes,
    /// What joins several such nodes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Network>,
}

/// The network between equal nodes. It is drawn; no traffic of programs is timed by it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Network {
    /// The most nodes that it joins.
    pub nodes: u32,
    /// Network adapters of a node.
    pub adapters: u32,
    /// What one direction of an adapter carries.
    pub bandwidth: Bandwidth,
    /// From one node to another, if it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency: Option<Duration>,
}

/// Why there is no such node.
#[derive(Debug, Error)]
pub enum NodeError {
    /// Neither in the catalogue nor a file.
    #[error("no node is called `{name}`; known: {known}, or name a .toml file")]
    Unknown {
        /// What was asked for.
        name: String,
        /// What there is.
        known: String,
    },
    /// The file cannot be read.
    #[error("{path}: {error}")]
    Read {
        /// The file.
        path: String,
        /// What the system says.
        error: std::io::Error,
    },
    /// The file says something that makes no sense.
    #[error("{path}: {message}")]
    Parse {
        /// The file.
        path: String,
        /// Where and what.
        message: String,
    },
    /// The file is understood and cannot be built.
    #[error("{path}: `{key}` = {found}, but {because}")]
    Impossible {
        /// The file.
        path: String,
        /// The key.
        key: &'static str,
        /// Its value.
        found: String,
        /// Why not.
        because: &'static str,
    },
    /// More nodes than the network joins.
    #[error("{nodes} nodes, and the network joins {most}")]
    TooManyNodes {
        /// Nodes that were asked for.
        nodes: u32,
        /// The most that it joins.
        most: u32,
    },
    /// More GPUs than it holds.
    #[error("{gpus} GPUs, and the node holds {most}")]
    TooMany {
        /// GPUs that were asked for.
        gpus: u32,
        /// The most that it holds.
        most: u32,
    },
}

impl NodeConfig {
    /// A node of the catalogue, or one from a file.
    ///
    /// # Errors
    /// There is none, or it makes no sense.
    pub fn load(name: &str) -> Result<Self, NodeError> {
        if let Some((_, text)) = CATALOGUE.iter().find(|(known, _)| *known == name) {
            return Self::parse(name, text);
        }
        if !name.ends_with(".toml") {
            let known: Vec<&str> = CATALOGUE.iter().map(|(known, _)| *known).collect();
            return Err(NodeError::Unknown {
                name: name.into(),
                known: known.join(", "),
            });
        }
        let text = std::fs::read_to_string(Path::new(name)).map_err(|error| NodeError::Read {
            path: name.into(),
            error,
        })?;
        Self::parse(name, &text)
    }

    /// A node from the text of a file.
    ///
    /// # Errors
    /// The text makes no sense.
    pub fn parse(path: &str, text: &str) -> Result<Self, NodeError> {
        let wrong = |message: String| NodeError::Parse {
            path: path.into(),
            message: message.trim_end().into(),
        };
        let file = toml::Deserializer::parse(text).map_err(|error| wrong(error.to_string()))?;
        let config: Self = serde_path_to_error::deserialize(file)
            .map_err(|error| wrong(format!("`{}`: {}", error.path(), error.inner())))?;
        config.check(path)?;
        Ok(config)
    }

    /// The node that GPUs of a compute capability are usually found in, where there are so many nodes.
    pub fn usual(major: u32, minor: u32, nodes: u32) -> &'static str {
        match (major, minor) {
            (7..=9, 0) if nodes > 1 => "hgx-cluster",
            (7..=9, 0) => "hgx",
            _ => "pcie",
        }
    }

    fn check(&self, path: &str) -> Result<(), NodeError> {
        /// GPUs stand still for each other once in the latency of a link.
        const LEAST: Duration = Duration::nanoseconds(50);
        const MOST_HEADER: Bytes = Bytes(128);
        let impossible = |key, found: String, because| NodeError::Impossible {
            path: path.into(),
            key,
            found,
            because,
        };
        if self.gpus == 0 {
            return Err(impossible("gpus", "0".into(), "a node has a GPU at least"));
        }
        if self.latency < LEAST {
            let because = "GPUs are simulated apart for that long, and 50 ns are the least";
            return Err(impossible("latency", self.latency.to_string(), because));
        }
        if self.packet_header > MOST_HEADER {
            let because = "no packet has more than 128 B beside its data";
            let found = self.packet_header.to_string();
            return Err(impossible("packet-header", found, because));
        }
        let links_wrong = match (self.kind, self.links) {
            (Kind::Pcie, Some(_)) => Some("links are counted of NVLink only"),
            (Kind::Nvlink, Some(0)) => Some("there is one NVLink at least"),
            (Kind::Nvlink, Some(links)) if links > MOST_NVLINKS => {
                Some("a GPU has 36 NVLinks at most")
            }
            _ => None,
        };
        if let (Some(links), Some(because)) = (self.links, links_wrong) {
            return Err(impossible("links", links.to_string(), because));
        }
        let network = self.network.iter();
        let counts = network.flat_map(|network| {
            [
                ("network.nodes", network.nodes),
                ("network.adapters", network.adapters),
            ]
        });
        for (key, count) in counts {
            if count == 0 {
                let because = "a network joins nodes, each by an adapter at least";
                return Err(impossible(key, "0".into(), because));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_of_the_catalogue_loads() {
        for (name, _) in CATALOGUE {
            let config = NodeConfig::load(name).unwrap();
            assert!(config.gpus >= 2, "{name}");
        }
        assert_eq!(NodeConfig::load("hgx").unwrap().shape, Shape::Switch);
        assert_eq!(NodeConfig::usual(9, 0, 1), "hgx");
        assert_eq!(NodeConfig::usual(9, 0, 2), "hgx-cluster");
        assert_eq!(NodeConfig::usual(8, 6, 2), "pcie");
    }

    #[test]
    fn what_makes_no_sense_is_refused_by_name() {
        let check = |text: &str, expected: &str| {
            let said = NodeConfig::parse("mine.toml", text).unwrap_err();
            assert!(said.to_string().contains(expected), "{said}");
        };
        let whole = "kind = \"pcie\"\nshape = \"switch\"\ngpus = 2\nbandwidth = \"1 GB/s\"\n";
        check(whole, "missing field `latency`");
        check(&format!("{whole}latency = \"1 ns\""), "`latency` = 1 ns");
        check(&format!("{whole}latency = \"1 us\"\nspeed = 3"), "speed");
        check(
            &format!("{whole}latency = \"1 us\"\npacket-header = \"1 KiB\""),
            "`packet-header` = 1 KiB",
        );
        check("kind = \"token-ring\"", "`kind`");
        let timed = format!("{whole}latency = \"1 us\"\n");
        check(&format!("{timed}links = 4"), "counted of NVLink only");
        let nvlink = timed.replace("pcie", "nvlink");
        check(&format!("{nvlink}links = 0"), "one NVLink at least");
        check(&format!("{nvlink}links = 37"), "`links` = 37");
        let network = "[network]\nnodes = 2\nadapters = 0\nbandwidth = \"1 GB/s\"";
        let node = format!("{whole}latency = \"1 us\"\n{network}");
        check(&node, "`network.adapters` = 0");
        check(&format!("{node}\nspeed = 3"), "speed");
        let said = NodeConfig::load("nowhere").unwrap_err().to_string();
        assert!(
            said.contains("pcie, nvlink-mesh, hgx, hgx-cluster"),
            "{said}"
        );
        assert!(NodeConfig::load("nowhere.toml").is_err());
    }
}
