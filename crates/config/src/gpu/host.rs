//! The section `[host]`: what calls cost.

use crate::limits::Limit;
use lockstep_units::{Bandwidth, Bytes, BytesPerCycle, Duration, Hertz};
use serde::{Deserialize, Serialize};

/// What calls cost on the host, in simulated time.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct HostConfig {
    /// A call that touches no device work.
    pub call: Duration,
    /// Issuing a kernel.
    pub launch: Duration,
    /// Issuing a kernel after a pause, besides: what the host needs for it has left its caches.
    #[serde(default)]
    pub launch_cold: Duration,
    /// How long no kernel was issued for that.
    #[serde(default)]
    pub launch_cold_after: Duration,
    /// Issuing a kernel for the first time, besides: its code goes to the device then.
    #[serde(default)]
    pub launch_first: Duration,
    /// Issuing a graph; as a kernel if it is not there.
    #[serde(default)]
    pub graph_launch: Option<Duration>,
    /// Calling a function of the program from a stream: from the end of the work before it to the call, and
    /// from its return to the work behind it.
    #[serde(default)]
    pub callback: Duration,
    /// Issuing a copy or a memset.
    pub copy: Duration,
    /// Allocating or freeing memory.
    pub allocate: Duration,
    /// Waiting: from the end of the work to the return of the call.
    pub synchronize: Duration,
    /// How far a query of unfinished work lets the device advance.
    pub query: Duration,
    /// How far the device advances at least between two looks of a host that polls memory.
    #[serde(default = "poll")]
    pub poll: Duration,
    /// Loading an image.
    pub load: Duration,
    /// The host as a machine, through which commands and data then go.
    #[serde(default)]
    pub machine: HostMachineConfig,
}

/// The host as a machine: what takes time on the way of commands and data between host and GPU. With
/// the kind `none` the figures of `host` and `copy` stand for all of it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct HostMachineConfig {
    /// `none` or `machine`.
    pub kind: String,
    /// Cores that ask for data.
    pub cores: u32,
    /// Their clock.
    pub clock: Hertz,
    /// Requests that a core makes in a cycle.
    pub requests_per_cycle: u32,
    /// Bytes of a request.
    pub request: Bytes,
    /// Transfers of memory in a second, as in DDR4-2666.
    pub ddr_clock: Hertz,
    /// Bytes of a transfer.
    pub ddr_bytes_per_cycle: BytesPerCycle,
    /// Memory that pinned and managed allocations can have.
    pub ddr_capacity: Bytes,
    /// Clock of the mesh between cores, memory and links.
    pub mesh_clock: Hertz,
    /// Bytes that a port of the mesh passes on in one of its cycles.
    pub mesh_bytes_per_cycle: BytesPerCycle,
    /// The way through the mesh.
    pub mesh_latency: Duration,
    /// Ports by which data from the GPU come into the mesh.
    pub mesh_input_ports: u32,
    /// Ports by which data for the GPU leave it.
    pub mesh_output_ports: u32,
    /// Data move in pieces of this size.
    pub page: Bytes,
    /// The link between host and GPU, in each direction.
    pub link: Bandwidth,
    /// From one end of the link for data to the other.
    pub data_latency: Duration,
    /// From one end of the link for commands to the other.
    pub command_latency: Duration,
}

impl HostMachineConfig {
    /// Whether commands and data go through it.
    pub fn is_modelled(&self) -> bool {
        self.kind == "machine"
    }
}

impl Default for HostMachineConfig {
    /// The machine of the SST-GPU report: its listing 1, and its table 2 for what is not there.
    fn default() -> Self {
        const FINE: &str = "a value that parses";
        Self {
            kind: "none".into(),
            cores: 1,
            clock: "2660 MHz".parse().expect(FINE),
            requests_per_cycle: 3,
            request: Bytes(64),
            ddr_clock: "2666 MHz".parse().expect(FINE),
            ddr_bytes_per_cycle: "8 B/cycle".parse().expect(FINE),
            ddr_capacity: "16384 MiB".parse().expect(FINE),
            mesh_clock: "800 MHz".parse().expect(FINE),
            mesh_bytes_per_cycle: "120 B/cycle".parse().expect(FINE),
            mesh_latency: "300 ps".parse().expect(FINE),
            mesh_input_ports: 1,
            mesh_output_ports: 1,
            page: Bytes(4096),
            link: "16 GB/s".parse().expect(FINE),
            data_latency: "23840 ps".parse().expect(FINE),
            command_latency: "23840 ps".parse().expect(FINE),
        }
    }
}

fn poll() -> Duration {
    Duration::microseconds(1)
}

impl HostConfig {
    pub(super) fn limits(&self) -> Vec<Limit> {
        let machine = &self.machine;
        vec![
            Limit::new("host.query", self.query.0).from(1),
            Limit::new("host.poll", self.poll.0).from(1),
            Limit::new("host.machine.cores", machine.cores)
                .from(1)
                .to(4096),
            Limit::new(
                "host.machine.requests-per-cycle",
                machine.requests_per_cycle,
            )
            .from(1)
            .to(4096),
            Limit::new("host.machine.request", machine.request.0).from(1),
            Limit::new("host.machine.ddr-capacity", machine.ddr_capacity.0).from(1),
            Limit::new("host.machine.mesh-input-ports", machine.mesh_input_ports).from(1),
            Limit::new("host.machine.mesh-output-ports", machine.mesh_output_ports).from(1),
            // Pages of a few bytes would take longer to simulate than to move.
            Limit::new("host.machine.page", machine.page.0)
                .from(256)
                .to(1 << 30),
        ]
    }
}
