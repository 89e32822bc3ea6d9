//! A node: several GPUs and the links between them.
//!
//! ```text
//!  NodeConfig::load("hgx") ─▶ Topology::new(config, gpus) ─▶ route(from, to)
//!                                      nccl_xml(), nvlinks(gpu): what NCCL and NVML are told
//!                                      Flows: who gets how much of the links on a route, over time
//! ```
//!
//! A node file says how GPUs are joined: each to a switch (NVSwitch, or the PCIe switch of a host), or
//! each to each. Transfers are flows; those that share a link share its rate, and no link ever carries
//! more than that.
//!
//! Several equal nodes make a cluster: links join the GPUs of a node, and no copy goes from one node to another.
//! The network between them is drawn and times nothing.
//!
//! Left out: several switches on one way, and traffic other than copies between GPUs on the same links.
//!
//! Start reading at [`NodeConfig`], then at [`Flows`].

mod config;
mod flows;
mod nccl;
mod nvlink;
mod topology;

pub use config::{CATALOGUE, Kind, Network, NodeConfig, NodeError, Shape};
pub use flows::Flows;
pub use nvlink::{NvLinkPort, SWITCH_BUS, pci_bus};
pub use topology::{Link, Topology};
