//! Which warp of a sub-core issues next.
//!
//! A policy is one file here and one line in [`WARP_SCHEDULERS`]. It is asked every cycle, so it
//! is an enum over plain structs and sees sets of warps as bit masks.

pub mod eligible;
mod greedy_then_oldest;
mod greedy_then_youngest;
mod loose_round_robin;
mod two_level;

pub use eligible::{Ages, WarpMask};
use greedy_then_oldest::GreedyThenOldest;
use greedy_then_youngest::GreedyThenYoungest;
use loose_round_robin::LooseRoundRobin;
use serde::{Deserialize, Serialize};
use two_level::TwoLevel;

/// A scheduler with its state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WarpScheduler {
    /// See [`greedy_then_oldest`](self).
    GreedyThenOldest(GreedyThenOldest),
    /// See [`loose_round_robin`](self).
    LooseRoundRobin(LooseRoundRobin),
    /// See [`greedy_then_youngest`](self).
    GreedyThenYoungest(GreedyThenYoungest),
    /// See [`two_level`](self).
    TwoLevel(TwoLevel),
}

impl WarpScheduler {
    /// The warp to issue, among those that are `ready`.
    #[inline]
    pub fn pick(&mut self, ready: WarpMask, ages: &Ages) -> Option<u8> {
        if ready == 0 {
            return None;
        }
        Some(match self {
            Self::GreedyThenOldest(policy) => policy.pick(ready, ages),
            Self::LooseRoundRobin(policy) => policy.pick(ready),
            Self::GreedyThenYoungest(policy) => policy.pick(ready, ages),
            Self::TwoLevel(policy) => policy.pick(ready, ages),
        })
    }

    /// The scheduler with a name, or with the short form of it; one that goes round a `group` of
    /// warps has so many in it.
    #[must_use]
    pub fn named(name: &str, group: u32) -> Option<Self> {
        let mut all = WARP_SCHEDULERS.iter();
        let policy = all.find(|policy| policy.name == name || policy.short == name)?;
        Some((policy.build)(group))
    }
}

/// A scheduler that a GPU file can name.
pub struct Policy {
    /// Its name.
    pub name: &'static str,
    /// What the literature calls it.
    pub short: &'static str,
    /// What it does.
    pub summary: &'static str,
    /// Makes one, with the size of its group.
    pub build: fn(u32) -> WarpScheduler,
}

/// All schedulers, in the order of the documentation.
pub const WARP_SCHEDULERS: &[Policy] = &[
    Policy {
        name: "greedy-then-oldest",
        short: "gto",
        summary: "stay with one warp until it stalls, then take the oldest",
        build: |_| WarpScheduler::GreedyThenOldest(GreedyThenOldest::default()),
    },
    Policy {
        name: "loose-round-robin",
        short: "lrr",
        summary: "go round the warps, passing over those that are not ready",
        build: |_| WarpScheduler::LooseRoundRobin(LooseRoundRobin::default()),
    },
    Policy {
        name: "greedy-then-youngest",
        short: "cggty",
        summary: "stay with one warp until it stalls, then take the youngest",
        build: |_| WarpScheduler::GreedyThenYoungest(GreedyThenYoungest::default()),
    },
    Policy {
        name: "two-level",
        short: "tl",
        summary: "go round a few warps, replacing those that are not ready",
        build: |group| WarpScheduler::TwoLevel(TwoLevel::new(group)),
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    fn picks(name: &str, ready: &[WarpMask]) -> Vec<u8> {
        let mut scheduler = WarpScheduler::named(name, 4).unwrap();
        // Slot 5 is the oldest, then 9, then 1.
        let mut ages = [100; 64];
        (ages[5], ages[9], ages[1]) = (1, 2, 3);
        ready
            .iter()
            .filter_map(|ready| scheduler.pick(*ready, &ages))
            .collect()
    }

    #[test]
    fn greedy_stays_then_takes_the_oldest() {
        let all = 1 << 1 | 1 << 5 | 1 << 9;
        assert_eq!(
            picks("greedy-then-oldest", &[1 << 9, all, all & !(1 << 9), all]),
            [9, 9, 5, 5]
        );
    }

    #[test]
    fn round_robin_goes_round() {
        let all = 1 << 1 | 1 << 5 | 1 << 9;
        assert_eq!(
            picks("loose-round-robin", &[all, all, all, all, 1 << 9, all]),
            [1, 5, 9, 1, 9, 1]
        );
    }

    #[test]
    fn greedy_stays_then_takes_the_youngest() {
        let all = 1 << 1 | 1 << 5 | 1 << 9;
        assert_eq!(
            picks("greedy-then-youngest", &[1 << 9, all, all & !(1 << 9), all]),
            [9, 9, 1, 1]
        );
    }

    #[test]
    fn two_levels_go_round_a_group() {
        let all = 0x3ff;
        // The group is 5, 9, 1 and, of equal age, 0; then 5 leaves and 2 comes.
        assert_eq!(
            picks("two-level", &[all, all, all, all, all & !(1 << 5), all]),
            [0, 1, 5, 9, 0, 1]
        );
    }

    #[test]
    fn names_are_unique_and_found() {
        for policy in WARP_SCHEDULERS {
            assert!(WarpScheduler::named(policy.name, 4).is_some());
            assert_eq!(
                WarpScheduler::named(policy.short, 4),
                WarpScheduler::named(policy.name, 4)
            );
            let same = WARP_SCHEDULERS.iter().filter(|p| p.name == policy.name);
            assert_eq!(same.count(), 1);
        }
        assert!(WarpScheduler::named("none", 4).is_none());
    }
}
