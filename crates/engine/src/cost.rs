//! What partitions cost the host, and how they are shared out by it.
//!
//! Nothing simulated depends on any of this: it decides who runs a partition, never what happens
//! in it.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use crate::profile::Stopwatch;

/// Costs are kept in sixteenths of a nanosecond, so that smoothing does not round them away.
const SIXTEENTHS: u64 = 16;

/// A measurement counts as at most so many times the cost so far: the host may have run something
/// else in between.
const OUTLIER: u64 = 8;

/// The least that [`OUTLIER`] refers to, in sixteenths of a nanosecond.
const LITTLE: u64 = 1_000 * SIXTEENTHS;

/// The least that [`OUTLIER`] refers to for barriers: nanoseconds for each worker.
const CHEAP_BARRIER: u64 = 200;

/// In which steps costs are measured: the first, then now and then.
pub(crate) const fn is_measured(step: u64) -> bool {
    step < 64 || step.is_multiple_of(8)
}

/// Steps between two looks at whether partitions should be shared out anew.
const BALANCED_EVERY: u64 = 128;

/// After which steps it is looked whether partitions should be shared out anew.
pub(crate) const fn is_balanced(step: u64) -> bool {
    step.is_multiple_of(BALANCED_EVERY) || (step < BALANCED_EVERY && step.is_power_of_two())
}

/// After which steps partitions are put in order anew, the costliest first.
pub(crate) const fn is_ordered(step: u64) -> bool {
    step.is_multiple_of(16) || is_balanced(step)
}

/// Steps for which fewer workers would do before one of them is let go: whenever one comes or goes,
/// partitions change hands and caches get cold.
const HYSTERESIS: u32 = 32;

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

/// Shares partitions out anew if somebody has a twentieth more to do than is fair: from the one with
/// the most to the one with the least, what evens them out best. All others stay where their caches
/// are warm. `loads` says what each partition cost lately.
pub(crate) fn balance(loads: &[u64], owners: &[AtomicU32], workers: usize) {
    let owner = |index: usize| owners[index].load(Ordering::Relaxed) as usize % workers;
    let mut sums = vec![0u64; workers];
    for (index, load) in loads.iter().enumerate() {
        sums[owner(index)] += load;
    }
    let costliest = loads.iter().max().copied().unwrap_or(0);
    let fair = (sums.iter().sum::<u64>() / workers as u64).max(costliest);
    for _ in 0..loads.len() {
        let most = (0..workers).max_by_key(|&worker| sums[worker]).unwrap_or(0);
        let least = (0..workers).min_by_key(|&worker| sums[worker]).unwrap_or(0);
        if sums[most] <= fair + fair / 20 {
            return;
        }
        let apart = sums[most] - sums[least];
        let movable = (0..loads.len())
            .filter(|&index| owner(index) == most && loads[index] > 0 && loads[index] < apart);
        let Some(chosen) = movable.min_by_key(|&index| loads[index].abs_diff(apart / 2)) else {
            return;
        };
        owners[chosen].store(least as u32, Ordering::Relaxed);
        sums[most] -= loads[chosen];
        sums[least] += loads[chosen];
    }
}

/// How many workers steps are worth, by what the epoch barrier turned out to cost. On a host with more to do
/// than processors it may be a thousand times what it is else.
#[derive(Debug, Default)]
pub(crate) struct WorkerCount {
    /// Nanoseconds that the epoch barrier takes beside the work itself, for each worker that takes part.
    barrier_cost: u64,
    /// Workers that took part lately.
    size: usize,
    /// Steps for which fewer would have done.
    unneeded: u32,
}

impl WorkerCount {
    /// Enters one barrier of so many workers. As with costs, one that took very long counts as some
    /// times the others: the host may have run something else for once.
    pub(crate) fn note(&mut self, nanoseconds: u64, workers: usize) {
        let most = self.barrier_cost.max(CHEAP_BARRIER) * OUTLIER;
        let now = (nanoseconds / workers as u64).min(most);
        self.barrier_cost = self.barrier_cost - self.barrier_cost / 4 + now / 4;
    }

