//! The section `[l1]`: the data cache of an SM, L1TEX in NVIDIA's documents.

use crate::limits::Limit;
use lockstep_units::{Bytes, BytesPerCycle, Cycles};
use serde::{Deserialize, Serialize};

/// The data cache of one SM. Its size is what shared memory leaves of the unified memory.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct L1Config {
    /// Bytes of a tag.
    pub line: Bytes,
    /// Bytes that are fetched and counted.
    pub sector: Bytes,
    /// Sets; their ways follow from the size that shared memory leaves.
    pub sets: u32,
    /// Part of that size that holds no lines.
    #[serde(default)]
    pub reserved: Bytes,
    /// Lines of a set that are candidates for replacement, drawn at random; the least recently used of
    /// them is evicted (sampled LRU). With 0 all lines of the set are candidates (LRU).
    #[serde(default)]
    pub replacement_candidates: u32,
    /// From issue of a load of 32 bits a lane that hits to the issue of a dependent instruction.
    pub hit_latency: Cycles,
    /// Tags that stores and strong accesses look up in a cycle.
    pub tag_lookups_per_cycle: u32,
    /// Tags that loads look up in a cycle.
    #[serde(default = "four")]
    pub load_tag_lookups_per_cycle: u32,
    /// Between two lines that loads ask L2 for, in hundredths of a cycle.
    #[serde(default = "five_quarters")]
    pub miss_interval: u32,
    /// Bytes that hits deliver in a cycle: as many banks, of 4 bytes each, as that takes.
    pub bytes_per_cycle: BytesPerCycle,
    /// Bytes that stores pass on in a cycle.
    pub store_bytes_per_cycle: BytesPerCycle,
    /// Misses that can be outstanding, in sectors (MSHRs).
    pub mshrs: u32,
    /// The write-combining window: how long a store is combined with one before it to the same lines.
    pub write_combining_window: Cycles,
    /// The same for a store of another warp than the first to the line; not longer than
    /// `write-combining-window`.
    #[serde(default)]
    pub cross_warp_combining_window: Cycles,
    /// Lines of the write-combining buffer.
    #[serde(default = "many_lines")]
    pub write_combining_lines: u32,
}

fn four() -> u32 {
    4
}

fn five_quarters() -> u32 {
    125
}

fn many_lines() -> u32 {
    32
}

impl L1Config {
    pub(super) fn limits(&self) -> Vec<Limit> {
        vec![
            Limit::new("l1.line", self.line.0).power_of_two(),
            Limit::new("l1.sector", self.sector.0).power_of_two(),
            Limit::new("l1.sets", self.sets).from(1).to(4096),
            Limit::new("l1.replacement-candidates", self.replacement_candidates).to(64),
            Limit::new("l1.tag-lookups-per-cycle", self.tag_lookups_per_cycle).from(1),
            Limit::new(
                "l1.load-tag-lookups-per-cycle",
                self.load_tag_lookups_per_cycle,
            )
            .from(1)
            .to(32),
            Limit::new("l1.miss-interval", self.miss_interval).to(100_000),
            Limit::new("l1.bytes-per-cycle", self.bytes_per_cycle.get())
                .from(4)
                .to(128)
                .power_of_two(),
            Limit::new("l1.write-combining-lines", self.write_combining_lines)
                .from(1)
                .to(1024),
        ]
    }
}
