//! What partitions cost the host, and how they are shared out by it.
//!
//! Nothing simulated depends on any of this: it decides who runs a partition, never what happens
//! in it.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::profile::Stopwatch;

/// Costs are kept in sixteenths of a nanosecond, so that smoothing does not round them away.
const SIXTEENTHS: u64 = 16;

/// A measurement counts as at most so many times the cost so far: the host may have run something
/// else in between.
const OUTLIER: u64 = 8;

/// The least that [`OUTLIER`] refers to, in sixteenths of a nanosecond.
const LITTLE: u64 = 1_000 * SIXTEENTHS;

/// In which steps costs are measured: the first, then now and then.
pub(crate) const fn is_measured(step: u64) -> bool {
    step < 64 || step.is_multiple_of(8)
}

/// After which steps it is looked whether partitions should be shared out anew.
pub(crate) const fn is_balanced(step: u64) -> bool {
    step.is_multiple_of(512) || (step < 512 && step.is_power_of_two())
}

/// Nanoseconds that a partition is expected to take.
#[inline]
pub(crate) fn expected(cost: &AtomicU64) -> u64 {
    cost.load(Ordering::Relaxed) / SIXTEENTHS
}

/// Lets a measurement count for a quarter of the cost.
pub(crate) fn note(cost: &AtomicU64, watch: Stopwatch) {
    let now = watch.read().saturating_mul(SIXTEENTHS);
    let after = match cost.load(Ordering::Relaxed) {
        0 => now,
        before => before - before / 4 + now.min(before.max(LITTLE) * OUTLIER) / 4,
    };
    cost.store(after, Ordering::Relaxed);
}

/// Who runs what, by measured cost.
#[derive(Debug)]
pub(crate) struct Shares {
    /// For each partition its worker.
    pub owners: Vec<u32>,
    /// All partitions, the dearest first.
    pub order: Vec<u32>,
}

impl Shares {
    /// Deals partitions out in turn.
    pub(crate) fn new(partitions: usize, workers: usize) -> Self {
        Self {
            owners: (0..partitions)
                .map(|index| (index % workers) as u32)
                .collect(),
            order: (0..partitions as u32).collect(),
        }
    }

    /// Gives every partition to the worker with the least to do so far, the dearest first, if
    /// somebody has a tenth more to do than the mean. Else all stay where their caches are warm.
    pub(crate) fn balance(&mut self, costs: &[AtomicU64], workers: usize) {
        let costs: Vec<u64> = costs
            .iter()
            .map(|cost| cost.load(Ordering::Relaxed))
            .collect();
        let mut loads = vec![0u64; workers];
        for (index, cost) in costs.iter().enumerate() {
            loads[self.owners[index] as usize] += cost;
        }
        let (sum, most) = (loads.iter().sum::<u64>(), loads.iter().max());
        let dearest = costs.iter().max().copied().unwrap_or(0);
        let fair = (sum / workers as u64).max(dearest);
        if most.is_none_or(|most| *most <= fair + fair / 10) {
            return;
        }
        self.order
            .sort_by_key(|&index| (std::cmp::Reverse(costs[index as usize]), index));
        // Load, then count: partitions that cost nothing are dealt out in turn.
        let mut loads = vec![(0u64, 0usize); workers];
        for &index in &self.order {
            let index = index as usize;
            let lightest = (0..workers)
                .min_by_key(|&worker| loads[worker])
                .unwrap_or(0);
            self.owners[index] = lightest as u32;
            loads[lightest].0 += costs[index];
            loads[lightest].1 += 1;
        }
    }
}

/// What meeting other workers costs beside the work itself, as it turned out. On a host with more
/// to do than processors it may be a thousand times what it is else.
#[derive(Debug, Default)]
pub(crate) struct Meeting {
    nanoseconds: u64,
}

impl Meeting {
    /// Enters one meeting.
    pub(crate) fn note(&mut self, nanoseconds: u64) {
        self.nanoseconds = self.nanoseconds - self.nanoseconds / 4 + nanoseconds / 4;
    }

    /// How many workers a step is worth: no more than it has partitions, no more than have
    /// something to do beside the dearest of them, each with enough of it, and none but the leader
    /// if meeting takes longer than it saves.
    pub(crate) fn worth(
        &mut self,
        threads: usize,
        partitions: usize,
        costs: impl Iterator<Item = u64>,
        enough: u64,
    ) -> usize {
        if enough == 0 {
            return threads;
        }
        let (mut sum, mut dearest) = (0u64, 1u64);
        for cost in costs {
            sum += cost;
            dearest = dearest.max(cost);
        }
        let useful = sum.div_ceil(dearest).min(sum / enough);
        let workers = threads.min(partitions).min(useful as usize).max(1);
        let together = dearest.max(sum / workers as u64) + self.nanoseconds;
        if workers > 1 && together >= sum {
            // Try again some time: the host may have less to do then.
            self.nanoseconds -= self.nanoseconds.div_ceil(1024);
            return 1;
        }
        workers
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(costs: &[u64], workers: usize, expected: &[u32]) {
        let costs: Vec<AtomicU64> = costs.iter().map(|&cost| AtomicU64::new(cost)).collect();
        let mut shares = Shares::new(costs.len(), workers);
        shares.balance(&costs, workers);
        assert_eq!(shares.owners, expected);
    }

    #[test]
    fn the_dear_are_spread_and_the_cheap_fill_up() {
        check(&[10, 10, 10, 30], 2, &[1, 1, 1, 0]);
        check(&[30, 0, 30], 2, &[0, 0, 1]);
        check(&[1, 2, 3], 1, &[0, 0, 0]);
    }

    #[test]
    fn what_is_even_stays() {
        check(&[0, 0, 0, 0], 2, &[0, 1, 0, 1]);
        check(&[10, 10, 10, 11], 2, &[0, 1, 0, 1]);
        // Nothing can be gained: one partition costs more than all others.
        check(&[30, 1, 2], 2, &[0, 1, 0]);
    }

    #[test]
    fn few_partitions_use_few_workers() {
        let worth = |costs: &[u64]| {
            let costs_of = costs.iter().copied();
            Meeting::default().worth(16, costs.len(), costs_of, 1_000)
        };
        assert_eq!(worth(&[500, 400]), 1);
        assert_eq!(worth(&[5_000]), 1);
        assert_eq!(worth(&[5_000, 5_000]), 2);
        assert_eq!(worth(&[5_000, 5_000, 300, 300]), 3);
        assert_eq!(worth(&[5_000; 132]), 16);
        assert_eq!(worth(&[50; 132]), 6);
    }

    #[test]
    fn meetings_that_take_longer_than_they_save_are_tried_again_some_time() {
        let mut meeting = Meeting::default();
        let mut worth = |meeting: &mut Meeting| meeting.worth(2, 2, [5_000; 2].into_iter(), 1_000);
        assert_eq!(worth(&mut meeting), 2);
        meeting.note(40_000);
        let alone = (0..10_000).take_while(|_| worth(&mut meeting) == 1).count();
        assert!((500..1_000).contains(&alone), "{alone}");
    }

    #[test]
    fn an_outlier_counts_little() {
        let cost = AtomicU64::new(LITTLE);
        let watch = Stopwatch::start();
        std::thread::sleep(std::time::Duration::from_millis(2));
        note(&cost, watch);
        assert!(expected(&cost) < 3_000);
    }
}
