//! Where each group may have run, and what its kernel may do: the start of the steps.

use super::{Group, NOTHING, Problem, Solution, Work, scale_to};

/// How likely an interrupted group ran between its turns.
const BETWEEN: f64 = 0.001;

impl Problem<'_> {
    /// How long a warp of each group takes: as long as in the quickest fifth of its kernel's groups,
    /// since the others may have waited for their turn.
    pub(super) fn durations(&self) -> Vec<f64> {
        let mut by_kernel: Vec<Vec<f64>> = vec![Vec::new(); self.rates.len()];
        let mut waited = vec![0; self.rates.len()];
        for group in &self.groups {
            if let Some(end) = group.end {
                // The end is seen late, by up to the time between two looks.
                let (least, most) = (group.not_before.max(group.begin), end.max(group.begin));
                let lasted = (least - group.begin).max((most - group.begin) / 10);
                let each = lasted as f64 / group.warps.max(1.0);
                by_kernel[group.kernel].push(each);
                waited[group.kernel] += usize::from(group.waited);
            }
        }
        let quick: Vec<Option<f64>> = by_kernel
            .into_iter()
            .zip(waited)
            .map(|(mut all, waited)| {
                all.sort_by(f64::total_cmp);
                // Kernels that mostly wait for their turn show how long they take once in a while.
                let place = if waited * 2 > all.len() {
                    0
                } else {
                    all.len() / 5
                };
                all.get(place).copied()
            })
            .collect();
        let run = match (self.intervals.first(), self.intervals.last()) {
            (Some(first), Some(last)) => last.1.saturating_sub(first.0) as f64,
            _ => 1.0,
        };
        let each = |group: &Group| quick[group.kernel].unwrap_or(run / group.warps.max(1.0));
        self.groups.iter().map(each).collect()
    }

    /// Where a group may have run, and how likely.
    pub(super) fn likely(&self, group: &Group, duration: f64) -> Work {
        let last = self.intervals.last().map_or(0, |one| one.1);
        let (begin, end) = (group.begin, group.end.unwrap_or(last));
        let lasts = (duration * group.warps) as u64;
        let first = self.intervals.partition_point(|one| one.1 <= begin);
        // Between its two ends it waited for its turn; one that is not over has no second end.
        let waits = match group.end {
            Some(_) if group.waited => begin,
            _ => begin.saturating_add(lasts),
        };
        let last_turn = group.not_before.saturating_sub(lasts);
        let resumes = group.end.map_or(u64::MAX, |_| last_turn);
        let overlap = |one: &(u64, u64), from: u64, until: u64| {
            one.1.min(until).saturating_sub(one.0.max(from)) as f64
        };
        let warps = self.intervals[first..]
            .iter()
            .take_while(|one| one.0 < end)
            .map(|one| {
                let between = overlap(one, waits.max(begin), resumes.min(end));
                (overlap(one, begin, end) - between + BETWEEN * between) + NOTHING
            })
            .collect();
        Work { first, warps }
    }

    pub(super) fn begin(&self, totals: &[f64], durations: &[f64]) -> Solution {
        let likely = self.groups.iter().zip(durations);
        let work: Vec<Work> = likely
            .map(|(group, duration)| self.likely(group, *duration))
            .collect();
        // Kernels differ a thousandfold in what a warp does, and little in what a nanosecond does.
        let mut each = vec![0.0; self.rates.len()];
        let mut all = 0.0;
        for (group, duration) in self.groups.iter().zip(durations) {
            each[group.kernel] = *duration;
            all += group.warps * duration;
        }
        let rates: Vec<Vec<f64>> = self
            .rates
            .iter()
            .zip(&self.counted)
            .zip(each)
            .map(|((known, counted), each)| {
                let parts = known.iter().zip(totals).enumerate();
                let rate = |(i, (known, total)): (usize, (&Option<f64>, &f64))| {
                    if Some(i) == self.warps {
                        1.0
                    } else {
                        let known = counted[i].or(*known);
                        known.unwrap_or(total * each / all.max(1.0)).max(NOTHING)
                    }
                };
                parts.map(rate).collect()
            })
            .collect();
        let mut solution = Solution { work, rates };
        for (group, work) in self.groups.iter().zip(&mut solution.work) {
            scale_to(&mut work.warps, group.warps * group.within.unwrap_or(1.0));
        }
        solution
    }
}
