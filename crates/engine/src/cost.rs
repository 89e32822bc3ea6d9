//! What partitions cost the host, and how they are shared out by it.
//!
//! Nothing simulated depends on any of this: it decides who runs a partition, never what happens
//! in it.

use std::sync::atomic::{AtomicU64, Ordering};

/// Costs are kept in sixteenths of a nanosecond, so that smoothing does not round them away.
const SIXTEENTHS: u64 = 16;

/// In which steps costs are measured: the first, then now and then.
pub(crate) const fn is_measured(step: u64) -> bool {
    step < 64 || step.is_multiple_of(32)
}

/// After which steps partitions are shared out anew.
pub(crate) const fn is_balanced(step: u64) -> bool {
    step == 64 || step.is_multiple_of(2048)
}

/// Nanoseconds that a partition is expected to take.
pub(crate) fn expected(cost: &AtomicU64) -> u64 {
    cost.load(Ordering::Relaxed) / SIXTEENTHS
}

/// Measures one run of a partition.
pub(crate) struct Timer(std::time::Instant);

impl Timer {
    #[expect(
        clippy::disallowed_methods,
        reason = "which worker runs a partition never shows"
    )]
    pub(crate) fn start() -> Self {
        Self(std::time::Instant::now())
    }

    /// Lets the run count for an eighth of the cost.
    pub(crate) fn stop(self, cost: &AtomicU64) {
        let now = (self.0.elapsed().as_nanos() as u64).saturating_mul(SIXTEENTHS);
        let before = match cost.load(Ordering::Relaxed) {
            0 => now,
            before => before,
        };
        cost.store(before - before / 8 + now / 8, Ordering::Relaxed);
    }
}

/// Gives every partition to the worker with the least to do so far, the dearest first.
pub(crate) fn balance(costs: &[AtomicU64], owners: &mut [u32], workers: usize) {
    let costs: Vec<u64> = costs
        .iter()
        .map(|cost| cost.load(Ordering::Relaxed))
        .collect();
    let mut dearest_first: Vec<usize> = (0..costs.len()).collect();
    dearest_first.sort_by_key(|&index| std::cmp::Reverse(costs[index]));
    // Load, then count: partitions that cost nothing are dealt out in turn.
    let mut loads = vec![(0u64, 0usize); workers];
    for index in dearest_first {
        let lightest = (0..workers)
            .min_by_key(|&worker| loads[worker])
            .unwrap_or(0);
        owners[index] = lightest as u32;
        loads[lightest].0 += costs[index];
        loads[lightest].1 += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(costs: &[u64], workers: usize, expected: &[u32]) {
        let costs: Vec<AtomicU64> = costs.iter().map(|&cost| AtomicU64::new(cost)).collect();
        let mut owners = vec![u32::MAX; costs.len()];
        balance(&costs, &mut owners, workers);
        assert_eq!(owners, expected);
    }

    #[test]
    fn the_dear_are_spread_and_the_cheap_fill_up() {
        check(&[10, 10, 10, 30], 2, &[1, 1, 1, 0]);
        check(&[0, 0, 0, 0], 2, &[0, 1, 0, 1]);
        check(&[5, 0, 0], 2, &[0, 1, 1]);
        check(&[1, 2, 3], 1, &[0, 0, 0]);
    }
}
