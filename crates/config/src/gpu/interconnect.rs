//! The section `[interconnect]`: the network between SMs and L2 slices.

use crate::limits::Limit;
use lockstep_units::{Bytes, BytesPerCycle, Cycles, Hertz};
use serde::{Deserialize, Serialize};

/// The network between SMs and L2 slices.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct InterconnectConfig {
    /// How packets travel, by name: `crossbar`, `simple`, `mesh` or `switched`.
    #[serde(default = "crossbar")]
    pub kind: String,
    /// From an SM to a slice without contention, in SM cycles.
    pub request_latency: Cycles,
    /// From a slice to an SM without contention, in SM cycles.
    pub reply_latency: Cycles,
    /// How much longer a hop between the SMs of a GPC and the slice farthest from them takes than to the
    /// nearest, in SM cycles; it comes on top of the latencies.
    pub distance_spread: Cycles,
    /// How much longer a hop takes for the first, second, ... TPC of a GPC than for most, in SM cycles; 0
    /// for TPCs that are not named.
    #[serde(default)]
    pub tpc_hop_latency: Vec<Cycles>,
    /// Bytes that an SM sends in a cycle.
    pub request_bytes_per_cycle: BytesPerCycle,
    /// Bytes that an SM receives in a cycle.
    pub reply_bytes_per_cycle: BytesPerCycle,
    /// Bytes around the payload of every packet.
    pub packet_header: Bytes,
    /// Bytes that an atomic occupies of the port of an SM for each sector.
    pub atomic_bytes_per_sector: Bytes,
    /// Bytes that it occupies for each lane.
    pub atomic_bytes_per_lane: Bytes,
    /// From an SM to another one of its GPC, in SM cycles: blocks of a cluster reach each other's shared memory
    /// this way. 0 if blocks have no clusters. No shorter than the shortest of the other latencies, or epochs
    /// become shorter.
    #[serde(default)]
    pub cluster_latency: Cycles,
    /// Bytes that an SM sends to others of its GPC in a cycle.
    #[serde(default = "cluster_bytes_per_cycle")]
    pub cluster_bytes_per_cycle: BytesPerCycle,
    /// Requests of one SM that the queue of each slice has room for: the SM has so many credits, and gets
    /// them back as the slice takes its requests up. What it has no credit for it holds back. 0 for any
    /// number, as always with `simple`.
    #[serde(default)]
    pub credits: u32,
    /// Requests that an SM holds back for want of credits before its memory instructions wait; 0 is as 1.
    #[serde(default = "held_requests")]
    pub held_requests: u32,
    /// The routers of `mesh` and `switched`.
    #[serde(default)]
    pub network: NetworkConfig,
}

/// The routers of the interconnects `mesh` and `switched`. There they stand for the bandwidths and
/// the spread of a crossbar; the latencies, half before the routers and half behind them, stay.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct NetworkConfig {
    /// Clock of the routers.
    pub clock: Hertz,
    /// Bytes that cross a port in one of its cycles; packets are cut into as many as they need.
    pub flit: Bytes,
    /// Flits that the buffer of an input from another router holds; each is a credit of the sender.
    pub buffer_flits: u32,
    /// Cycles of the routers' clock that a flit stays in each router.
    pub router_latency: Cycles,
    /// Routers of a row of `mesh`; 0 makes it as square as can be.
    pub columns: u32,
    /// Injection ports of an SM or a slice, a flit a cycle each.
    pub injection_ports: u32,
    /// Ejection ports of an SM or a slice, a flit a cycle each.
    pub ejection_ports: u32,
}

fn cluster_bytes_per_cycle() -> BytesPerCycle {
    "18 B/cycle".parse().expect("a bandwidth")
}

fn held_requests() -> u32 {
    32
}

fn crossbar() -> String {
    "crossbar".into()
}

impl InterconnectConfig {
    /// Whether packets pass routers.
    pub fn has_networks(&self) -> bool {
        self.kind == "mesh" || self.kind == "switched"
    }

    /// Credits of an SM at each slice, if anything takes time; 0 for any number.
    pub fn credits_of(&self, timed: bool) -> u32 {
        match self.kind.as_str() {
            "simple" => 0,
            _ if timed => self.credits,
            _ => 0,
        }
    }
}

impl Default for NetworkConfig {
    fn default() -> Self {
        let clock = "1.2 GHz".parse().expect("a frequency");
        Self {
            clock,
            flit: Bytes(40),
            buffer_flits: 8,
            router_latency: Cycles(2),
            columns: 0,
            injection_ports: 2,
            ejection_ports: 1,
        }
    }
}

impl InterconnectConfig {
    pub(super) fn limits(&self) -> Vec<Limit> {
        let network = &self.network;
        vec![
            Limit::new("interconnect.credits", self.credits).to(1 << 15),
            Limit::new("interconnect.held-requests", self.held_requests).to(1 << 20),
            Limit::new("interconnect.network.flit", network.flit.0)
                .from(1)
                .to(1 << 16),
            Limit::new("interconnect.network.buffer-flits", network.buffer_flits)
                .from(1)
                .to(1 << 16),
            Limit::new(
                "interconnect.network.router-latency",
                network.router_latency.0,
            )
            .from(1)
            .to(1 << 16),
            Limit::new("interconnect.network.columns", network.columns).to(1 << 16),
            Limit::new(
                "interconnect.network.injection-ports",
                network.injection_ports,
            )
            .from(1)
            .to(16),
            Limit::new(
                "interconnect.network.ejection-ports",
                network.ejection_ports,
            )
            .from(1)
            .to(16),
        ]
    }
}
