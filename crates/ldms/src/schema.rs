//! What a metric set holds: the same for every GPU, flat, under the names of the LDMS-GPU report
//! and of LDMS's own DCGM sampler.

use lockstep_counters::{DEVICE_GAUGES, Metric};
use lockstep_exporter::{Counts, Figures, Gpu};

/// Where the value of a metric is found.
#[derive(Clone, Copy, Debug)]
enum Content {
    Counter(&'static str),
    Launches,
    Gauge(&'static str),
    OfGpu(fn(&Gpu) -> u64),
    OfAll(fn(&Figures) -> u64),
}

/// A value of a set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Cumulative.
    Count(u64),
    /// Goes up and down; not a number while it is not known.
    Level(f64),
}

/// One metric of the set.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// Its unit.
    pub unit: &'static str,
    content: Content,
}

/// What is known of the samples themselves.
const OWN: &[(&str, &str, Content)] = &[
    (
        "sampled_time",
        "ns",
        Content::OfGpu(|gpu| gpu.sampled_nanoseconds),
    ),
    ("sample_gaps", "gaps", Content::OfGpu(|gpu| gpu.gaps)),
    (
        "sample_gap_time",
        "ns",
        Content::OfGpu(|gpu| gpu.gap_nanoseconds),
    ),
    (
        "records_lost",
        "records",
        Content::OfAll(|figures| figures.losses.records),
    ),
    (
        "losses",
        "losses",
        Content::OfAll(|figures| figures.losses.sentences),
    ),
];

/// The metrics of a set, for the counters of a metadata file.
pub fn columns(counters: &[&'static Metric]) -> Vec<Column> {
    let counters = counters.iter().map(|metric| Column {
        name: metric.name,
        unit: metric.unit,
        content: Content::Counter(metric.name),
    });
    let launches = Column {
        name: "launches",
        unit: "launches",
        content: Content::Launches,
    };
    let gauges = DEVICE_GAUGES.iter().map(|metric| Column {
        name: metric.ldms.unwrap_or(metric.name),
        unit: metric.unit,
        content: Content::Gauge(metric.name),
    });
    let own = OWN.iter().map(|(name, unit, content)| Column {
        name,
        unit,
        content: *content,
    });
    counters
        .chain([launches])
        .chain(gauges)
        .chain(own)
        .collect()
}

impl Column {
    /// Whether its values are counts.
    pub fn counts(&self) -> bool {
        !matches!(self.content, Content::Gauge(_))
    }

    /// Its value for a GPU: counts are summed over jobs and ranks.
    pub fn value(&self, uuid: &str, gpu: &Gpu, figures: &Figures) -> Value {
        let sum = |of: &dyn Fn(&Counts) -> u64| {
            let ours = figures.series.iter().filter(|(key, _)| key.gpu == uuid);
            Value::Count(ours.map(|(_, counts)| of(counts)).sum())
        };
        match self.content {
            Content::Counter(name) => {
                sum(&|counts| counts.counters.get(name).copied().unwrap_or(0))
            }
            Content::Launches => sum(&|counts| counts.launches),
            Content::Gauge(name) => {
                let read = gpu.gauges.get(name);
                Value::Level(read.map_or(f64::NAN, |value| *value as f64))
            }
            Content::OfGpu(of) => Value::Count(of(gpu)),
            Content::OfAll(of) => Value::Count(of(figures)),
        }
    }
}
