//! NVLinks one by one, and where GPUs and switches are on the PCI bus.
//!
//! A node file gives the sum of the NVLinks that go one way. NVML and NCCL count them.

use crate::config::{Kind, Shape};
use crate::topology::Topology;
use lockstep_units::Bandwidth;

/// The most NVLinks that a GPU has.
pub(crate) const MOST_NVLINKS: u32 = 36;

/// One direction of an NVLink of the second, third or fourth generation.
const USUAL: u64 = 25_000_000_000;

/// The PCI bus of the switch, above those of all GPUs.
pub const SWITCH_BUS: u32 = 0xc0;

/// The PCI bus of a GPU.
pub const fn pci_bus(gpu: u32) -> u32 {
    gpu + 1
}

/// An NVLink as the GPU at one of its ends has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NvLinkPort {
    /// The GPU at the other end; none for a switch.
    pub peer: Option<u32>,
    /// What one direction carries.
    pub bandwidth: Bandwidth,
}

impl Topology {
    /// The NVLinks of a GPU by their numbers; none if GPUs are joined otherwise.
    pub fn nvlinks(&self, gpu: u32) -> Vec<NvLinkPort> {
        if self.kind() != Kind::Nvlink {
            return Vec::new();
        }
        let count = self.nvlinks_of_one_way();
        let sum = self.bandwidth();
        let bandwidth = Bandwidth::new(sum.get() / u64::from(count)).unwrap_or(sum);
        let peers: Vec<Option<u32>> = match self.config().shape {
            Shape::Switch => vec![None],
            Shape::Mesh => self
                .neighbours(gpu)
                .filter(|peer| *peer != gpu)
                .map(Some)
                .collect(),
        };
        let each = |peer| (0..count).map(move |_| NvLinkPort { peer, bandwidth });
        peers.into_iter().flat_map(each).collect()
    }

    /// NVLinks from a GPU to the switch, or to one other GPU.
    pub(crate) fn nvlinks_of_one_way(&self) -> u32 {
        let config = self.config();
        config.links.unwrap_or_else(|| {
            let near = (config.bandwidth.get() + USUAL / 2) / USUAL;
            near.clamp(1, MOST_NVLINKS.into()) as u32
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::NodeConfig;

    fn ports(node: &str, gpus: u32) -> Vec<NvLinkPort> {
        let config = NodeConfig::load(node).unwrap();
        Topology::new(config, gpus).unwrap().nvlinks(1)
    }

    #[test]
    fn a_gpu_has_the_nvlinks_of_its_node() {
        let to_switch = ports("hgx", 2);
        assert_eq!(to_switch.len(), 18);
        assert!(to_switch.iter().all(|port| port.peer.is_none()));
        assert_eq!(to_switch[0].bandwidth.to_string(), "25 GB/s");
        let peers: Vec<u32> = ports("nvlink-mesh", 3)
            .iter()
            .filter_map(|port| port.peer)
            .collect();
        assert_eq!(peers, [0, 0, 0, 0, 2, 2, 2, 2]);
        assert!(ports("pcie", 2).is_empty());
    }

    #[test]
    fn nvlinks_that_a_file_does_not_count_have_25_gigabytes_a_second() {
        let text = "kind = \"nvlink\"\nshape = \"mesh\"\ngpus = 2\nlatency = \"400 ns\"\n";
        let count = |bandwidth: &str| {
            let text = format!("{text}bandwidth = \"{bandwidth}\"");
            let config = NodeConfig::parse("mine.toml", &text).unwrap();
            Topology::new(config, 2).unwrap().nvlinks(0).len()
        };
        assert_eq!(count("300 GB/s"), 12);
        assert_eq!(count("1 GB/s"), 1);
        assert_eq!(count("90 TB/s"), 36);
    }
}
