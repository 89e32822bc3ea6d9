//! Translation of device memory that is not managed: how much later a request of an SM leaves for L2.
//!
//! Nothing of it ever faults, so no access is kept back: its request leaves when its translation is
//! there. The uTLB is the SM's own; the TLB of the GPC, which SMs of a GPC share, is a copy in each of
//! them, so that what one SM has walked another walks again. Requests to the region of the last one
//! look up nothing.
//!
//! A page that an SM touches for the first time is walked for, one after the other, and nothing behind it
//! passes meanwhile, unless caches are emptied before every launch: what that costs hardware then is in the latencies of launches, and so is
//! the page that is touched before all others. What else is met for the first time, while a TLB has room,
//! takes nothing.
//!
//! Left out: shootdowns when memory is freed.
//!
//! Start reading at [`DeviceTranslation::leaves_at`].

use lockstep_config::TranslationConfig;
use lockstep_units::Hertz;
use lockstep_uvm::{PageSize, Tlb};
use serde::{Deserialize, Serialize};
use std::ops::Range;

use crate::memory::LINE;

/// The shift that makes all memory one region.
const WHOLE: u32 = 63;

/// Pages that are known without a search.
const RECENT: usize = 8;

/// Before the first request.
const NOWHERE: (u64, u64) = (u64::MAX, 0);

/// Translation of device memory in an SM.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct DeviceTranslation {
    /// The page of the last request, and since when its translation is there.
    last: (u64, u64),
    /// Lines of a page, as a power of two.
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
    /// Pages that were touched before, in order, and what the first touch of a page takes; nothing if it is free.
    touched: Vec<u64>,
    first_touch: u64,
    /// Until when nothing passes, because a page was touched for the first time.
    blocked: u64,
    /// Pages in a region of the uTLB, as a power of two.
    page_shift: u32,
    /// Clock of the SM.
    pub clock: Hertz,
    /// Regions whose translation is on its way, and when it will be there.
    on_their_way: Vec<(u64, u64)>,
    /// When the last of all translations so far was there.
    settled: u64,
    /// Pages that were asked for lately, each at the place that its low bits name.
    recent: [u64; RECENT],
}

