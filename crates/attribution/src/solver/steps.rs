//! The multiplicative steps that bring measured and explained growth nearer to each other.

use super::{Group, NOTHING, Problem, Solution, over_at, scale_to};

/// How much they prefer it, as a power of the stream's part of the interval.
const PREFERENCE: f64 = 0.02;

/// How much rates are taken from intervals of one stream, likewise.
const PURITY: i32 = 8;

/// A kernel of which less than this part is known from intervals of its own stream has no rate.
const GUESS: f64 = 0.002;

/// A step longer than the safe one; the rest of the scheme keeps it from overshooting.
const STRIDE: f64 = 1.5;

impl Problem<'_> {
    /// What a warp of a group adds to a counter.
    pub(super) fn rate(&self, solution: &Solution, group: &Group, counter: usize) -> f64 {
        if Some(counter) == self.warps && !group.short {
            0.0
        } else {
            solution.rates[group.kernel][counter]
        }
    }

    /// Measured over explained growth, by interval and counter.
    pub(super) fn ratios(&self, solution: &Solution, measured: &[Vec<f64>]) -> Vec<Vec<f64>> {
        let mut explained: Vec<Vec<f64>> =
            measured.iter().map(|one| vec![0.0; one.len()]).collect();
        for (group, work) in self.groups.iter().zip(&solution.work) {
            for (part, explained) in work.warps.iter().zip(&mut explained[work.first..]) {
                for (i, explained) in explained.iter_mut().enumerate() {
                    *explained += part * self.rate(solution, group, i);
                }
            }
        }
        for (explained, measured) in explained.iter_mut().zip(measured) {
            for (explained, measured) in explained.iter_mut().zip(measured) {
                *explained = if *explained > NOTHING {
                    measured / *explained
                } else {
                    1.0
                };
            }
        }
        explained
    }

    /// Moves work to where more was measured than explained.
    pub(super) fn move_work(&self, solution: &mut Solution, ratios: &[Vec<f64>], totals: &[f64]) {
        let mut work = std::mem::take(&mut solution.work);
        for (group, work) in self.groups.iter().zip(&mut work) {
            // Counters count alike, however large their numbers are.
            let weights: Vec<f64> = (0..totals.len())
                .map(|i| self.rate(solution, group, i) / totals[i])
                .collect();
            let weight: f64 = weights.iter().sum::<f64>().max(f64::MIN_POSITIVE);
            for (part, ratios) in work.warps.iter_mut().zip(&ratios[work.first..]) {
                let sum: f64 = weights.iter().zip(ratios).map(|(w, r)| w * r).sum();
                *part *= (sum / weight).powf(STRIDE);
            }
        }
        solution.work = work;
    }

    /// The part of each interval's time that each stream has, by stream and interval.
    pub(super) fn purity(&self, solution: &Solution, durations: &[f64]) -> Vec<Vec<f64>> {
        let streams = self.groups.iter().map(|group| group.stream + 1).max();
        let mut times = vec![vec![0.0; self.intervals.len()]; streams.unwrap_or(0)];
        for ((group, work), duration) in self.groups.iter().zip(&solution.work).zip(durations) {
            let times = &mut times[group.stream][work.first..];
            for (part, time) in work.warps.iter().zip(times) {
                *time += part * duration;
            }
        }
        for interval in 0..self.intervals.len() {
            let sum: f64 = times.iter().map(|stream| stream[interval]).sum();
            for stream in &mut times {
                stream[interval] = (stream[interval] / sum.max(NOTHING)).max(1e-6);
            }
        }
        times
    }

    pub(super) fn prefer_one(&self, solution: &mut Solution, durations: &[f64]) {
        let mut purity = self.purity(solution, durations);
        for part in purity.iter_mut().flatten() {
            *part = part.powf(PREFERENCE);
        }
        for (group, work) in self.groups.iter().zip(&mut solution.work) {
            let purity = &purity[group.stream][work.first..];
            for (part, purity) in work.warps.iter_mut().zip(purity) {
                *part *= purity;
            }
        }
    }

    /// A group that is over did all of its work, one that ends later a part, another at most all.
    pub(super) fn keep_whole(&self, solution: &mut Solution, durations: &[f64]) {
        let last = self.intervals.last().map_or(0, |one| one.1);
        for ((group, work), duration) in self.groups.iter().zip(&mut solution.work).zip(durations) {
            let done = group.warps * group.within.unwrap_or(1.0);
            let over = group.within.is_some() || over_at(group, *duration) <= last;
            if over || work.warps.iter().sum::<f64>() > done {
                scale_to(&mut work.warps, done);
            }
        }
    }

    /// Changes rates to where more was measured than explained.
    pub(super) fn adjust_rates(
        &self,
        solution: &mut Solution,
        measured: &[Vec<f64>],
        durations: &[f64],
    ) {
        let ratios = self.ratios(solution, measured);
        let mut purity = self.purity(solution, durations);
        for part in purity.iter_mut().flatten() {
            *part = part.powi(PURITY);
        }
        let counters = ratios.first().map_or(0, Vec::len);
        let mut seen = vec![vec![0.0; counters]; solution.rates.len()];
        let mut bases = vec![0.0; solution.rates.len()];
        let mut all = vec![0.0; solution.rates.len()];
        for (group, work) in self.groups.iter().zip(&solution.work) {
            let purity = &purity[group.stream][work.first..];
            let intervals = ratios[work.first..].iter().zip(purity);
            for (part, (ratios, purity)) in work.warps.iter().zip(intervals) {
                all[group.kernel] += part;
                let part = part * purity;
                bases[group.kernel] += part;
                for (seen, ratio) in seen[group.kernel].iter_mut().zip(ratios) {
                    *seen += part * ratio;
                }
            }
        }
        let mut marked = vec![false; solution.rates.len()];
        for group in &self.groups {
            marked[group.kernel] |= group.end.is_some();
        }
        // A kernel that never has an interval nearly to itself is taken for one that does as little
        // as any other: what it does then goes to others, and never what others do to it.
        let pure = |kernel: usize| bases[kernel] > GUESS * all[kernel];
        let least: Vec<f64> = (0..counters)
            .map(|i| {
                let known = solution.rates.iter().enumerate();
                let known = known.filter(|(kernel, _)| pure(*kernel));
                known.map(|(_, rates)| rates[i]).fold(f64::MAX, f64::min)
            })
            .collect();
        for (kernel, (rates, seen)) in solution.rates.iter_mut().zip(seen).enumerate() {
            if bases[kernel] <= f64::MIN_POSITIVE {
                continue;
            }
            for (i, (rate, seen)) in rates.iter_mut().zip(seen).enumerate() {
                // Warps that come back after a context switch are counted again, so where marks say
                // how much work was done, their rate is learned too.
                let learns = self.counted[kernel][i].is_none();
                if learns && (Some(i) != self.warps || marked[kernel]) {
                    *rate = if pure(kernel) || least[i] == f64::MAX {
                        (*rate * seen / bases[kernel]).max(NOTHING)
                    } else {
                        least[i]
                    };
                }
            }
        }
    }
}
