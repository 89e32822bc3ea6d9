//! Hands what the solver found to kernels, interval by interval, and to launches.

use std::collections::BTreeMap;

use super::groups::Groups;
use super::warps::Warps;
use crate::attribution::Attribution;
use crate::launch::{Key, LaunchRow, Place};
use crate::sample::{DeviceSample, Part, split};
use crate::sequential::add_base;
use crate::solver::{Problem, Solution, Work};

/// Counts that are handed out, interval by interval.
struct HandOut<'a> {
    problem: &'a Problem<'a>,
    solution: &'a Solution,
    warps: Warps<'a>,
    /// What each group got so far, by group and counter.
    counted: Vec<Vec<u64>>,
}

impl<'a> HandOut<'a> {
    fn new(problem: &'a Problem<'a>, solution: &'a Solution, counters: usize) -> Self {
        Self {
            problem,
            solution,
            warps: Warps::new(problem, solution),
            counted: vec![vec![0; counters]; problem.groups.len()],
        }
    }

    /// The groups at work in an interval, with their warps in it.
    fn present(&self, interval: usize) -> Vec<(usize, f64)> {
        let work = self.solution.work.iter().enumerate();
        work.filter_map(|(group, work)| {
            let at = interval.checked_sub(work.first)?;
            Some((group, *work.warps.get(at)?))
        })
        .collect()
    }

    /// What each kernel did in an interval.
    fn by_kernel(
        &mut self,
        interval: usize,
        sample: &DeviceSample,
        present: &[(usize, f64)],
    ) -> BTreeMap<usize, Vec<u64>> {
        let mut by_kernel: BTreeMap<usize, Vec<u64>> = BTreeMap::new();
        for (i, whole) in sample.growth.iter().enumerate() {
            let Some(whole) = *whole else { continue };
            let shares = if Some(i) == self.problem.warps {
                self.warps.share(interval, present)
            } else {
                let rates = &self.solution.rates;
                let weights: Vec<f64> = present
                    .iter()
                    .map(|(group, work)| work * rates[self.problem.groups[*group].kernel][i])
                    .collect();
                split(whole, &weights)
            };
            for ((group, _), share) in present.iter().zip(shares) {
                self.counted[*group][i] += share;
                let kernel = self.problem.groups[*group].kernel;
                by_kernel
                    .entry(kernel)
                    .or_insert_with(|| vec![0; sample.growth.len()])[i] += share;
            }
        }
        by_kernel
    }

    /// The warps of each kernel in an interval.
    fn bases(&self, kernels: &[Key], present: &[(usize, f64)]) -> Vec<(Key, f64)> {
        let mut bases: Vec<(Key, f64)> = Vec::new();
        for (group, work) in present {
            let key = &kernels[self.problem.groups[*group].kernel];
            add_base(&mut bases, key, *work);
        }
        bases
    }
}

impl Attribution {
    /// Divides intervals in which several streams were at work.
    pub(super) fn divide_shared(
        &mut self,
        samples: &[DeviceSample],
        done: &mut Vec<LaunchRow>,
    ) -> Vec<Vec<Part>> {
        done.extend(self.running.take().map(|(_, one)| one.row));
        let Groups {
            kernels,
            groups,
            launches,
            over,
        } = Groups::of(self, samples);
        let problem = Problem {
            intervals: samples.iter().map(|one| (one.begin, one.end)).collect(),
            growth: samples.iter().map(|one| one.growth.as_slice()).collect(),
            warps: self.warps,
            groups,
            rates: self.rates_by(&kernels, |key, i| self.learned_rates.rate(key, i)),
            counted: self.rates_by(&kernels, |key, i| {
                let counted = self.rates.of(&key.kernel, i);
                counted.filter(|_| Some(i) != self.warps)
            }),
            numbers: self.learned.numbers(&kernels),
        };
        let solution = problem.solve(&mut self.learned.evidence);
        let mut hand_out = HandOut::new(&problem, &solution, self.counters);
        let mut parts = Vec::with_capacity(samples.len());
        for (interval, sample) in samples.iter().enumerate() {
            let present = hand_out.present(interval);
            if present.is_empty() {
                parts.push(self.unexplained(sample));
                continue;
            }
            let by_kernel = hand_out.by_kernel(interval, sample, &present);
            let bases = hand_out.bases(&kernels, &present);
            self.learned_rates.learn(&bases, &sample.growth);
            let last = interval + 1 == samples.len();
            let beyond = last.then(|| hand_out.warps.beyond());
            parts.push(self.shared_parts(sample, &kernels, by_kernel, beyond));
        }
        let found = solution.work.iter().zip(&hand_out.counted);
        for (launches, (work, counted)) in launches.iter().zip(found) {
            self.give_to_launches(launches, work, counted, samples);
        }
        for place in over {
            if let Some(one) = self.queue.remove(&place) {
                self.dequeued(&one);
                done.push(one.row);
            }
        }
        parts
    }

