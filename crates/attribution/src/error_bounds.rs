//! How far the counts of a stream may be off that shared a GPU with others.
//!
//! Which kernel of a stream ran is known better than whose turn it was, so the doubt is about streams:
//! a process, a context and a stream in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::{DeviceSample, Part, SHARED_ERROR_BOUND};

/// A stream: GPU, process, context and number.
pub type Stream = (Arc<str>, u32, u32, u32);

/// What one stream did.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Shared {
    /// Counters, in the order of the metadata file.
    pub counters: Vec<u64>,
    /// Each of them is expected to be right within this.
    pub within: Vec<u64>,
    /// Intervals in which others were at work too.
    pub intervals: u64,
}

/// All streams of a run.
#[derive(Clone, Debug, Default)]
pub struct ErrorBounds(BTreeMap<Stream, Shared>);

impl ErrorBounds {
    /// Adds the parts of one sample.
    pub fn add(&mut self, sample: &DeviceSample, parts: &[Part]) {
        let mut shared: Vec<Stream> = Vec::new();
        for part in parts.iter().filter(|part| part.key.process != 0) {
            let key = &part.key;
            let stream = (Arc::clone(&key.gpu), key.process, key.context, key.stream);
            let sums = self.0.entry(stream.clone()).or_default();
            sums.counters.resize(part.growth.len(), 0);
            sums.within.resize(part.growth.len(), 0);
            for (sum, growth) in sums.counters.iter_mut().zip(&part.growth) {
                *sum += growth.unwrap_or(0);
            }
            if part.shared && !shared.contains(&stream) {
                sums.intervals += 1;
                for (within, growth) in sums.within.iter_mut().zip(&sample.growth) {
                    *within += (SHARED_ERROR_BOUND * growth.unwrap_or(0) as f64).ceil() as u64;
                }
                shared.push(stream);
            }
        }
    }

    /// Streams that shared a GPU.
    pub fn shared(&self) -> impl Iterator<Item = (&Stream, &Shared)> {
        self.0.iter().filter(|(_, shared)| shared.intervals > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Key;

    #[test]
    fn only_shared_intervals_are_in_doubt_and_each_once() {
        let part = |process: u32, kernel: &str, count: u64, shared: bool| Part {
            key: Key {
                gpu: "GPU-1".into(),
                process,
                context: 1,
                stream: 7,
                kernel: kernel.into(),
            },
            exact: !shared,
            shared,
            growth: vec![Some(count)],
        };
        let sample = |growth: u64| DeviceSample {
            begin: 0,
            end: 1,
            growth: vec![Some(growth)],
            after_gap: false,
        };
        let mut bounds = ErrorBounds::default();
        bounds.add(&sample(1000), &[part(1, "a", 1000, false)]);
        bounds.add(&sample(500), &[part(3, "c", 500, false)]);
        let both = [
            part(1, "a", 100, true),
            part(1, "b", 200, true),
            part(2, "a", 1700, true),
            part(0, "(other)", 0, true),
        ];
        bounds.add(&sample(2000), &both);
        let found: Vec<_> = bounds
            .shared()
            .map(|(stream, one)| (stream.1, one.counters[0], one.within[0]))
            .collect();
        assert_eq!(found, [(1, 1300, 160), (2, 1700, 160)]);
    }
}