impl DeviceTranslation {
    /// With empty TLBs; translation is free unless it is `timed`, and first touches are if kernels find caches `cold`.
    #[must_use]
    pub fn new(config: &TranslationConfig, clock: Hertz, timed: bool, cold: bool) -> Self {
        let free = !timed || config.micro_tlb_entries == 0;
        let reach = config.micro_tlb_reach.0.max(1);
        let page = config.page.0.min(reach);
        Self {
            last: if free { (0, 0) } else { NOWHERE },
            // All memory is one region then, which is always there.
            shift: if free {
                WHOLE
            } else {
                (page / LINE).max(1).ilog2()
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
            touched: Vec::new(),
            first_touch: if cold {
                0
            } else {
                config.first_touch_latency.0
            },
            blocked: 0,
            page_shift: (reach / page.max(1)).max(1).ilog2(),
            clock,
            on_their_way: Vec::new(),
            settled: 0,
            recent: [u64::MAX; RECENT],
        }
    }

    /// Whether another one divides memory in the same way.
    #[must_use]
    pub fn fits(&self, other: &Self) -> bool {
        self.shift == other.shift
            && self.page_shift == other.page_shift
            && self.gpc_shift == other.gpc_shift
    }

    /// When a request for a line leaves that could leave at a cycle.
    #[must_use]
    #[inline]
    pub fn leaves_at(&mut self, line: u64, at: u64) -> u64 {
        let page = line >> self.shift;
        if page == self.last.0 && at >= self.last.1 {
            return at;
        }
        self.look_up(page, at)
    }

    /// Lines count as touched: so do their pages.
    pub fn note_touched(&mut self, lines: &[Range<u64>]) {
        if self.shift == WHOLE {
            return;
        }
        for lines in lines.iter().filter(|lines| !lines.is_empty()) {
            for page in lines.start >> self.shift..=(lines.end - 1) >> self.shift {
                if let Err(place) = self.touched.binary_search(&page) {
                    self.touched.insert(place, page);
                }
            }
        }
    }

    /// Memory was given back: what will be there next is other memory, whose pages nobody has touched.
    pub fn released(&mut self, lines: &Range<u64>) {
        let pages = lines.start.div_ceil(1 << self.shift)..lines.end >> self.shift;
        self.touched.retain(|page| !pages.contains(page));
        if pages.contains(&self.last.0) {
            self.last = NOWHERE;
        }
        for page in &mut self.recent {
            if pages.contains(page) {
                *page = u64::MAX;
            }
        }
    }

    fn look_up(&mut self, page: u64, at: u64) -> u64 {
        let region = page >> self.page_shift;
        let recent = page as usize % RECENT;
        // The region of the last request is in the uTLB, as the one that was used last.
        if at >= self.settled
            && region == self.last.0 >> self.page_shift
            && self.recent[recent] == page
        {
            self.last = (page, at);
            return at;
        }
        let at = at.max(self.blocked);
        self.on_their_way.retain(|(_, there)| *there > at);
        let touched = self.touch(page, at);
        let mut under_way = self.on_their_way.iter();
        let there = match under_way.rfind(|(other, _)| *other == region) {
            Some((_, there)) => touched.max(*there),
            None => self.find(region, touched),
        };
        if there > at {
            self.on_their_way.push((region, there));
            self.settled = self.settled.max(there);
        }
        self.recent[recent] = page;
        self.last = (page, there);
        there
    }

    /// When a page is known that is asked for at a cycle, by anyone but the TLBs.
    fn touch(&mut self, page: u64, at: u64) -> u64 {
        if self.first_touch == 0 {
            return at;
        }
        let Err(place) = self.touched.binary_search(&page) else {
            return at;
        };
        self.touched.insert(place, page);
        if self.touched.len() == 1 {
            return at;
        }
        let there = at.max(self.free.1) + self.first_touch;
        self.free.1 = there;
        self.blocked = there;
        there
    }

    /// When the TLBs have a region that is asked for at a cycle.
    fn find(&mut self, region: u64, at: u64) -> u64 {
        if self.micro.find(region).is_some() {
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
            there
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_units::{Bytes, Cycles};

    const REACH: u64 = 16 << 20;

    fn translation(timed: bool) -> DeviceTranslation {
        let config = TranslationConfig {
            page: Bytes(REACH),
            first_touch_latency: Cycles(0),
            micro_tlb_entries: 2,
            micro_tlb_reach: Bytes(REACH),
            micro_tlb_miss_latency: Cycles(10),
            micro_tlb_miss_interval: Cycles(6),
            gpc_tlb_entries: 2,
            gpc_tlb_reach: Bytes(4 * REACH),
            walk_latency: Cycles(150),
            walk_interval: Cycles(90),
        };
        DeviceTranslation::new(&config, Hertz::mega(1_000), timed, false)
    }

    /// With pages of half a region that are walked for when they are touched first.
    fn touching(cold: bool) -> DeviceTranslation {
        let config = TranslationConfig {
            page: Bytes(REACH / 2),
            first_touch_latency: Cycles(300),
            micro_tlb_entries: 2,
            micro_tlb_reach: Bytes(REACH),
            gpc_tlb_reach: Bytes(REACH),
            ..TranslationConfig::default()
        };
        DeviceTranslation::new(&config, Hertz::mega(1_000), true, cold)
    }

    #[test]
    fn pages_are_walked_for_once_and_one_after_the_other() {
        let (mut translation, page) = (touching(false), REACH / 2 / LINE);
        assert_eq!(translation.leaves_at(0, 100), 100, "part of the launch");
        assert_eq!(translation.leaves_at(page, 100), 400);
        assert_eq!(translation.leaves_at(2 * page, 110), 700, "one at a time");
        assert_eq!(translation.leaves_at(page, 120), 700, "behind it");
        assert_eq!(translation.leaves_at(0, 650), 700, "behind it");
        assert_eq!(translation.leaves_at(page, 750), 750);
        translation.released(&(page - 1..2 * page));
        assert_eq!(
            translation.leaves_at(page - 1, 800),
            800,
            "part of it stays"
        );
        assert_eq!(translation.leaves_at(page, 800), 1100, "other memory");
        let mut cold = touching(true);
        assert_eq!(cold.leaves_at(0, 100), 100);
        assert_eq!(cold.leaves_at(page, 100), 100);
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
