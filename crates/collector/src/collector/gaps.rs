//! Time in which nobody sampled a GPU although a program was there to be sampled.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Collector, Source};

/// Time of a GPU in which its counters were not sampled although they should have been.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Gaps {
    /// How often samples are missing.
    pub count: u64,
    /// For how long in all, in nanoseconds.
    pub nanoseconds: u64,
    /// The time that was sampled.
    pub sampled_nanoseconds: u64,
}

/// The process that sampled each GPU last, and until when, in nanoseconds since 1970.
pub type SampledUntil = BTreeMap<String, (u32, u64)>;

impl Source {
    /// For how long it published between two times.
    fn published_between(&self, begin: u64, end: u64) -> u64 {
        let last = match self.ended {
            true => self.reader.heartbeat(),
            false => u64::MAX,
        };
        end.min(last).saturating_sub(begin.max(self.first))
    }
}

impl Collector {
    /// What is missing from the series of each GPU.
    pub fn gaps(&self) -> &BTreeMap<Arc<str>, Gaps> {
        &self.gaps
    }

    /// Who sampled each GPU last, for the next reader.
    pub fn sampled_until(&self) -> &SampledUntil {
        &self.sampled_until
    }

    /// A sample that a reader before this one counted.
    pub(super) fn sampled_before(&mut self, gpu: &Arc<str>, process: u32, end: u64) {
        let until = self.sampled_until.entry(gpu.to_string()).or_default();
        if until.1 < end {
            *until = (process, end);
        }
    }

    /// Notes how long a process sampled a GPU; true if samples before this one are missing. Samples
    /// are to come in their order.
    pub(super) fn follows_gap(
        &mut self,
        gpu: &Arc<str>,
        process: u32,
        begin: u64,
        end: u64,
    ) -> bool {
        let before = self.sampled_until.insert(gpu.to_string(), (process, end));
        let missing = match before {
            Some((sampler, until)) if sampler == process => begin.saturating_sub(until),
            // From one sampler to the next, only the time counts in which a program was there.
            Some((_, until)) => {
                let programs = self.sources.values();
                let programs = programs.filter(|source| !source.reader.is_sampler());
                let missed = programs.map(|source| source.published_between(until, begin));
                missed.max().unwrap_or(0)
            }
            None => 0,
        };
        let gaps = self.gaps.entry(Arc::clone(gpu)).or_default();
        let length = end.saturating_sub(begin);
        gaps.sampled_nanoseconds += length;
        // Clocks are matched anew now and then, which moves samples by nanoseconds.
        let gap = missing > length / 2;
        if gap {
            gaps.count += 1;
            gaps.nanoseconds += missing;
        }
        gap
    }
}
