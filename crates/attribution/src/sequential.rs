//! Intervals in which launches ran one after the other, or were timed by the device.

use std::collections::BTreeMap;

use crate::attribution::Attribution;
use crate::launch::{Key, Place};
use crate::sample::{DeviceSample, Part, split};

/// Warps started in one or more intervals, and everything they did.
pub(crate) struct Episode {
    bases: Vec<(Key, f64)>,
    growth: Vec<Option<u64>>,
    intervals: u32,
}

/// Longer episodes are learned from before they are over.
const LONGEST_EPISODE: u32 = 8;

impl Attribution {
    /// Overlap with the interval, in nanoseconds: (place in the queue, base).
    pub(crate) fn shares_by_time(&mut self, sample: &DeviceSample) -> Vec<(Place, f64)> {
        let mut shares = Vec::new();
        for (place, one) in &mut self.queue {
            if one.row.begin >= sample.end {
                break;
            }
            let overlap = one
                .row
                .end
                .min(sample.end)
                .saturating_sub(one.row.begin.max(sample.begin));
            if overlap > 0 {
                one.begun = true;
                shares.push((*place, overlap as f64));
            }
        }
        shares
    }

    /// Works the queue off by the warps that were started: (place in the queue, warps).
    pub(crate) fn shares_by_warps(&mut self, sample: &DeviceSample) -> Vec<(Place, f64)> {
        // Whatever still runs stands in the queue again.
        let carried = self.running.take().map(|(place, running)| {
            self.enqueue(place, running);
            place
        });
        let started = self.warps.and_then(|place| sample.growth[place]);
        let mut left = started.unwrap_or(u64::MAX);
        let mut shares = Vec::new();
        // Streams of other processes may have been asked for much earlier and run later: their marks
        // say so.
        let mut next = Vec::new();
        for (place, one) in &self.queue {
            if left == 0 || place.0 >= sample.end {
                break;
            }
            if !self.comes_later(one, place.0, sample) {
                next.push((*place, one.left.min(left)));
                left -= one.left.min(left);
            }
        }
        for (place, taken) in next {
            let Some(one) = self.queue.get_mut(&place) else {
                continue;
            };
            one.left -= taken;
            if taken > 0 {
                if !one.begun {
                    one.row.begin = one.row.begin.max(sample.begin);
                    one.begun = true;
                }
                one.row.end = sample.end;
                shares.push((place, taken as f64));
            }
        }
        if let Some(place) = carried
            && shares.iter().all(|(other, _)| *other != place)
            && self.still_runs(sample, &shares)
        {
            if let Some(running) = self.queue.get_mut(&place) {
                running.row.end = sample.end;
            }
            shares.insert(0, (place, 0.0));
        }
        shares
    }

    /// Whether the carried launch explains counts that the others do not.
    fn still_runs(&self, sample: &DeviceSample, shares: &[(Place, f64)]) -> bool {
        if shares.is_empty() {
            return (0..self.counters)
                .any(|i| Some(i) != self.warps && sample.growth[i].is_some_and(|n| n > 0));
        }
        self.remainder(sample, shares)
            .iter()
            .any(|left| *left > 0.02)
    }

    /// For each counter, the fraction that the habits of `shares` leave unexplained.
    fn remainder(&self, sample: &DeviceSample, shares: &[(Place, f64)]) -> Vec<f64> {
        (0..self.counters)
            .map(|i| {
                let whole = sample.growth[i].unwrap_or(0) as f64;
                if Some(i) == self.warps || whole == 0.0 {
                    return 0.0;
                }
                let expected: Option<f64> = shares
                    .iter()
                    .filter(|(_, base)| *base > 0.0)
                    .map(|(place, base)| Some(self.rate(&self.queue[place].row.key, i)? * base))
                    .sum();
                expected.map_or(0.0, |expected| (1.0 - expected / whole).max(0.0))
            })
            .collect()
    }

    /// What is known of a kernel; of one seen just now, what its first episode shows so far.
    fn rate(&self, key: &Key, counter: usize) -> Option<f64> {
        let known = self.rates.of(&key.kernel, counter);
        known
            .or_else(|| self.learned_rates.rate(key, counter))
            .or_else(|| {
                let episode = self.episode.as_ref()?;
                let [(only, base)] = episode.bases.as_slice() else {
                    return None;
                };
                (only == key && *base > 0.0).then_some(episode.growth[counter]? as f64 / base)
            })
    }