    /// A table of rates by kernel and counter.
    fn rates_by(
        &self,
        kernels: &[Key],
        rate: impl Fn(&Key, usize) -> Option<f64>,
    ) -> Vec<Vec<Option<f64>>> {
        let row = |key| (0..self.counters).map(|i| rate(key, i)).collect();
        kernels.iter().map(row).collect()
    }

    /// The parts of one shared interval; warps `beyond` those of launches are of `(other)`.
    fn shared_parts(
        &self,
        sample: &DeviceSample,
        kernels: &[Key],
        by_kernel: BTreeMap<usize, Vec<u64>>,
        beyond: Option<u64>,
    ) -> Vec<Part> {
        let exact = by_kernel.len() == 1;
        let present = |counts: Vec<u64>| {
            let growth = counts.into_iter().zip(&sample.growth);
            growth
                .map(|(count, growth)| growth.map(|_| count))
                .collect()
        };
        let mut parts: Vec<Part> = by_kernel
            .into_iter()
            .map(|(kernel, counts)| Part {
                key: kernels[kernel].clone(),
                exact,
                shared: !exact,
                growth: present(counts),
            })
            .collect();
        if let (Some(place), Some(count)) = (self.warps, beyond.filter(|count| *count > 0)) {
            let mut counts = vec![0; self.counters];
            counts[place] = count;
            parts.push(Part {
                key: self.other(),
                exact: false,
                shared: true,
                growth: present(counts),
            });
        }
        parts
    }

    /// Launches of a group get what it did, in their order and by their warps.
    fn give_to_launches(
        &mut self,
        launches: &[Place],
        work: &Work,
        counted: &[u64],
        samples: &[DeviceSample],
    ) {
        let Some(first) = samples.get(work.first) else {
            return;
        };
        let last = samples.get(work.first + work.warps.len().saturating_sub(1));
        let mut left = match self.warps {
            Some(place) => counted[place],
            None => work.warps.iter().sum::<f64>().round() as u64,
        };
        let mut taken = Vec::with_capacity(launches.len());
        for place in launches {
            let Some(one) = self.queue.get_mut(place) else {
                continue;
            };
            let part = one.left.min(left);
            left -= part;
            one.left -= part;
            if part > 0 {
                if !one.begun {
                    one.row.begin = one.row.begin.max(first.begin);
                    one.begun = true;
                }
                one.row.end = last.unwrap_or(first).end;
            }
            taken.push((*place, part as f64));
        }
        let weights: Vec<f64> = taken.iter().map(|(_, part)| *part).collect();
        for (i, whole) in counted.iter().enumerate() {
            if samples.iter().all(|sample| sample.growth[i].is_none()) {
                continue;
            }
            for ((place, _), share) in taken.iter().zip(split(*whole, &weights)) {
                if let Some(one) = self.queue.get_mut(place) {
                    let counter = &mut one.row.counters[i];
                    *counter = Some(counter.unwrap_or(0) + share);
                }
            }
        }
    }
}
