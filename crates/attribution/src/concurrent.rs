//! Intervals in which several streams, contexts or processes were at work.
//!
//! Marks say how far each stream had come; groups of launches between two marks go to
//! [`crate::solver`], and what it finds is handed to kernels and launches.

mod groups;
mod hand_out;
#[cfg(test)]
mod tests;
mod warps;
mod windows;

use std::collections::BTreeMap;

use crate::attribution::Attribution;
use crate::launch::{Key, LaunchRow};
use crate::sample::{DeviceSample, Part};
use crate::solver::Evidence;

/// Intervals that are divided together while streams share the GPU.
const LONGEST_RUN: usize = 512;

/// Intervals of more than one stream that make a run.
const SHORTEST_RUN: usize = 3;

/// Intervals of one stream alone in the middle of a run: they tell most.
const LONGEST_GAP: usize = 5;

/// Kernels whose evidence is kept; beyond that it begins anew.
const MOST_KERNELS: usize = 128;

/// What all runs of shared intervals told.
#[derive(Default)]
pub(crate) struct Learned {
    numbers: BTreeMap<Key, usize>,
    evidence: Evidence,
}

impl Learned {
    /// The number of each kernel.
    fn numbers(&mut self, kernels: &[Key]) -> Vec<usize> {
        let new = kernels.iter().filter(|key| !self.numbers.contains_key(key));
        if self.numbers.len() + new.count() > MOST_KERNELS {
            *self = Self::default();
        }
        let number = |key: &Key| {
            let next = self.numbers.len();
            *self.numbers.entry(key.clone()).or_insert(next)
        };
        kernels.iter().map(number).collect()
    }
}

impl Attribution {
    /// Whether launches of more than one stream wait or run.
    pub fn shares(&self) -> bool {
        self.streams.len() > 1
    }

    /// Divides samples in order, as [`Self::sample`] does one; parts of each sample.
    pub fn samples(
        &mut self,
        samples: &[DeviceSample],
        done: &mut Vec<LaunchRow>,
    ) -> Vec<Vec<Part>> {
        let mut parts = Vec::with_capacity(samples.len());
        while let Some(next) = samples.get(parts.len()) {
            let run = self.shared_run(&samples[parts.len()..]);
            if run == 0 {
                parts.push(self.sample(next, done));
            } else {
                let run = &samples[parts.len()..][..run];
                parts.extend(self.divide_shared(run, done));
            }
        }
        parts
    }

    /// How many of the next intervals are a run that belongs to more than one stream.
    fn shared_run(&self, samples: &[DeviceSample]) -> usize {
        let running = self
            .running
            .as_ref()
            .map(|(_, one)| one.row.key.stream_id());
        let others = running.is_some_and(|running| !self.streams.contains_key(&running));
        if self.streams.len() + usize::from(others) < 2 {
            return 0;
        }
        let samples = &samples[..samples.len().min(LONGEST_RUN)];
        let end = samples.last().map_or(0, |one| one.end);
        // Launches without marks are over when so many warps have started.
        let mut before = 0;
        let mut launches = Vec::new();
        for (place, one) in self.queue.range(..(end, 0)) {
            if one.timed {
                return 0;
            }
            let window = self.window(one, place.0);
            if self.waits_at(one, &window, samples.first().map_or(0, |one| one.begin)) {
                continue;
            }
            before += one.left;
            launches.push((one.row.key.stream_id(), window, before));
        }
        let mut started = 0;
        let mut is_shared = |sample: &DeviceSample| {
            let mut found = None;
            let shared = launches.iter().any(|(stream, window, before)| {
                let ran = window.begin < sample.end
                    && match window.end {
                        Some(end) => end > sample.begin,
                        None => *before > started,
                    };
                ran && *found.get_or_insert(*stream) != *stream
            });
            started += self
                .warps
                .and_then(|place| sample.growth[place])
                .unwrap_or(u64::MAX / 2);
            shared
        };
        let (mut run, mut shared) = (0, 0);
        for (i, sample) in samples.iter().enumerate() {
            if is_shared(sample) {
                (run, shared) = (i + 1, shared + 1);
            } else if i >= run + LONGEST_GAP {
                break;
            }
        }
        // Fewer than these: one stream hands over to another, and their order says it all.
        if shared < SHORTEST_RUN { 0 } else { run }
    }
}
