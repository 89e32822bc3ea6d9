//! What is served: cumulative counts and last readings, by GPU, job and rank.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::names::Source;

/// What a count belongs to. The sum over all series of a GPU is the GPU's own count.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct SeriesKey {
    /// UUID of the GPU.
    pub gpu: String,
    /// The job whose work it is; nothing outside of jobs, and for work that no program explains.
    pub job: Option<String>,
    /// The rank in that job.
    pub rank: Option<String>,
    /// The kernel, if kernels were asked for.
    pub kernel: Option<String>,
}

/// A kernel of one context of one process, for readers that can take so many.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
pub struct DetailKey {
    /// UUID of the GPU.
    pub gpu: String,
    /// The process.
    pub process: u32,
    /// Its context.
    pub context: u32,
    /// The kernel.
    pub kernel: String,
}

/// Counts of one series.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Counts {
    /// Launches of kernels.
    pub launches: u64,
    /// Counters by the names of the table of counters; absent where nothing was counted.
    pub counters: BTreeMap<String, u64>,
    /// Last growth, nanoseconds since 1970.
    pub grew: u64,
}

impl Counts {
    fn grow<'a>(&mut self, launches: u64, growth: impl Iterator<Item = (&'a str, u64)>, now: u64) {
        self.launches = self.launches.saturating_add(launches);
        self.grew = now;
        for (name, more) in growth {
            let sum = self.counters.entry(name.to_owned()).or_default();
            *sum = sum.saturating_add(more);
        }
    }
}

/// One GPU.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Gpu {
    /// Its index on its node.
    pub index: u32,
    /// Whether it is simulated.
    #[serde(default)]
    pub source: Source,
    /// Gauges by the names of the table of counters.
    pub gauges: BTreeMap<String, u64>,
    /// When they were read, nanoseconds since 1970.
    pub read: u64,
    /// How often samples are missing.
    pub gaps: u64,
    /// For how long in all, in nanoseconds.
    pub gap_nanoseconds: u64,
    /// The time that was sampled, in nanoseconds.
    pub sampled_nanoseconds: u64,
}

/// What was asked for and could not be served, each a counter of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
pub struct Losses {
    /// Records overwritten before they could be read.
    pub records: u64,
    /// Counters and segments that could not be read, a sentence each.
    pub sentences: u64,
}

/// Everything that is served.
#[derive(Clone, Debug, Default, PartialEq, Deserialize, Serialize)]
pub struct Figures {
    /// Name of the node.
    pub node: String,
    /// When counting began, nanoseconds since 1970.
    pub began: u64,
    /// Counts.
    #[serde(with = "pairs")]
    pub series: BTreeMap<SeriesKey, Counts>,
    /// The same counts by process, context and kernel, of those that grew last; empty unless they were asked for.
    #[serde(default, with = "pairs")]
    pub details: BTreeMap<DetailKey, Counts>,
    /// GPUs by UUID.
    pub gpus: BTreeMap<String, Gpu>,
    /// Processes that publish now.
    pub processes: u64,
    /// What is missing.
    pub losses: Losses,
}

/// A job's series is kept this long after it last grew, in nanoseconds. Numbers of jobs never come
/// back, and a node sees many of them.
const KEPT: u64 = 3_600_000_000_000;
/// Readings older than this are no readings any more, in nanoseconds.
const FRESH: u64 = 30_000_000_000;

impl Figures {
    /// Adds what one series did more, at `now`.
    pub fn grow<'a>(
        &mut self,
        key: SeriesKey,
        launches: u64,
        growth: impl Iterator<Item = (&'a str, u64)>,
        now: u64,
    ) {
        self.gpus.entry(key.gpu.clone()).or_default();
        let counts = self.series.entry(key).or_default();
        counts.grow(launches, growth, now);
    }

    /// Adds what a kernel of a context did more, at `now`.
    pub fn grow_detail<'a>(
        &mut self,
        key: DetailKey,
        launches: u64,
        growth: impl Iterator<Item = (&'a str, u64)>,
        now: u64,
    ) {
        let counts = self.details.entry(key).or_default();
        counts.grow(launches, growth, now);
    }

    /// Keeps so many details of each GPU: those that grew last.
    pub fn keep_details(&mut self, most: usize) {
        let mut ages: BTreeMap<&str, Vec<(Reverse<u64>, &DetailKey)>> = BTreeMap::new();
        for (key, counts) in &self.details {
            let ages = ages.entry(&key.gpu).or_default();
            ages.push((Reverse(counts.grew), key));
        }
        let mut old = Vec::new();
        for mut ages in ages.into_values() {
            ages.sort_unstable();
            old.extend(ages.into_iter().skip(most).map(|(_, key)| key.clone()));
        }
        for key in old {
            self.details.remove(&key);
        }
    }

    /// Takes a reading of a GPU's gauges.
    pub fn read_gauges<'a>(
        &mut self,
        gpu: &str,
        gauges: impl Iterator<Item = (&'a str, u64)>,
        time: u64,
    ) {
        let gpu = self.gpus.entry(gpu.to_owned()).or_default();
        gpu.gauges = gauges
            .map(|(name, value)| (name.to_owned(), value))
            .collect();
        gpu.read = time;
    }

    /// Drops readings that are old and jobs that are long over: neither is true of `now`.
    pub fn expire(&mut self, now: u64) {
        for gpu in self.gpus.values_mut() {
            if gpu.read.saturating_add(FRESH) < now {
                gpu.gauges.clear();
            }
        }
        self.series
            .retain(|key, counts| key.job.is_none() || counts.grew.saturating_add(KEPT) >= now);
    }
}

/// A map whose keys are no texts, as a list of pairs.
mod pairs {
    use std::collections::BTreeMap;

    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Counts;

    pub fn serialize<K: Serialize, S: Serializer>(
        map: &BTreeMap<K, Counts>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        map.iter().collect::<Vec<_>>().serialize(serializer)
    }

    pub fn deserialize<'de, K: Deserialize<'de> + Ord, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<K, Counts>, D::Error> {
        let list = Vec::<(K, Counts)>::deserialize(deserializer)?;
        Ok(list.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_that_grew_last_are_kept_for_each_gpu() {
        let mut figures = Figures::default();
        let key = |gpu: &str, process| DetailKey {
            gpu: gpu.into(),
            process,
            ..DetailKey::default()
        };
        for (process, grew) in [(1, 10), (2, 30), (3, 20), (4, 20)] {
            figures.grow_detail(
                key("one", process),
                1,
                [("inst_executed", 5)].into_iter(),
                grew,
            );
        }
        figures.grow_detail(key("two", 9), 1, std::iter::empty(), 1);
        figures.keep_details(2);
        let kept: Vec<u32> = figures.details.keys().map(|key| key.process).collect();
        assert_eq!(kept, [2, 3, 9]);
        figures.keep_details(0);
        assert!(figures.details.is_empty());
    }
}
