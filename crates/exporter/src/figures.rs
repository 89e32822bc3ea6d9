//! What is served: cumulative counts and last readings, by GPU, job and rank.

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
        counts.launches = counts.launches.saturating_add(launches);
        counts.grew = now;
        for (name, more) in growth {
            let sum = counts.counters.entry(name.to_owned()).or_default();
            *sum = sum.saturating_add(more);
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

    use super::{Counts, SeriesKey};

    pub fn serialize<S: Serializer>(
        map: &BTreeMap<SeriesKey, Counts>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        map.iter().collect::<Vec<_>>().serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<BTreeMap<SeriesKey, Counts>, D::Error> {
        let list = Vec::<(SeriesKey, Counts)>::deserialize(deserializer)?;
        Ok(list.into_iter().collect())
    }
}
