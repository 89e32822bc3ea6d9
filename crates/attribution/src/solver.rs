//! How much each kernel did in each interval while several streams share a GPU.
//!
//! Contexts take turns of about two milliseconds, streams of one context run side by side. What is
//! measured: the growth of every counter of the whole GPU in each interval, and for groups of
//! launches how many warps they have and between which times they ran (the device marks the end of
//! a group in its stream). What is sought: the work of each group in each interval, in warps, and
//! what a warp of each kernel adds to each counter, such that
//!
//! - the work of a group that is over adds up to its warps, and lies between its two times;
//! - in every interval, work times rates gives the growth that was measured.
//!
//! Both are found together by multiplicative steps that bring the measured and the explained growth
//! nearer to each other (expectation maximisation). Two things that are known of turns make the
//! answer the right one among many:
//!
//! - A group that was interrupted ran at the beginning and at the end of its time, not between; one
//!   that came to an idle stream ran at the end of its time. Its work starts there, for as long as
//!   such work usually takes.
//! - An interval is more often one stream's than everybody's. The first steps prefer that; later
//!   ones do not, but rates are taken mostly from intervals that belong to one stream.
//!
//! That places the work. How much each kernel adds in all is taken from a regression over windows
//! longer than a rotation of turns ([`regression`]), in which it does not matter where inside its
//! time a group was placed; rates follow, such that parts of intervals add up to these sums too.

mod first_guess;
mod regression;
mod steps;
mod sums;
#[cfg(test)]
mod tests;

pub(crate) use regression::Evidence;

/// A group of launches of one kernel between two marks of a stream.
#[derive(Clone, Debug)]
pub(crate) struct Group {
    /// Place of its stream.
    pub stream: usize,
    /// Place of its kernel.
    pub kernel: usize,
    /// It did not begin before this time.
    pub begin: u64,
    /// It was over at this time, if it was over before the last interval ended.
    pub end: Option<u64>,
    /// It was not over yet at this time.
    pub not_before: u64,
    /// Its stream had nothing to do before it, so it waited for its turn and then ran at once.
    pub waited: bool,
    /// Its warps.
    pub warps: f64,
    /// The part of its time that lies in the intervals, if its end is known.
    pub within: Option<f64>,
    /// Its warps start and run in the same interval, as those of short kernels do.
    pub short: bool,
}

/// The measurements, and what is known of the groups.
pub(crate) struct Problem<'a> {
    /// Begin and end of each interval.
    pub intervals: Vec<(u64, u64)>,
    /// By interval, then by counter.
    pub growth: Vec<&'a [Option<u64>]>,
    /// Place of `warps_launched` among the counters.
    pub warps: Option<usize>,
    /// Groups.
    pub groups: Vec<Group>,
    /// By kernel, then by counter: what is known of a warp from before.
    pub rates: Vec<Vec<Option<f64>>>,
    /// The same, where it was counted and need not be learned.
    pub counted: Vec<Vec<Option<f64>>>,
    /// The number of each kernel in all evidence.
    pub numbers: Vec<usize>,
}

/// The work of one group.
#[derive(Clone, Debug, Default)]
pub(crate) struct Work {
    /// The first interval in which it may have run.
    pub first: usize,
    /// Warps in each interval from then on.
    pub warps: Vec<f64>,
}

/// Work and rates that explain the measurements.
pub(crate) struct Solution {
    /// By group.
    pub work: Vec<Work>,
    /// By kernel, then by counter.
    pub rates: Vec<Vec<f64>>,
}

/// Steps in all, and those among them that prefer intervals of one stream.
const STEPS: usize = 120;

const PREFERRING_STEPS: usize = 40;

/// A group whose end nobody saw is over after so many times what such work takes at least.
const TAIL: f64 = 2.0;

const SHORTEST_TAIL: u64 = 1_000_000;

/// Below this a quantity is nothing.
const NOTHING: f64 = 1e-12;

impl Problem<'_> {
    /// Finds work and rates, and adds to the evidence.
    pub fn solve(&self, evidence: &mut Evidence) -> Solution {
        let counters = self.growth.first().map_or(0, |one| one.len());
        let measured: Vec<Vec<f64>> = self
            .growth
            .iter()
            .map(|one| {
                one.iter()
                    .map(|growth| growth.unwrap_or(0) as f64)
                    .collect()
            })
            .collect();
        let totals: Vec<f64> = (0..counters)
            .map(|i| measured.iter().map(|one| one[i]).sum::<f64>().max(1.0))
            .collect();
        let durations = self.durations();
        let mut solution = self.begin(&totals, &durations);
        let placed = self.by_kernel(&solution);
        for _ in 0..STEPS / 6 {
            self.adjust_rates(&mut solution, &measured, &durations);
        }
        for step in 0..STEPS {
            let ratios = self.ratios(&solution, &measured);
            self.move_work(&mut solution, &ratios, &totals);
            if step < PREFERRING_STEPS {
                self.prefer_one(&mut solution, &durations);
            }
            self.keep_whole(&mut solution, &durations);
            self.adjust_rates(&mut solution, &measured, &durations);
        }
        let even = self.spread(&mut solution, &durations);
        // A group that was interrupted ran at the ends of its time, as `likely` says, or had several
        // turns. The mean of both tells rates better than either.
        let mut between = placed;
        for (placed, even) in between.iter_mut().flatten().zip(even.iter().flatten()) {
            *placed = (*placed + even) / 2.0;
        }
        self.fit_sums(&mut solution, &between, &measured, evidence);
        solution
    }

    /// Warps by kernel and interval.
    fn by_kernel(&self, solution: &Solution) -> Vec<Vec<f64>> {
        let mut work = vec![vec![0.0; self.intervals.len()]; solution.rates.len()];
        for (group, done) in self.groups.iter().zip(&solution.work) {
            let intervals = &mut work[group.kernel][done.first..];
            for (sum, part) in intervals.iter_mut().zip(&done.warps) {
                *sum += part;
            }
        }
        work
    }
}

/// When a group was over; of one whose end nobody saw, because no mark came after it, what is likely.
fn over_at(group: &Group, duration: f64) -> u64 {
    let lasts = (TAIL * duration * group.warps) as u64;
    let likely = group.begin.saturating_add(lasts.max(SHORTEST_TAIL));
    group.end.unwrap_or(likely)
}

/// Multiplies `parts` so that they add up to `whole`.
fn scale_to(parts: &mut [f64], whole: f64) {
    let sum: f64 = parts.iter().sum();
    if sum > 0.0 {
        let scale = whole / sum;
        parts.iter_mut().for_each(|part| *part *= scale);
    }
}
