//! The constant cache of an SM.
//!
//! One small cache (IMC in ncu's names), and behind it a larger one, to which a launch brings its
//! parameters; what else it uses for the first time comes from L2.
//!
//! Start reading at [`ConstantCache::line`].

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::parameters::SmParameters;
use crate::sm::front_end::issue_table::BANK_SHIFT;
use crate::sm::now::PENDING;
use crate::statistics::LineCacheStats;

/// A line of constants that is here.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
struct ConstantLine {
    launch: u32,
    number: u32,
    /// Cycle from which it is there.
    from: u64,
}

/// The constant cache.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ConstantCache {
    /// The last used first.
    lines: Vec<ConstantLine>,
    /// Lines that the larger cache has: launch and number.
    behind: BTreeSet<(u32, u32)>,
    capacity: usize,
    miss_latency: u64,
    first_latency: u64,
    /// What it counted.
    pub stats: LineCacheStats,
}

impl ConstantCache {
    /// An empty cache.
    #[must_use]
    pub fn new(parameters: &SmParameters) -> Self {
        Self {
            lines: Vec::new(),
            behind: BTreeSet::new(),
            capacity: parameters.front_end.constant_lines,
            miss_latency: parameters.front_end.constant_miss,
            first_latency: parameters.front_end.constant_first,
            stats: LineCacheStats::default(),
        }
    }

    /// Invalidates everything.
    pub fn clear(&mut self) {
        self.lines.clear();
        self.behind.clear();
    }

    /// When a line of constants is there, for an instruction that could issue in a cycle.
    #[inline]
    pub fn line(&mut self, launch: u32, number: u32, cycle: u64) -> u64 {
        let mut all = self.lines.iter();
        let known = all.position(|line| line.number == number && line.launch == launch);
        if let Some(place) = known {
            self.stats.hits.increment();
            let line = self.lines[place];
            if place > 0 {
                self.lines.copy_within(..place, 1);
                self.lines[0] = line;
            }
            return line.from;
        }
        self.stats.misses.increment();
        // Who waits for code gets its constants meanwhile.
        let from = if cycle == PENDING {
            0
        } else if number < 1 << BANK_SHIFT || !self.behind.insert((launch, number)) {
            cycle + self.miss_latency
        } else {
            cycle + self.first_latency
        };
        let line = ConstantLine {
            launch,
            number,
            from,
        };
        self.lines.insert(0, line);
        self.lines.truncate(self.capacity);
        from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_kept() {
        let config = lockstep_config::load::<&str>(Some("h200"), &[]).unwrap();
        let mut cache = ConstantCache::new(&SmParameters::new(&config, true).unwrap());
        let there = cache.line(3, 5, 100);
        assert_eq!(there, 100 + cache.miss_latency, "a parameter");
        assert_eq!(cache.line(3, 5, 200), there);
        assert!(cache.line(4, 5, 300) > 300, "another launch");
        let table = 3 << BANK_SHIFT;
        let there = cache.line(3, table, 400);
        assert_eq!(there, 400 + cache.first_latency);
        for number in 100..200 {
            cache.line(3, number, 500);
        }
        let again = cache.line(3, table, 1000);
        assert_eq!(again, 1000 + cache.miss_latency, "the larger cache has it");
    }
}
