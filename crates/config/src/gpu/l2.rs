//! The section `[l2]`: the cache shared by all SMs.

use crate::limits::Limit;
use lockstep_units::{Bytes, BytesPerCycle, Cycles, Duration, Hertz};
use serde::{Deserialize, Serialize};

/// The cache shared by all SMs.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct L2Config {
    /// Data held by all slices together.
    pub capacity: Bytes,
    /// Slices; a line belongs to one by the hash of its address.
    pub slices: u32,
    /// Neighbouring bytes that are interleaved over the same few slices; a power of two, a line at least.
    pub interleave_region: Bytes,
    /// Over how many slices they are interleaved; the number of slices is a multiple.
    pub interleave_slices: u32,
    /// Bytes after which the next of these slices follows; a power of two, a line at least.
    pub interleave_granularity: Bytes,
    /// Neighbouring interleaved regions that lie evenly apart over the slices; where the next so many
    /// begin is hashed. A power of two.
    #[serde(default = "four")]
    pub interleave_regions: u32,
    /// Partitions of the cache; a slice in the other partition is farther away.
    pub partitions: u32,
    /// GPCs that are attached to the first partition, where there are two; without the list, the first
    /// half of them.
    #[serde(default)]
    pub first_partition_gpcs: Vec<u32>,
    /// Bytes of a tag.
    pub line: Bytes,
    /// Bytes that are fetched and counted.
    pub sector: Bytes,
    /// Lines of a set.
    pub ways: u32,
    /// Clock of slices and interconnect.
    pub clock: Hertz,
    /// Inside a slice, from accepting a request to answering a hit, in SM cycles.
    pub hit_latency: Cycles,
    /// Inside a slice, from accepting an atomic to its result, in SM cycles.
    pub atomic_latency: Cycles,
    /// What crossing the fabric to a slice of the other partition and back adds, in SM cycles.
    pub far_partition_latency: Cycles,
    /// Bytes that a slice exchanges with the other partition in one of its cycles, each way.
    #[serde(default = "fabric_bytes_per_cycle")]
    pub fabric_bytes_per_cycle: BytesPerCycle,
    /// Flits of 32 bytes that wait at a slice to cross to the other partition, or from there to it, before
    /// the slice takes up nothing else.
    #[serde(default = "fabric_queue")]
    pub fabric_queue: u32,
    /// Bytes that a slice delivers in one of its cycles.
    pub bytes_per_cycle: BytesPerCycle,
    /// How long a slice takes to read a sector and to pass it on, on average over many; not less than
    /// `bytes-per-cycle` says.
    #[serde(default)]
    pub sector_read_time: Duration,
    /// How long a slice takes to write a sector that comes from an SM or from DRAM.
    pub sector_write_time: Duration,
    /// How much longer it is busy with a request if some of its sectors are written only in part.
    pub partial_write_time: Duration,
    /// How long an atomic occupies the slice, for each sector it touches.
    pub atomic_sector_time: Duration,
    /// How long with the other sector of the same 64 bytes, if the atomic touches both.
    pub atomic_sector_pair_time: Duration,
    /// How long it does so for each lane, if lanes address the same word.
    pub atomic_lane_time: Duration,
    /// The same if the atomic before was on another line; not less than the others.
    #[serde(default)]
    pub atomic_line_switch_time: Duration,
    /// As `atomic-lane-time` for floating-point additions.
    pub atomic_float_lane_time: Duration,
    /// Partially written lines of a set that wait for DRAM when they are read; of older ones, SMs of the
    /// same partition read what was written. With 0 all of them wait.
    #[serde(default)]
    pub partial_sector_lines: u32,
    /// The coalescing window: how long after a read requests of SMs of the same GPC for the same sectors
    /// are answered with it, in SM cycles; 0 for never.
    pub coalescing_window: Cycles,
    /// SMs that one coalesced request and its answer serve.
    #[serde(default = "four")]
    pub coalescing_targets: u32,
    /// Reads of a slice that later ones can be coalesced with: the last so many.
    #[serde(default = "coalescer_entries")]
    pub coalescer_entries: u32,
    /// How far apart the atomics of one instruction on the two sectors of the same 64 bytes arrive at
    /// most; what comes later takes `atomic-sector-time`.
    #[serde(default = "atomic_pair_window")]
    pub atomic_pair_window: Duration,
    /// Lines of a slice whose misses can be outstanding (MSHRs); a further miss stalls the slice until one
    /// is filled. 0 for any number.
    #[serde(default)]
    pub mshrs: u32,
    /// Requests that an MSHR has room for, the first miss among them; one more for its line stalls the slice
    /// until the line is filled. 0 for any number.
    #[serde(default)]
    pub mshr_targets: u32,
    /// Lines of neighbouring addresses that are in neighbouring sets; a power of two.
    #[serde(default = "eight")]
    pub set_neighbours: u32,
    /// So much of what is written back waits at the channel before the cache waits for it.
    #[serde(default = "write_back_queue")]
    pub write_back_queue: Duration,
}

fn fabric_bytes_per_cycle() -> BytesPerCycle {
    "64 B/cycle".parse().expect("a bandwidth")
}

fn fabric_queue() -> u32 {
    64
}

fn four() -> u32 {
    4
}

fn eight() -> u32 {
    8
}

fn coalescer_entries() -> u32 {
    64
}

fn atomic_pair_window() -> Duration {
    Duration::nanoseconds(4)
}

fn write_back_queue() -> Duration {
    Duration::nanoseconds(200)
}

impl L2Config {
    pub(super) fn limits(&self) -> Vec<Limit> {
        vec![
            Limit::new("l2.slices", self.slices).from(1).to(4096),
            Limit::new("l2.capacity", self.capacity.0).to(1 << 30),
            Limit::new("l2.partitions", self.partitions).from(1).to(64),
            Limit::new("l2.ways", self.ways).from(1).to(1024),
            Limit::new("l2.partial-sector-lines", self.partial_sector_lines).to(1024),
            Limit::new("l2.coalescing-targets", self.coalescing_targets)
                .from(1)
                .to(255),
            Limit::new("l2.coalescer-entries", self.coalescer_entries)
                .from(1)
                .to(4096),
            Limit::new("l2.fabric-queue", self.fabric_queue).to(1 << 20),
            Limit::new("l2.mshrs", self.mshrs).to(1 << 16),
            Limit::new("l2.mshr-targets", self.mshr_targets).to(1 << 16),
            Limit::new("l2.interleave-regions", self.interleave_regions)
                .from(1)
                .to(64)
                .power_of_two(),
            Limit::new("l2.set-neighbours", self.set_neighbours)
                .from(1)
                .to(64)
                .power_of_two(),
            Limit::new("l2.line", self.line.0).power_of_two(),
            Limit::new("l2.sector", self.sector.0).power_of_two(),
        ]
    }
}
