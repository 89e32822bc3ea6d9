//! What an L2 slice is made with.

use std::sync::Arc;

use lockstep_config::{ConfigError, GpuConfig};
use lockstep_engine::LinkId;
use lockstep_units::{Bytes, Cycles, Duration};

use super::fabric::{FLIT, FabricParameters};
use crate::cache::mix;
use crate::crossbar::{Egress, Kind};
use crate::dram::DramParameters;
use crate::gpc::{GpcMap, partitions_of_gpcs, tpc_hop_latencies};
use crate::memory::{Home, LINE, SECTOR};

use super::peer_port::PeerLinks;

/// Where a slice's messages go and come from.
#[derive(Clone, Copy, Debug)]
pub struct SliceWiring {
    /// Slice to SM.
    pub reply: Egress,
    /// Slice to work distributor.
    pub drained: LinkId,
    /// Slice to SM, for credits.
    pub credit: LinkId,
    /// Number of the first SM's partition of the engine.
    pub first_sm: u32,
}

/// What a slice is made with; all slices of a GPU share one.
#[derive(Clone, Debug)]
pub struct SliceParameters {
    /// Whether anything takes time.
    pub timed: bool,
    /// Whether there are tags even where nothing does, for timed kernels to come.
    pub keeps_tags: bool,
    /// Where its messages go and come from.
    pub wiring: SliceWiring,
    /// Bytes around the payload of a packet.
    pub header: u64,
    /// From accepting a read that hits to its answer.
    pub hit_latency: Duration,
    /// From accepting an atomic or a reduction to its answer.
    pub atomic_latency: Duration,
    /// To the other L2 partition and back.
    pub far_latency: Duration,
    /// The lanes to the other L2 partition and from it.
    pub fabric: FabricParameters,
    /// How long the slice is busy with one sector.
    pub sector_time: Duration,
    /// How long it is busy with one request at least.
    pub request_time: Duration,
    /// How long after a read its answer serves others of the same GPC.
    pub coalescing_window: Duration,
    /// SMs that one request and its answer serve.
    pub coalescing_targets: u8,
    /// Reads that later ones can be coalesced with.
    pub coalescer_entries: u32,
    /// How far apart the sectors of one instruction's atomics arrive at most.
    pub atomic_pair_window: Duration,
    /// Lines whose misses can be outstanding, or 0.
    pub mshrs: u32,
    /// Requests that can wait for one of them, or 0.
    pub mshr_targets: u32,
    /// Credits that go back to an SM at a time; none do with 0.
    pub credit_batch: u16,
    /// Lines of neighbouring addresses that are in neighbouring sets.
    pub set_neighbours: u32,
    /// So much of what is evicted waits at the channel before the cache waits for it.
    pub write_back_queue: Duration,
    /// Which TPC is in which GPC.
    pub gpcs: GpcMap,
    /// The L2 partition that each GPC is at.
    pub partition_of_gpc: Vec<u32>,
    /// Hop latency of each TPC on top of that of most; none where it is not named.
    pub tpc_hop_latency: Vec<Duration>,
    /// How much the hop latencies between GPCs and slices differ at most.
    pub hop_latency_spread: Duration,
    /// How long the write port is busy with a sector, from an SM or from DRAM.
    pub write_sector: Duration,
    /// How long it is busy with a request that writes sectors in part, besides the sectors.
    pub partial_write: Duration,
    /// How long the slice is busy with a sector of an atomic.
    pub atomic_sector: Duration,
    /// How long with the neighbouring sector, if that comes along.
    pub atomic_neighbour: Duration,
    /// How long it is busy with each lane that wants the same word.
    pub atomic_lane: Duration,
    /// The same if the atomic before was on another line.
    pub atomic_other_line: Duration,
    /// As `atomic_lane` if numbers with a fraction are added.
    pub atomic_float_lane: Duration,
    /// Sets of the slice.
    pub sets: u32,
    /// Lines of a set.
    pub ways: u32,
    /// Sectors that DRAM delivers together.
    pub burst: u32,
    /// Lines of a set that may be known in part and unread; any number with none.
    pub partial_lines: u32,
    /// Partitions of the cache.
    pub partitions: u32,
    /// Slices of the cache.
    pub slices: u32,
    /// Which slice an address belongs to.
    pub home: Home,
    /// The channel behind it.
    pub dram: Arc<DramParameters>,
    /// The links to other GPUs, if there are any.
    pub peers: Option<PeerLinks>,
}

