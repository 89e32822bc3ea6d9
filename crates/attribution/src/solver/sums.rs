//! Fits what each kernel did in all to what a regression over long windows says.

use super::{Evidence, NOTHING, Problem, Solution, over_at, scale_to};

/// The part of a group's work that is left wherever it may have run.
const EVERYWHERE: f64 = 0.1;

/// Steps in which parts are brought to their sums.
const FITTING_STEPS: usize = 60;

impl Problem<'_> {
    /// Leaves some of each group's work wherever it may have run: a place that was judged wrongly
    /// must not keep what another kernel did there.
    ///
    /// Returns warps by kernel and interval, spread evenly over the time of each group.
    pub(super) fn spread(&self, solution: &mut Solution, durations: &[f64]) -> Vec<Vec<f64>> {
        let last = self.intervals.last().map_or(0, |one| one.1);
        let mut all = vec![vec![0.0; self.intervals.len()]; solution.rates.len()];
        for ((group, work), duration) in self.groups.iter().zip(&mut solution.work).zip(durations) {
            let begin = group.begin;
            let end = over_at(group, *duration).min(last);
            let overlaps = self.intervals[work.first..].iter().take(work.warps.len());
            let mut even: Vec<f64> = overlaps
                .map(|one| one.1.min(end).saturating_sub(one.0.max(begin)) as f64)
                .collect();
            scale_to(&mut even, work.warps.iter().sum());
            let all = &mut all[group.kernel][work.first..];
            for ((part, even), all) in work.warps.iter_mut().zip(even).zip(all) {
                *part = (1.0 - EVERYWHERE) * *part + EVERYWHERE * even;
                *all += even;
            }
        }
        all
    }

    /// Changes rates such that the parts of each kernel add up to what the regression gives it.
    pub(super) fn fit_sums(
        &self,
        solution: &mut Solution,
        placed: &[Vec<f64>],
        measured: &[Vec<f64>],
        evidence: &mut Evidence,
    ) {
        let work = self.by_kernel(solution);
        let length = match (self.intervals.first(), self.intervals.last()) {
            (Some(first), Some(last)) => (last.1 - first.0) / self.intervals.len() as u64,
            _ => return,
        };
        let by_counter: Vec<Vec<f64>> = (0..measured.first().map_or(0, Vec::len))
            .map(|counter| measured.iter().map(|one| one[counter]).collect())
            .collect();
        evidence.learn(&self.numbers, placed, &by_counter, length);
        for (counter, growth) in by_counter.iter().enumerate() {
            if Some(counter) == self.warps {
                continue;
            }
            let guess: Vec<f64> = solution.rates.iter().map(|rates| rates[counter]).collect();
            let Some(learned) = evidence.rates(counter, &self.numbers, &guess) else {
                continue;
            };
            // Growth of intervals in which nobody had work is nobody's.
            let worked = (0..growth.len()).filter(|i| work.iter().any(|kernel| kernel[*i] > 0.0));
            let whole: f64 = worked.map(|i| growth[i]).sum();
            let parts = self.parts(placed, &learned, counter, whole);
            let mut rates: Vec<f64> = work
                .iter()
                .zip(&parts)
                .map(|(work, part)| part / work.iter().sum::<f64>().max(NOTHING))
                .collect();
            for _ in 0..FITTING_STEPS {
                let mut got = vec![0.0; rates.len()];
                for (i, growth) in growth.iter().enumerate() {
                    let all: f64 = work
                        .iter()
                        .zip(&rates)
                        .map(|(work, rate)| work[i] * rate)
                        .sum();
                    if all > 0.0 {
                        for (got, (work, rate)) in got.iter_mut().zip(work.iter().zip(&rates)) {
                            *got += growth * work[i] * rate / all;
                        }
                    }
                }
                for (rate, (got, part)) in rates.iter_mut().zip(got.iter().zip(&parts)) {
                    if *got > 0.0 {
                        *rate *= part / got;
                    }
                }
            }
            for (kernel, rate) in rates.into_iter().enumerate() {
                solution.rates[kernel][counter] = rate.max(NOTHING);
            }
        }
    }

    /// What each kernel did of the `whole`: what its warps are known to do, the rest as was learned.
    pub(super) fn parts(
        &self,
        placed: &[Vec<f64>],
        learned: &[f64],
        counter: usize,
        whole: f64,
    ) -> Vec<f64> {
        let known = |kernel: usize| self.counted[kernel][counter];
        let mut parts: Vec<f64> = placed
            .iter()
            .zip(learned)
            .enumerate()
            .map(|(kernel, (work, rate))| work.iter().sum::<f64>() * known(kernel).unwrap_or(*rate))
            .collect();
        let sum = |parts: &[f64], is_known: bool| -> f64 {
            let chosen = parts.iter().enumerate();
            let chosen = chosen.filter(|(kernel, _)| known(*kernel).is_some() == is_known);
            chosen.map(|(_, part)| *part).sum()
        };
        let (sure, other) = (sum(&parts, true), sum(&parts, false));
        // What is known stays, unless there is nobody else to have done the rest.
        let other_scale = (whole - sure).max(0.0) / other.max(NOTHING);
        let sure_scale = if other > 0.0 && sure < whole {
            1.0
        } else {
            whole / sure.max(NOTHING)
        };
        for (kernel, part) in parts.iter_mut().enumerate() {
            *part *= if known(kernel).is_some() {
                sure_scale
            } else {
                other_scale
            };
        }
        parts
    }
}
