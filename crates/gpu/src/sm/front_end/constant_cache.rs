//! The constant cache of an SM.
//!
//! One small cache in sets (IMC and IDC in ncu's names), and behind it a larger one, to which a launch
//! brings its parameters; what else it uses for the first time comes from L2, some lines at a time. The
//! lanes of a load by index are served one address after the other, each when those before it are
//! there; loads of other warps go on meanwhile.
//!
//! The larger cache is that of a GPC (GCC in ncu's names): it passes on a line at a time, to its SMs in
//! turn. Each SM has the share of it that it has when all SMs with blocks of the launch ask.
//!
//! Start reading at [`ConstantCache::line`] for operands and at [`ConstantCache::read`] for loads by
//! index.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::parameters::SmParameters;
use crate::sm::front_end::constant_addresses::ConstantAddresses;
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
    /// Sets of lines, the last used first.
    sets: Vec<Vec<ConstantLine>>,
    /// Lines that the larger cache has: launch and number.
    behind: BTreeSet<(u32, u32)>,
    ways: usize,
    line_bytes: u32,
    miss_latency: u64,
    first_latency: u64,
    replay: u64,
    interval: u64,
    miss_interval: u64,
    /// Cycles between two lines from the larger cache while all SMs of a GPC ask it.
    gpc_interval: u64,
    /// Lines that come from L2 together.
    together: u32,
    /// When another load by index can begin.
    free: u64,
    /// When it can miss.
    miss_free: u64,
    /// What it counted.
    pub stats: LineCacheStats,
}

impl ConstantCache {
    /// An empty cache.
    #[must_use]
    pub fn new(parameters: &SmParameters) -> Self {
        let front_end = &parameters.front_end;
        let ways = front_end.constant_ways.min(front_end.constant_lines);
        Self {
            sets: vec![Vec::new(); (front_end.constant_lines / ways.max(1)).max(1)],
            behind: BTreeSet::new(),
            ways,
            line_bytes: front_end.constant_line,
            miss_latency: front_end.constant_miss,
            first_latency: front_end.constant_first,
            replay: front_end.constant_replay,
            interval: front_end.constant_interval,
            miss_interval: front_end.constant_miss_interval,
            gpc_interval: front_end.gpc_constant_interval,
            together: front_end.constant_fetch_lines,
            free: 0,
            miss_free: 0,
            stats: LineCacheStats::default(),
        }
    }

    /// Whether another one has as many sets.
    #[must_use]
    pub fn fits(&self, other: &Self) -> bool {
        self.sets.len() == other.sets.len() && self.together == other.together
    }

    /// Invalidates everything.
    pub fn clear(&mut self) {
        self.sets.iter_mut().for_each(Vec::clear);
        self.behind.clear();
    }

    /// When the words are there that a load by index asks for, which the pipe takes in a cycle. `share`
    /// is how many of the SMs have blocks, in parts of 256.
    pub fn read(&mut self, launch: u32, words: &ConstantAddresses, taken: u64, share: u32) -> u64 {
        if self.ways == 0 {
            return taken;
        }
        let in_turn = self.gpc_interval * u64::from(share) / 256;
        let interval = self.miss_interval.max(in_turn);
        let begin = taken.max(self.free);
        let mut there = begin;
        for (replays, number) in words.lines(self.line_bytes).enumerate() {
            if replays > 0 {
                there += self.replay;
            }
            self.free = begin + (replays as u64 + 1) * self.interval;
            // A miss has its turn with those of other loads, though it begins later.
            let (misses, turn) = (self.stats.misses.get(), begin.max(self.miss_free));
            let from = self.line(launch, number, there.max(turn));
            if self.stats.misses.get() > misses {
                self.miss_free = turn + interval;
            }
            there = there.max(from);
        }
        there
    }