impl SliceParameters {
    /// From a GPU file.
    ///
    /// # Errors
    /// If it names a DRAM back end or timing that does not exist.
    pub fn new(
        config: &GpuConfig,
        timed: bool,
        kind: Kind,
        wiring: SliceWiring,
        gpcs: &GpcMap,
    ) -> Result<Self, ConfigError> {
        let (l2, network) = (&config.l2, &config.interconnect);
        let if_timed = |duration: Duration| if timed { duration } else { Duration::ZERO };
        let cycles = |cycles: Cycles| if_timed(config.device.clock.duration(cycles));
        let slice_rate = l2.bytes_per_cycle.at(l2.clock);
        let fabric_rate = l2.fabric_bytes_per_cycle.at(l2.clock);
        let fabric_flit = if_timed(fabric_rate.time_for(Bytes(FLIT)));
        let lines = l2.capacity.0 / LINE / u64::from(l2.slices);
        // Other interconnects than the crossbar have distances of their own.
        let (tpc_hop_latency, hop_latency_spread) = match kind {
            Kind::Crossbar => (tpc_hop_latencies(config), network.distance_spread),
            Kind::Simple | Kind::Mesh | Kind::Switched => (Vec::new(), Cycles(0)),
        };
        Ok(Self {
            timed,
            keeps_tags: false,
            wiring,
            header: network.packet_header.0,
            hit_latency: cycles(l2.hit_latency),
            atomic_latency: cycles(l2.atomic_latency),
            far_latency: cycles(l2.far_partition_latency),
            fabric: FabricParameters {
                flit: fabric_flit,
                queue: Duration(fabric_flit.0.saturating_mul(u64::from(l2.fabric_queue))),
            },
            sector_time: if_timed(slice_rate.time_for(Bytes(SECTOR)).max(l2.sector_read_time)),
            request_time: if_timed(l2.clock.duration(Cycles(1))),
            coalescing_window: cycles(l2.coalescing_window),
            coalescing_targets: l2.coalescing_targets as u8,
            coalescer_entries: l2.coalescer_entries,
            atomic_pair_window: l2.atomic_pair_window,
            mshrs: l2.mshrs,
            mshr_targets: l2.mshr_targets,
            credit_batch: network.credits_of(timed).div_ceil(2) as u16,
            set_neighbours: l2.set_neighbours,
            write_back_queue: l2.write_back_queue,
            gpcs: gpcs.clone(),
            partition_of_gpc: partitions_of_gpcs(config),
            tpc_hop_latency: tpc_hop_latency.into_iter().map(cycles).collect(),
            hop_latency_spread: cycles(hop_latency_spread),
            write_sector: l2.sector_write_time,
            partial_write: l2.partial_write_time,
            atomic_sector: l2.atomic_sector_time,
            atomic_neighbour: l2.atomic_sector_pair_time,
            atomic_lane: l2.atomic_lane_time,
            atomic_other_line: l2.atomic_line_switch_time,
            atomic_float_lane: l2.atomic_float_lane_time,
            sets: (lines / u64::from(l2.ways)) as u32,
            ways: l2.ways,
            burst: (config.dram.burst.0 / SECTOR) as u32,
            partial_lines: l2.partial_sector_lines,
            partitions: l2.partitions,
            slices: l2.slices,
            home: Home::of(config),
            dram: Arc::new(DramParameters::new(config)?),
            peers: None,
        })
    }

    /// Sets and ways of the tags; none where nothing takes time and nobody will ask.
    pub fn geometry(&self) -> (u32, u32) {
        if self.timed || self.keeps_tags {
            (self.sets, self.ways)
        } else {
            (0, 0)
        }
    }

    /// Hop latency between a slice and a GPC on top of the shortest. Where both lie is not known:
    /// latencies are spread evenly, and each slice and GPC have one of their own.
    pub fn hop_latency(&self, slice: u32, gpc: u32) -> Duration {
        let mixed = mix((u64::from(slice) << 32) | (u64::from(gpc) + 1));
        let share = (u128::from(mixed) * u128::from(self.hop_latency_spread.0 + 1)) >> 64;
        Duration(share as u64)
    }
}

/// Those of an H200, wired to nothing.
#[cfg(test)]
pub fn parameters_for_tests() -> SliceParameters {
    use lockstep_engine::{LinkKind, Topology};

    let config = lockstep_config::load::<&str>(Some("h200"), &[]).unwrap();
    let mut builder = Topology::builder(config.device.clock);
    let any = builder.partitions("any", 1);
    let link = builder.link(LinkKind {
        name: "any".into(),
        from: any,
        to: any,
        latency: Duration::nanoseconds(50),
        bandwidth: None,
    });
    let wiring = SliceWiring {
        reply: Egress {
            link,
            network: None,
            topic: crate::probe::Topic::Reply,
        },
        drained: link,
        credit: link,
        first_sm: 0,
    };
    let gpcs = GpcMap::of(&config);
    SliceParameters::new(&config, true, Kind::Crossbar, wiring, &gpcs).unwrap()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hop_latencies_differ_and_stay_within_their_spread() {
        let parameters = parameters_for_tests();
        let all: Vec<Duration> = (0..96)
            .flat_map(|slice| (0..8).map(move |gpc| (slice, gpc)))
            .map(|(slice, gpc)| parameters.hop_latency(slice, gpc))
            .collect();
        assert!(all.iter().all(|one| *one <= parameters.hop_latency_spread));
        let first = all.iter().filter(|one| **one == all[0]).count();
        assert!(first < 10, "{first} of {}", all.len());
    }
}
