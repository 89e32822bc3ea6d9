//! Page walks: how long one takes, and the cache of upper entries.

use lockstep_config::uvm::WalkConfig;
use serde::{Deserialize, Serialize};

use crate::geometry::PageSize;
use crate::tlb::Tlb;

/// How long walks take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageWalk {
    levels: bool,
    latency: u64,
    latency_large: u64,
    depth: u32,
    level: u64,
}

/// Bits of a page's number below each directory, from the lowest: 4 KiB entries, then the levels
/// above.
const BITS: [u32; 6] = [0, 9, 17, 26, 35, 44];

impl PageWalk {
    /// From a configuration that was checked.
    #[must_use]
    pub fn new(config: &WalkConfig) -> Self {
        Self {
            levels: config.mode == "levels",
            latency: config.latency.0,
            latency_large: config.latency_large.0,
            depth: config.levels,
            level: config.level_latency.0,
        }
    }

    /// Cycles of a walk to a page that is mapped with an entry of some size. Upper entries that it
    /// reads are in the cache then.
    pub fn cycles(&self, page: u64, size: PageSize, cache: &mut WalkCache) -> u64 {
        if !self.levels {
            return match size {
                PageSize::Large => self.latency_large,
                _ => self.latency,
            };
        }
        let leaf = if size == PageSize::Large { 1 } else { 0 };
        let mut reads = 1;
        for level in leaf + 1..self.depth {
            let bits = BITS[level.min(5) as usize];
            // Levels are reported apart by the high bits, which no page number has.
            let key = page >> bits | u64::from(level) << 56;
            if cache.look_up(key) {
                break;
            }
            reads += 1;
        }
        reads * self.level
    }
}

/// Upper entries that were read lately.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WalkCache {
    entries: Option<Tlb>,
    /// Lookups.
    pub lookups: u64,
    /// Those that found something.
    pub hits: u64,
}

impl WalkCache {
    /// An empty cache.
    #[must_use]
    pub fn new(entries: u32) -> Self {
        Self {
            entries: (entries > 0).then(|| Tlb::new(entries, 0)),
            lookups: 0,
            hits: 0,
        }
    }

    /// Whether an entry is here; it is afterwards.
    fn look_up(&mut self, key: u64) -> bool {
        let Some(entries) = &mut self.entries else {
            return false;
        };
        self.lookups += 1;
        if entries.find(key).is_some() {
            self.hits += 1;
            return true;
        }
        entries.insert(key, PageSize::Small, false, 0);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lockstep_units::Cycles;

    #[test]
    fn a_second_walk_nearby_reads_one_entry() {
        let config = WalkConfig {
            mode: "levels".into(),
            level_latency: Cycles(10),
            ..WalkConfig::default()
        };
        let walk = PageWalk::new(&config);
        let mut cache = WalkCache::new(64);
        assert_eq!(walk.cycles(1000, PageSize::Small, &mut cache), 50);
        assert_eq!(walk.cycles(1001, PageSize::Small, &mut cache), 10);
        assert_eq!(walk.cycles(1001, PageSize::Large, &mut cache), 10);
        assert_eq!(
            walk.cycles(1000 + (1 << 17), PageSize::Small, &mut cache),
            30
        );
    }
}