    /// How many workers a step of `count` partitions should have: no more than partitions, no more
    /// than have something to do beside the costliest of them, each with enough of it and more than a
    /// further one adds to the barrier, and none but the leader if that takes longer than it saves.
    pub(crate) fn choose(
        &mut self,
        threads: usize,
        count: usize,
        costs: impl Iterator<Item = u64>,
        enough: u64,
    ) -> usize {
        if enough == 0 {
            return threads;
        }
        let most = threads.min(count);
        let (mut sum, mut costliest) = (0u64, 1u64);
        for cost in costs {
            sum += cost;
            costliest = costliest.max(cost);
        }
        // Work and barrier together, sum / n + n * barrier_cost, are least at the root.
        let useful = sum.div_ceil(costliest).min(sum / enough);
        let useful = useful.min((sum / self.barrier_cost.max(1)).isqrt()) as usize;
        let workers = most.min(useful).max(1);
        let together = costliest.max(sum / workers as u64) + self.barrier_cost * workers as u64;
        if workers == 1 || together >= sum {
            // Try again some time: the host may have less to do then.
            self.barrier_cost -= self.barrier_cost.div_ceil(1024);
            return 1;
        }
        if workers >= self.size {
            (self.size, self.unneeded) = (workers, 0);
        } else {
            self.unneeded += 1;
            if self.unneeded >= HYSTERESIS {
                (self.size, self.unneeded) = (self.size - 1, 0);
            }
        }
        self.size.min(most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(loads: &[u64], workers: usize, expected: &[u32]) {
        let dealt = |index| AtomicU32::new((index % workers) as u32);
        let owners: Vec<AtomicU32> = (0..loads.len()).map(dealt).collect();
        balance(loads, &owners, workers);
        let owners: Vec<u32> = owners.into_iter().map(AtomicU32::into_inner).collect();
        assert_eq!(owners, expected);
    }

    #[test]
    fn who_has_the_least_takes_over_from_who_has_the_most() {
        check(&[10, 10, 10, 30], 2, &[0, 0, 0, 1]);
        check(&[30, 0, 30], 2, &[1, 1, 0]);
        check(&[8, 0, 4, 0, 2, 0, 2, 0], 2, &[1, 1, 0, 1, 0, 1, 0, 1]);
        check(&[1, 2, 3], 1, &[0, 0, 0]);
    }

    #[test]
    fn what_is_even_stays() {
        check(&[0, 0, 0, 0], 2, &[0, 1, 0, 1]);
        check(&[100, 100, 100, 104], 2, &[0, 1, 0, 1]);
        // Nothing can be gained: one partition costs more than all others.
        check(&[30, 1, 1], 2, &[0, 1, 0]);
    }

    #[test]
    fn few_partitions_use_few_workers() {
        let choose = |costs: &[u64]| {
            WorkerCount::default().choose(16, costs.len(), costs.iter().copied(), 1_000)
        };
        assert_eq!(choose(&[500, 400]), 1);
        assert_eq!(choose(&[5_000]), 1);
        assert_eq!(choose(&[5_000, 5_000]), 2);
        assert_eq!(choose(&[5_000, 5_000, 300, 300]), 3);
        assert_eq!(choose(&[5_000; 132]), 16);
        assert_eq!(choose(&[50; 132]), 6);
    }

    #[test]
    fn costly_barriers_have_few_workers() {
        let mut worker_count = WorkerCount::default();
        (0..20).for_each(|_| worker_count.note(16_000, 16));
        let workers = worker_count.choose(16, 100, [1_000; 100].into_iter(), 1_000);
        assert!((9..13).contains(&workers), "{workers}");
    }

    #[test]
    fn barriers_that_take_longer_than_they_save_are_tried_again_some_time() {
        let mut worker_count = WorkerCount::default();
        let choose = |worker_count: &mut WorkerCount| {
            worker_count.choose(2, 2, [5_000; 2].into_iter(), 1_000)
        };
        assert_eq!(choose(&mut worker_count), 2);
        worker_count.note(4_000_000, 2);
        assert_eq!(choose(&mut worker_count), 2, "once is not always");
        (0..10).for_each(|_| worker_count.note(20_000, 2));
        let alone = (0..10_000)
            .take_while(|_| choose(&mut worker_count) == 1)
            .count();
        assert!((500..2_000).contains(&alone), "{alone}");
    }

    #[test]
    fn workers_stay_for_a_while() {
        let mut worker_count = WorkerCount::default();
        let mut choose =
            |count: usize| worker_count.choose(16, count, vec![9_000; count].into_iter(), 1_000);
        assert_eq!(choose(8), 8);
        assert_eq!(choose(4), 4, "there are no more partitions");
        assert_eq!(choose(12), 12);
        let costs = |sum: u64| [sum / 12; 12].into_iter();
        assert_eq!(worker_count.choose(16, 12, costs(6_000), 1_000), 12);
        let later = (0..HYSTERESIS * 20).map(|_| worker_count.choose(16, 12, costs(6_000), 1_000));
        assert_eq!(later.last(), Some(6));
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
