//! Translation of device memory that is not managed: how much later a request of an SM leaves for L2.
//!
//! Nothing of it ever faults, so no access is kept back: its request leaves when its translation is
//! there. The uTLB is the SM's own; the TLB of the GPC, which SMs of a GPC share, is a copy in each of
//! them, so that what one SM has walked another walks again. Requests to the region of the last one
//! look up nothing.
//!
//! What is met for the first time, while a TLB has room, takes nothing: what that costs hardware is in
//! the latencies of first accesses and launches. So programs that fit into the TLBs are not touched.
//!
//! Left out: shootdowns when memory is freed.
//!
//! Start reading at [`DeviceTranslation::leaves_at`].

use lockstep_config::TranslationConfig;
use lockstep_units::Hertz;
use lockstep_uvm::{PageSize, Tlb};
use serde::{Deserialize, Serialize};

use crate::memory::LINE;

/// The shift that makes all memory one region.
const WHOLE: u32 = 63;

/// Before the first request.
const NOWHERE: (u64, u64) = (u64::MAX, 0);

/// Translation of device memory in an SM.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceTranslation {
    /// The region of the last request, and since when its translation is there.
    last: (u64, u64),
    /// Lines of a region, as a power of two.
    shift: u32,
    /// Entries of the uTLB, each a region.
    micro: Tlb,
    /// Entries of the TLB of the GPC.
    gpc: Tlb,
    /// Regions of the uTLB in one of the TLB of the GPC, as a power of two.
    gpc_shift: u32,
    /// What a miss in the uTLB takes, and cycles between two of them.
    micro_miss: (u64, u64),
    /// What a walk takes, and cycles between two of them.
    walk: (u64, u64),
    /// When the next miss and the next walk can begin.
    free: (u64, u64),
    /// Clock of the SM.
    pub clock: Hertz,
    /// Regions whose translation is on its way, and when it will be there.
    on_their_way: Vec<(u64, u64)>,
}

impl DeviceTranslation {
    /// With empty TLBs; translation is free unless it is `timed`.
    #[must_use]
    pub fn new(config: &TranslationConfig, clock: Hertz, timed: bool) -> Self {
        let free = !timed || config.micro_tlb_entries == 0;
        let reach = config.micro_tlb_reach.0.max(1);
        Self {
            last: if free { (0, 0) } else { NOWHERE },
            // All memory is one region then, which is always there.
            shift: if free {
                WHOLE
            } else {
                (reach / LINE).max(1).ilog2()
            },
            micro: Tlb::new(config.micro_tlb_entries, 0),
            gpc: Tlb::new(config.gpc_tlb_entries, 0),
            gpc_shift: (config.gpc_tlb_reach.0 / reach).max(1).ilog2(),
            micro_miss: (
                config.micro_tlb_miss_latency.0,
                config.micro_tlb_miss_interval.0,
            ),
            walk: (config.walk_latency.0, config.walk_interval.0),
            free: (0, 0),
            clock,
            on_their_way: Vec::new(),
        }
    }

    /// Whether another one divides memory in the same way.
    #[must_use]
    pub fn fits(&self, other: &Self) -> bool {
        self.shift == other.shift && self.gpc_shift == other.gpc_shift
    }

    /// When a request for a line leaves that could leave at a cycle.
    #[must_use]
    #[inline]
    pub fn leaves_at(&mut self, line: u64, at: u64) -> u64 {
        let region = line >> self.shift;
        if region == self.last.0 && at >= self.last.1 {
            return at;
        }
        self.look_up(region, at)
    }

    fn look_up(&mut self, region: u64, at: u64) -> u64 {
        self.on_their_way.retain(|(_, there)| *there > at);
        let mut under_way = self.on_their_way.iter();
        let there = if let Some((_, there)) = under_way.find(|(other, _)| *other == region) {
            *there
        } else if self.micro.find(region).is_some() {
            at
        } else {
            let mut there = at;
            if self.micro.insert(region, PageSize::Small, false, 0) {
                let begin = at.max(self.free.0);
                self.free.0 = begin + self.micro_miss.1;
                there = begin + self.micro_miss.0;
            }
            let table = region >> self.gpc_shift;
            if self.gpc.find(table).is_none() && self.gpc.insert(table, PageSize::Small, false, 0) {
                let begin = there.max(self.free.1);
                self.free.1 = begin + self.walk.1;
                there = begin + self.walk.0;
            }
            if there > at {
                self.on_their_way.push((region, there));
            }
            there
        };
        self.last = (region, there);
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_units::{Bytes, Cycles};

    const REACH: u64 = 16 << 20;

    fn translation(timed: bool) -> DeviceTranslation {
        let config = TranslationConfig {
            micro_tlb_entries: 2,
            micro_tlb_reach: Bytes(REACH),
            micro_tlb_miss_latency: Cycles(10),
            micro_tlb_miss_interval: Cycles(6),
            gpc_tlb_entries: 2,
            gpc_tlb_reach: Bytes(4 * REACH),
            walk_latency: Cycles(150),
            walk_interval: Cycles(90),
        };
        DeviceTranslation::new(&config, Hertz::mega(1_000), timed)
    }

    fn line(region: u64) -> u64 {
        region * REACH / LINE
    }

    #[test]
    fn what_fits_takes_nothing() {
        let mut translation = translation(true);
        for at in [100, 200, 300] {
            assert_eq!(translation.leaves_at(line(0), at), at);
            assert_eq!(translation.leaves_at(line(1) + 7, at + 1), at + 1);
        }
    }

    #[test]
    fn a_request_waits_for_its_translation_and_others_with_it() {
        let mut translation = translation(true);
        for region in 0..2 {
            assert_eq!(translation.leaves_at(line(region), 100), 100);
        }
        assert_eq!(translation.leaves_at(line(2), 200), 210, "the GPC has it");
        assert_eq!(translation.leaves_at(line(2) + 7, 205), 210, "the same");
        assert_eq!(translation.leaves_at(line(2), 300), 300, "it is there");
        assert_eq!(translation.leaves_at(line(1), 400), 400, "two entries");
        assert_eq!(translation.leaves_at(line(0), 500), 510, "it had to go");
        assert_eq!(translation.leaves_at(line(3), 500), 516, "one at a time");
        assert_eq!(translation.leaves_at(line(4), 600), 610, "room for a table");
        assert_eq!(translation.leaves_at(line(8), 700), 860, "a walk");
        assert_eq!(translation.leaves_at(line(0), 701), 950, "the next walk");
    }

    #[test]
    fn translation_is_free_where_nothing_is_timed() {
        let mut translation = translation(false);
        for region in 0..64 {
            assert_eq!(translation.leaves_at(line(region), 100), 100);
        }
    }
}