    /// Gives every share its part of every counter.
    pub(crate) fn divide(&mut self, sample: &DeviceSample, shares: Vec<(Place, f64)>) -> Vec<Part> {
        if shares.is_empty() {
            return self.unexplained(sample);
        }
        let given = self.parts_of_shares(sample, &shares);
        let mut parts: BTreeMap<Key, Part> = BTreeMap::new();
        let mut bases: Vec<(Key, f64)> = Vec::new();
        for ((place, base), given) in shares.iter().zip(&given) {
            let Some(queued) = self.queue.get_mut(place) else {
                continue;
            };
            let key = &queued.row.key;
            add_base(&mut bases, key, *base);
            let part = parts.entry(key.clone()).or_insert_with(|| Part {
                key: key.clone(),
                exact: true,
                shared: false,
                growth: sample
                    .growth
                    .iter()
                    .map(|growth| growth.map(|_| 0))
                    .collect(),
            });
            for ((sum, counter), given) in part
                .growth
                .iter_mut()
                .zip(&mut queued.row.counters)
                .zip(given)
            {
                if let Some(sum) = sum {
                    *sum += given;
                    *counter = Some(counter.unwrap_or(0) + given);
                }
            }
        }
        let carried = shares.iter().any(|(_, base)| *base == 0.0);
        self.remember(bases, &sample.growth, carried);
        let exact = parts.len() == 1;
        parts
            .into_values()
            .map(|part| Part { exact, ..part })
            .collect()
    }

    /// The part of each share in each counter, by share and counter.
    fn parts_of_shares(&self, sample: &DeviceSample, shares: &[(Place, f64)]) -> Vec<Vec<u64>> {
        let unexplained = self.remainder(sample, shares);
        let mut given: Vec<Vec<u64>> = vec![vec![0; self.counters]; shares.len()];
        let bases: f64 = shares.iter().map(|(_, base)| base).sum();
        for i in 0..self.counters {
            let Some(whole) = sample.growth[i] else {
                continue;
            };
            let mean = if bases > 0.0 {
                whole as f64 / bases
            } else {
                0.0
            };
            let weights: Vec<f64> = shares
                .iter()
                .map(|(place, base)| {
                    let carried = *base == 0.0;
                    if Some(i) == self.warps {
                        *base
                    } else if carried {
                        // All of it when nothing else ran, else what the others cannot explain.
                        if shares.len() == 1 {
                            1.0
                        } else {
                            unexplained[i] * whole as f64
                        }
                    } else {
                        base * self.rate(&self.queue[place].row.key, i).unwrap_or(mean)
                    }
                })
                .collect();
            for (share, part) in split(whole, &weights).into_iter().enumerate() {
                given[share][i] = part;
            }
        }
        given
    }

    /// Learns from an episode: an interval, and those after it into which its last kernel ran on.
    fn remember(&mut self, bases: Vec<(Key, f64)>, growth: &[Option<u64>], carried: bool) {
        let continues = carried
            && self
                .episode
                .as_ref()
                .is_some_and(|episode| episode.intervals < LONGEST_EPISODE);
        if !continues && let Some(over) = self.episode.take() {
            self.learned_rates.learn(&over.bases, &over.growth);
        }
        let counters = self.counters;
        let episode = self.episode.get_or_insert_with(|| Episode {
            bases: Vec::new(),
            growth: vec![None; counters],
            intervals: 0,
        });
        episode.intervals += 1;
        for (key, base) in bases {
            add_base(&mut episode.bases, &key, base);
        }
        for (sum, part) in episode.growth.iter_mut().zip(growth) {
            if let Some(part) = part {
                *sum = Some(sum.unwrap_or(0) + part);
            }
        }
    }
}

/// Adds to the base of a kernel.
pub(crate) fn add_base(bases: &mut Vec<(Key, f64)>, key: &Key, base: f64) {
    match bases.iter_mut().find(|(known, _)| known == key) {
        Some((_, sum)) => *sum += base,
        None => bases.push((key.clone(), base)),
    }
}