    /// When a line of constants is there, for an instruction that could issue in a cycle.
    #[inline]
    pub fn line(&mut self, launch: u32, number: u32, cycle: u64) -> u64 {
        let index = number as usize % self.sets.len();
        let lines = &mut self.sets[index];
        let mut all = lines.iter();
        let known = all.position(|line| line.number == number && line.launch == launch);
        if let Some(place) = known {
            self.stats.hits.increment();
            let line = lines[place];
            if place > 0 {
                lines.copy_within(..place, 1);
                lines[0] = line;
            }
            return line.from;
        }
        self.stats.misses.increment();
        // Who waits for code gets its constants meanwhile.
        let from = if cycle == PENDING {
            0
        } else if number < 1 << BANK_SHIFT || !self.behind.insert((launch, number / self.together))
        {
            cycle + self.miss_latency
        } else {
            cycle + self.first_latency
        };
        let line = ConstantLine {
            launch,
            number,
            from,
        };
        lines.insert(0, line);
        lines.truncate(self.ways);
        from
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One SM of an H200 has blocks.
    const ALONE: u32 = 1;

    fn cache() -> ConstantCache {
        let config = lockstep_config::load::<&str>(Some("h200"), &[]).unwrap();
        ConstantCache::new(&SmParameters::new(&config, true).unwrap())
    }

    #[test]
    fn constants_are_kept() {
        let mut cache = cache();
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

    fn words(addresses: impl Iterator<Item = u32>) -> ConstantAddresses {
        let mut words = ConstantAddresses::default();
        words.begin(3);
        addresses.for_each(|address| words.add(address));
        words
    }

    #[test]
    fn lanes_with_addresses_of_their_own_take_turns() {
        let mut cache = cache();
        let four = words((0..4).map(|lane| lane * 4));
        cache.read(1, &four, 100, ALONE);
        let there = cache.read(1, &four, 5000, ALONE);
        assert_eq!(there, 5000 + 3 * cache.replay, "one line, four words");
        assert_eq!(
            cache.read(1, &words([0; 32].into_iter()), 6000, ALONE),
            6000
        );
    }

    #[test]
    fn a_stride_uses_the_sets_that_it_meets() {
        let mut cache = cache();
        let ways = cache.ways as u32;
        let stride = cache.sets.len() as u32 * cache.line_bytes;
        let misses = |cache: &mut ConstantCache, lines: u32| {
            for round in 0..3 {
                if round == 2 {
                    cache.stats = LineCacheStats::default();
                }
                for line in 0..lines {
                    cache.read(1, &words([line * stride].into_iter()), 100_000, ALONE);
                }
            }
            cache.stats.misses.get()
        };
        assert_eq!(misses(&mut cache, ways), 0, "a set holds them");
        assert_eq!(misses(&mut cache, ways + 1), u64::from(ways) + 1);
    }

    #[test]
    fn misses_of_one_load_follow_each_other_and_others_go_on() {
        let mut cache = cache();
        let first = cache.read(1, &words([0].into_iter()), 100, ALONE);
        assert_eq!(first, 100 + cache.first_latency);
        let beside = cache.read(1, &words([4096].into_iter()), 100, ALONE);
        assert!(beside < first + cache.miss_latency, "{beside}");
        let behind = cache.together * cache.line_bytes;
        let two = words([behind, 4 * behind].into_iter());
        let both = cache.read(1, &two, 5000, ALONE);
        assert_eq!(both, 5000 + 2 * cache.first_latency + cache.replay);
        let near = cache.read(1, &words([behind + 64].into_iter()), 9000, ALONE);
        assert_eq!(near, 9000 + cache.miss_latency, "it came along");
    }

    #[test]
    fn sms_of_a_gpc_take_turns_at_the_cache_behind_theirs() {
        let last = |share| {
            let mut cache = cache();
            let lines = |cache: &mut ConstantCache, at| {
                let read = |line: u32| cache.read(1, &words([line * 64].into_iter()), at, share);
                (0..64_u32).map(read).max().unwrap()
            };
            lines(&mut cache, 0);
            lines(&mut cache, 100_000) - 100_000
        };
        let (alone, all) = (last(ALONE), last(256));
        let config = lockstep_config::load::<&str>(Some("h200"), &[]).unwrap();
        let (sms, gpcs) = (u64::from(config.device.sms), u64::from(config.device.gpcs));
        let passed_on = u64::from(config.sm.front_end.gpc_constant_interval);
        assert_eq!(alone, 63 * cache().miss_interval + cache().miss_latency);
        assert_eq!(
            all,
            63 * (passed_on * sms / gpcs / 100) + cache().miss_latency
        );
        assert!(all > 2 * alone, "{alone} and {all}");
    }
}
