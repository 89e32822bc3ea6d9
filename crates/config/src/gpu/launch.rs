//! The sections `[dispatch]` and `[launch]`: how kernels begin, how blocks reach SMs, how kernels end.

use crate::limits::Limit;
use lockstep_units::{Bytes, Cycles, Duration};
use serde::{Deserialize, Serialize};

/// How blocks reach SMs.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DispatchConfig {
    /// From the dispatcher to an SM and back, each, in SM cycles.
    pub latency: Cycles,
    /// Between two blocks sent out.
    pub block_interval: Duration,
    /// What a cluster takes beside the intervals of its blocks.
    #[serde(default)]
    pub cluster_interval: Duration,
    /// Between the starts of two warps on an SM, in SM cycles.
    pub warp_interval: Cycles,
    /// Kernels resident on the device at a time.
    pub concurrent_kernels: u32,
    /// Which SM receives the next block, by name.
    pub policy: String,
    /// SMs that receive blocks before others as free as they are, in this order; the rest follow,
    /// one of every TPC first. Without any, the lowest number is first. Numbers that no SM has are
    /// passed over.
    #[serde(default)]
    pub first_sms: Vec<u32>,
    /// Turns of GPCs between the first and the second turn of these SMs, and between all later ones, in
    /// the policy `gpc-rounds`.
    #[serde(default = "turns")]
    pub first_sms_turns: Vec<u32>,
}

fn turns() -> Vec<u32> {
    vec![5, 6]
}

/// What a kernel launch costs on the device.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LaunchConfig {
    /// From reaching the head of its queue to the first block sent, in SM cycles.
    pub start_latency: Cycles,
    /// How much of that passes before the kernel before it in the queue ends, if it is there by
    /// then, in SM cycles.
    #[serde(default)]
    pub start_overlap: Cycles,
    /// From the end of the last block to the kernel being complete, in SM cycles.
    pub finish_latency: Cycles,
    /// `start-overlap` of kernels of a graph: the front end knows them beforehand.
    #[serde(default)]
    pub graph_start_overlap: Option<Cycles>,
    /// `finish-latency` of kernels of a graph.
    #[serde(default)]
    pub graph_finish_latency: Option<Cycles>,
    /// How much of it passes at least while the slices say that all writes are in, in SM cycles.
    #[serde(default = "drain_latency")]
    pub drain_latency: Cycles,
    /// How much longer `finish-latency` is for each SM on which blocks used memory.
    pub finish_per_sm: Duration,
    /// From the end of the work before an event in its queue to the time that the event takes down,
    /// when what follows in the queue begins.
    #[serde(default)]
    pub event_latency: Duration,
    /// Sectors of L2 that GPCs look up to launch a kernel, those across the fabric between partitions
    /// included.
    pub gpc_l2_sectors: u32,
    /// Sectors of L2 that others than GPCs look up around a launch: the front end, the host.
    #[serde(default)]
    pub non_gpc_l2_sectors: u32,
    /// While a kernel runs, others look up a sector each time this passes, in SM cycles; nothing
    /// with 0.
    #[serde(default)]
    pub non_gpc_l2_interval: Cycles,
    /// Sectors of L2 that the flush at the end of a kernel looks up for every SM and slice that it used.
    pub flush_sectors: u32,
    /// Bytes that a launch reads from DRAM with cold caches, besides its code.
    pub cold_dram_bytes: Bytes,
    /// Bytes behind its code that the first launch of a kernel prefetches.
    pub code_prefetch: Bytes,
    /// Most bytes of parameters.
    pub parameter_limit: Bytes,
    /// A kernel that runs for longer is taken to hang, in SM cycles.
    pub watchdog: Cycles,
    /// Launches by kernels.
    pub device: DeviceLaunchConfig,
}

/// What launches by kernels cost (dynamic parallelism).
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct DeviceLaunchConfig {
    /// From the answer to a launch by a kernel to the first block of its grid.
    pub latency: Duration,
    /// From the time at which the grid before it in a stream of a kernel is known to be complete to the first block
    /// of a grid.
    pub next_latency: Duration,
    /// From the end of all else that a grid did or launched to the first block of its tail launch.
    pub tail_latency: Duration,
    /// From the end of a grid that a kernel launched to the time at which it is known to be complete.
    pub finish_latency: Duration,
    /// From the end of all that a grid did and launched to its end, if it launched something.
    pub parent_latency: Duration,
    /// Between two launches by kernels, at the least.
    pub launch_interval: Duration,
    /// How long a thread takes to get a buffer for the arguments of a launch, besides the way to the dispatcher and back.
    pub buffer_call: Duration,
    /// How long it takes for a fire-and-forget or a tail launch, besides that way.
    pub launch_call: Duration,
    /// How long it takes to launch into a stream, besides that way.
    pub stream_call: Duration,
    /// How long it takes to record an event or to wait for one, besides that way.
    pub event_call: Duration,
    /// How long any other call of the device runtime takes, besides that way.
    pub other_call: Duration,
    /// How much longer a call takes for each further thread of its warp.
    pub call_lane: Duration,
}

fn drain_latency() -> Cycles {
    Cycles(300)
}

impl DispatchConfig {
    pub(super) fn limits(&self) -> Vec<Limit> {
        vec![Limit::new("dispatch.concurrent-kernels", self.concurrent_kernels).from(1)]
    }
}
