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

mod regression;

pub(super) use regression::Evidence;

/// A group of launches of one kernel between two marks of a stream.
#[derive(Clone, Debug)]
pub(super) struct Group {
    /// Place of its stream.
    pub lane: usize,
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

/// What is known.
pub(super) struct Problem<'a> {
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

/// What one group did.
#[derive(Clone, Debug, Default)]
pub(super) struct Work {
    /// The first interval in which it may have run.
    pub first: usize,
    /// Warps in each interval from then on.
    pub warps: Vec<f64>,
}

/// What was found.
pub(super) struct Solution {
    /// By group.
    pub work: Vec<Work>,
    /// By kernel, then by counter.
    pub rates: Vec<Vec<f64>>,
}

/// Steps in all, and those among them that prefer intervals of one stream.
const STEPS: usize = 120;
const PREFERRING_STEPS: usize = 40;
/// How much they prefer it, as a power of the stream's part of the interval.
const PREFERENCE: f64 = 0.02;
/// How much rates are taken from intervals of one stream, likewise.
const PURITY: i32 = 8;
/// A kernel of which less than this part is known from intervals of its own stream has no rate.
const GUESS: f64 = 0.002;
/// A step longer than the safe one; the rest of the scheme keeps it from overshooting.
const STRIDE: f64 = 1.5;
/// How likely an interrupted group ran between its turns.
const BETWEEN: f64 = 0.001;
/// The part of a group's work that is left wherever it may have run.
const EVERYWHERE: f64 = 0.1;
/// Steps in which parts are brought to their sums.
const FITTING_STEPS: usize = 60;
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

    /// Leaves some of each group's work wherever it may have run: a place that was judged wrongly
    /// must not keep what another kernel did there.
    ///
    /// Returns warps by kernel and interval, spread evenly over the time of each group.
    fn spread(&self, solution: &mut Solution, durations: &[f64]) -> Vec<Vec<f64>> {
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

    /// Changes rates such that the parts of each kernel add up to what the regression gives it.
    fn fit_sums(
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
    fn parts(&self, placed: &[Vec<f64>], learned: &[f64], counter: usize, whole: f64) -> Vec<f64> {
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

    /// How long a warp of each group takes: as long as in the quickest fifth of its kernel's groups,
    /// since the others may have waited for their turn.
    fn durations(&self) -> Vec<f64> {
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
    fn likely(&self, group: &Group, duration: f64) -> Work {
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

    fn begin(&self, totals: &[f64], durations: &[f64]) -> Solution {
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

    /// What a warp of a group adds to a counter.
    fn rate(&self, solution: &Solution, group: &Group, counter: usize) -> f64 {
        if Some(counter) == self.warps && !group.short {
            0.0
        } else {
            solution.rates[group.kernel][counter]
        }
    }

    /// Measured over explained growth, by interval and counter.
    fn ratios(&self, solution: &Solution, measured: &[Vec<f64>]) -> Vec<Vec<f64>> {
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
    fn move_work(&self, solution: &mut Solution, ratios: &[Vec<f64>], totals: &[f64]) {
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
    fn purity(&self, solution: &Solution, durations: &[f64]) -> Vec<Vec<f64>> {
        let lanes = self.groups.iter().map(|group| group.lane + 1).max();
        let mut times = vec![vec![0.0; self.intervals.len()]; lanes.unwrap_or(0)];
        for ((group, work), duration) in self.groups.iter().zip(&solution.work).zip(durations) {
            let times = &mut times[group.lane][work.first..];
            for (part, time) in work.warps.iter().zip(times) {
                *time += part * duration;
            }
        }
        for interval in 0..self.intervals.len() {
            let sum: f64 = times.iter().map(|lane| lane[interval]).sum();
            for lane in &mut times {
                lane[interval] = (lane[interval] / sum.max(NOTHING)).max(1e-6);
            }
        }
        times
    }

    fn prefer_one(&self, solution: &mut Solution, durations: &[f64]) {
        let mut purity = self.purity(solution, durations);
        for part in purity.iter_mut().flatten() {
            *part = part.powf(PREFERENCE);
        }
        for (group, work) in self.groups.iter().zip(&mut solution.work) {
            let purity = &purity[group.lane][work.first..];
            for (part, purity) in work.warps.iter_mut().zip(purity) {
                *part *= purity;
            }
        }
    }

    /// A group that is over did all of its work, one that ends later a part, another at most all.
    fn keep_whole(&self, solution: &mut Solution, durations: &[f64]) {
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
    fn adjust_rates(&self, solution: &mut Solution, measured: &[Vec<f64>], durations: &[f64]) {
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
            let purity = &purity[group.lane][work.first..];
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

#[cfg(test)]
mod tests {
    use super::*;

    const MILLISECOND: u64 = 1_000_000;

    #[test]
    fn turns_are_told_apart_by_what_was_measured_in_them() {
        // Two streams take turns of two intervals: 100 warps of 10 instructions, 300 warps of 2.
        let growth: Vec<Vec<Option<u64>>> = (0..256)
            .map(|i| {
                if i / 2 % 2 == 0 {
                    vec![Some(1000), Some(100)]
                } else {
                    vec![Some(600), Some(300)]
                }
            })
            .collect();
        // Half a turn alone, then half a turn that ends with the beginning of the next.
        let group = |lane: usize, begin: u64, end: u64| Group {
            lane,
            kernel: lane,
            begin,
            end: Some(end),
            not_before: end,
            waited: false,
            warps: if lane == 0 { 100.0 } else { 300.0 },
            within: Some(1.0),
            short: true,
        };
        let mut groups = Vec::new();
        for turn in 0..64 {
            let at = 4 * MILLISECOND * turn;
            let group = |lane, begin, end| group(lane, at + begin, at + end);
            groups.extend([
                group(0, 0, MILLISECOND),
                group(0, MILLISECOND, 2 * MILLISECOND),
            ]);
            groups.extend([
                group(1, 2 * MILLISECOND, 3 * MILLISECOND),
                group(1, 5 * MILLISECOND / 2, 9 * MILLISECOND / 2),
            ]);
        }
        let problem = Problem {
            intervals: (0..256)
                .map(|i| (MILLISECOND * i, MILLISECOND * (i + 1)))
                .collect(),
            growth: growth.iter().map(Vec::as_slice).collect(),
            warps: Some(1),
            groups,
            rates: vec![vec![None, None]; 2],
            counted: vec![vec![None, None]; 2],
            numbers: vec![0, 1],
        };
        let solution = problem.solve(&mut Evidence::default());
        for (group, work) in problem.groups.iter().zip(&solution.work) {
            assert!((work.warps.iter().sum::<f64>() - group.warps).abs() < 1e-6);
        }
        let rates = &solution.rates;
        assert!((rates[0][0] - 10.0).abs() < 1.0, "{rates:?}");
        assert!((rates[1][0] - 2.0).abs() < 0.5, "{rates:?}");
    }
}
