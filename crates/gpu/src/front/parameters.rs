//! What a work distributor is made with.

use lockstep_config::occupancy::SmLimits;
use lockstep_config::{ConfigError, GpuConfig};
use lockstep_engine::LinkId;
use lockstep_units::{Cycles, Duration, Hertz};

use super::clusters::ClusterGroups;
use super::device_launches::DeviceLatencies;
use super::policy::{DISPATCH_POLICIES, DispatchPolicy, ranks};
use super::rounds::Units;
use crate::gpc::GpcMap;

/// Where a work distributor's messages go.
#[derive(Clone, Copy, Debug)]
pub struct DistributorWiring {
    /// Number of the first SM's partition.
    pub first_sm: u32,
    /// Work distributor to SM.
    pub start: LinkId,
    /// Number of the first slice's partition.
    pub first_slice: u32,
    /// Work distributor to slice.
    pub control: LinkId,
}

/// How kernels of one queue follow each other.
#[derive(Clone, Copy, Debug)]
pub struct Succession {
    /// How much of the start of a kernel passes before the one before it ends, if it is there in time.
    pub overlap: Duration,
    /// From the end of the last block to the end of the kernel.
    pub finish: Duration,
    /// From the last write to the end of the kernel.
    pub drain_tail: Duration,
}

/// What a work distributor is made with.
#[derive(Clone, Debug)]
pub struct DistributorParameters {
    /// SM clock.
    pub clock: Hertz,
    /// SMs.
    pub sms: u32,
    /// Number of the first SM's partition.
    pub first_sm: u32,
    /// Work distributor to SM.
    pub start: LinkId,
    /// What an SM can hold.
    pub limits: SmLimits,
    /// Between two blocks.
    pub interval: Duration,
    /// What a cluster takes beside the intervals of its blocks.
    pub cluster_interval: Duration,
    /// From the head of the queue to the first block.
    pub launch: Duration,
    /// How kernels of a stream follow each other.
    pub in_stream: Succession,
    /// How kernels of a graph do.
    pub in_graph: Succession,
    /// How much later it is for each SM on which blocks used memory.
    pub finish_sm: Duration,
    /// Work distributor to slice, if the end of a kernel waits for its writes.
    pub drain: Option<LinkId>,
    /// Kernels at a time.
    pub concurrent: u32,
    /// Which SM receives the next block.
    pub policy: DispatchPolicy,
    /// The place of each SM among those that are as free as it is.
    pub ranks: Vec<u32>,
    /// Whose turn each SM is in.
    pub units: Units,
    /// Which SMs the blocks of a cluster may go to.
    pub clusters: ClusterGroups,
    /// Work distributor to slice, if kernels are to find empty caches.
    pub invalidate: Option<LinkId>,
    /// Number of the first slice's partition.
    pub first_slice: u32,
    /// Slices.
    pub slices: u32,
    /// What launches by kernels take.
    pub device: DeviceLaunchParameters,
}

/// What launches by kernels take.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DeviceLaunchParameters {
    /// From a launch to the first block of its grid.
    pub latencies: DeviceLatencies,
    /// A call for a parameter buffer.
    pub buffer_call: Duration,
    /// A call that launches without an order, or behind the grid.
    pub launch_call: Duration,
    /// A call that launches into a stream.
    pub stream_call: Duration,
    /// A call that records an event or waits for one.
    pub event_call: Duration,
    /// Any other call.
    pub other_call: Duration,
    /// How much longer a call takes for each further thread of the warp.
    pub lane: Duration,
}

impl DistributorParameters {
    /// How a kernel follows others, and others it, if a graph has it or not.
    pub fn succession(&self, of_graph: bool) -> &Succession {
        match of_graph {
            true => &self.in_graph,
            false => &self.in_stream,
        }
    }

    /// From a GPU file; `cold` if kernels are to find empty caches.
    ///
    /// # Errors
    /// If it names a policy that does not exist.
    pub fn new(
        config: &GpuConfig,
        timed: bool,
        cold: bool,
        wiring: DistributorWiring,
        gpcs: &GpcMap,
    ) -> Result<Self, ConfigError> {
        let policy = DispatchPolicy::named(&config.dispatch.policy).ok_or_else(|| {
            let known = DISPATCH_POLICIES.iter().map(|policy| policy.name);
            ConfigError::unknown_policy("dispatch policy", &config.dispatch.policy, known)
        })?;
        let clock = config.device.clock;
        let if_timed = |duration: Duration| if timed { duration } else { Duration::ZERO };
        let cycles = |cycles: Cycles| if_timed(clock.duration(cycles));
        let first = &config.dispatch.first_sms;
        let ranks = ranks(first, config.device.sms);
        let launch = &config.launch;
        let drain = clock.duration(launch.drain_latency);
        let succession = |overlap: Cycles, finish: Cycles| {
            let finish = cycles(finish);
            Succession {
                overlap: match cold {
                    true => Duration::ZERO,
                    false => cycles(overlap),
                },
                finish,
                drain_tail: finish.max(drain) - drain,
            }
        };
        let in_stream = succession(launch.start_overlap, launch.finish_latency);
        let in_graph = succession(
            launch.graph_start_overlap.unwrap_or(launch.start_overlap),
            launch.graph_finish_latency.unwrap_or(launch.finish_latency),
        );
        Ok(Self {
            clock,
            sms: config.device.sms,
            first_sm: wiring.first_sm,
            start: wiring.start,
            limits: SmLimits::new(&config.sm),
            interval: config.dispatch.block_interval,
            cluster_interval: config.dispatch.cluster_interval,
            launch: cycles(config.launch.start_latency),
            in_stream,
            in_graph,
            finish_sm: if_timed(config.launch.finish_per_sm),
            drain: timed.then_some(wiring.control),
            concurrent: config.dispatch.concurrent_kernels,
            policy,
            units: Units::new(first, &config.dispatch.first_sms_turns, &ranks, gpcs),
            ranks,
            clusters: ClusterGroups::new(config),
            invalidate: cold.then_some(wiring.control),
            first_slice: wiring.first_slice,
            slices: config.l2.slices,
            device: device_launches(config, timed),
        })
    }
}

fn device_launches(config: &GpuConfig, timed: bool) -> DeviceLaunchParameters {
    if !timed {
        return DeviceLaunchParameters::default();
    }
    let launch = &config.launch.device;
    DeviceLaunchParameters {
        latencies: DeviceLatencies {
            launch: launch.latency,
            next: launch.next_latency,
            tail: launch.tail_latency,
            finish: launch.finish_latency,
            parent: launch.parent_latency,
            interval: launch.launch_interval,
        },
        buffer_call: launch.buffer_call,
        launch_call: launch.launch_call,
        stream_call: launch.stream_call,
        event_call: launch.event_call,
        other_call: launch.other_call,
        lane: launch.call_lane,
    }
}
