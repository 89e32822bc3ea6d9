//! What every figure is called by Prometheus and by OpenTelemetry, in one table.
//!
//! Names, sentences and units come from the table of counters; this page adds what each system
//! makes of a unit, and the figures about the exporter itself. Where dcgm-exporter has a name, it
//! is used, with dcgm-exporter's labels and units, so that its dashboards work.

use lockstep_counters::{DEVICE_GAUGES, Metric, measurable};
use serde::{Deserialize, Serialize};

use crate::figures::{Counts, Figures, Gpu, SeriesKey};

/// Where figures come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Source {
    /// A real GPU.
    #[default]
    Real,
    /// A simulated one.
    Simulated,
}

impl Source {
    /// The label's value.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Real => "real",
            Self::Simulated => "simulated",
        }
    }
}

/// A value as both systems have it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value {
    /// Never decreases.
    Count(u64),
    /// Never decreases, in a unit that is divided.
    Sum(f64),
    /// Goes up and down.
    Level(f64),
}

/// One figure with what it belongs to.
#[derive(Clone, Debug, PartialEq)]
pub struct Point<'figures> {
    /// The GPU: its UUID, and what is known of it.
    pub gpu: Option<(&'figures str, &'figures Gpu)>,
    /// The series, for counts.
    pub series: Option<&'figures SeriesKey>,
    /// The value, in Prometheus's unit.
    pub value: Value,
}

/// Where the values of a family are found.
#[derive(Clone, Copy, Debug)]
enum Content {
    Counter(&'static str),
    Launches,
    Gauge(&'static str, f64),
    OfGpu(fn(&Gpu) -> Value),
    OfAll(fn(&Figures) -> Value),
}

/// All figures of one name.
#[derive(Clone, Debug)]
pub struct Family {
    /// Prometheus's name; counters end in `_total` on the page.
    pub prometheus: String,
    /// OpenTelemetry's name.
    pub otlp: String,
    /// OpenTelemetry's unit.
    pub otlp_unit: &'static str,
    /// What a value in Prometheus's unit is multiplied by for OpenTelemetry's.
    pub otlp_scale: f64,
    /// Whether it is a counter.
    pub counts: bool,
    /// The help text.
    pub help: &'static str,
    content: Content,
}

/// What systems make of our units: DCGM's scale, OpenTelemetry's unit, and its scale from DCGM's.
const UNITS: &[(&str, f64, &str, f64)] = &[
    ("milliwatts", 1e-3, "W", 1.0),
    ("degrees Celsius", 1.0, "Cel", 1.0),
    ("megahertz", 1.0, "MHz", 1.0),
    ("bytes", 1.0 / 1_048_576.0, "By", 1_048_576.0),
];

/// Figures about each GPU and about the exporter: name, help text, where the value is.
const OWN: &[(&str, &str, Content)] = &[
    (
        "sampled_seconds",
        "Time in which the counters of the GPU were sampled.",
        Content::OfGpu(|gpu| Value::Sum(gpu.sampled_nanoseconds as f64 / 1e9)),
    ),
    (
        "sample_gaps",
        "Times that samples of the GPU are missing: counts are too low by what it did then.",
        Content::OfGpu(|gpu| Value::Count(gpu.gaps)),
    ),
    (
        "sample_gap_seconds",
        "Time in which samples of the GPU are missing.",
        Content::OfGpu(|gpu| Value::Sum(gpu.gap_nanoseconds as f64 / 1e9)),
    ),
    (
        "records_lost",
        "Records that were overwritten before they could be read.",
        Content::OfAll(|figures| Value::Count(figures.losses.records)),
    ),
    (
        "losses",
        "Counters and segments that could not be read; the sampler's log has a sentence for each.",
        Content::OfAll(|figures| Value::Count(figures.losses.sentences)),
    ),
    (
        "processes",
        "Processes that publish, samplers included.",
        Content::OfAll(|figures| Value::Level(figures.processes as f64)),
    ),
];

fn of_counter(metric: &'static Metric) -> Family {
    Family {
        prometheus: format!("lockstep_gpu_{}", metric.name),
        otlp: format!("lockstep.gpu.{}", metric.name),
        otlp_unit: "1",
        otlp_scale: 1.0,
        counts: true,
        help: metric.summary,
        content: Content::Counter(metric.name),
    }
}

fn of_gauge(metric: &'static Metric) -> Family {
    let known = UNITS.iter().find(|(unit, ..)| *unit == metric.unit);
    let (_, scale, otlp_unit, otlp_scale) = *known.unwrap_or(&("", 1.0, "1", 1.0));
    let ours = |separator: &str| ["lockstep", "gpu", metric.name].join(separator);
    Family {
        prometheus: metric.dcgm.map_or_else(|| ours("_"), str::to_owned),
        otlp: metric.otlp.map_or_else(|| ours("."), str::to_owned),
        otlp_unit,
        otlp_scale,
        counts: false,
        help: metric.summary,
        content: Content::Gauge(metric.name, scale),
    }
}

/// Every family there can be, in the order of the page.
pub fn families() -> Vec<Family> {
    let launches = Family {
        prometheus: "lockstep_gpu_launches".to_owned(),
        otlp: "lockstep.gpu.launches".to_owned(),
        otlp_unit: "{launch}",
        otlp_scale: 1.0,
        counts: true,
        help: "Launches of kernels.",
        content: Content::Launches,
    };
    let own = OWN.iter().map(|(name, help, content)| Family {
        prometheus: format!("lockstep_{name}"),
        otlp: format!("lockstep.{name}"),
        otlp_unit: if name.ends_with("seconds") { "s" } else { "1" },
        otlp_scale: 1.0,
        counts: *name != "processes",
        help,
        content: *content,
    });
    measurable()
        .map(of_counter)
        .chain([launches])
        .chain(DEVICE_GAUGES.iter().map(of_gauge))
        .chain(own)
        .collect()
}

impl Family {
    /// Name of the metric in a query.
    pub fn query_name(&self) -> String {
        let ending = if self.counts { "_total" } else { "" };
        format!("{}{ending}", self.prometheus)
    }

    /// What `figures` has of this family; nothing for what was not counted.
    pub fn points<'figures>(&self, figures: &'figures Figures) -> Vec<Point<'figures>> {
        let series = |value: &dyn Fn(&Counts) -> Option<u64>| {
            let all = figures.series.iter();
            let points = all.filter_map(|(key, counts)| {
                Some(Point {
                    gpu: figures.gpus.get_key_value(&key.gpu).map(named),
                    series: Some(key),
                    value: Value::Count(value(counts)?),
                })
            });
            points.collect()
        };
        let of_gpus = |value: &dyn Fn(&Gpu) -> Option<Value>| {
            let all = figures.gpus.iter();
            let points = all.filter_map(|gpu| {
                Some(Point {
                    gpu: Some(named(gpu)),
                    series: None,
                    value: value(gpu.1)?,
                })
            });
            points.collect()
        };
        match self.content {
            Content::Counter(name) => series(&|counts| counts.counters.get(name).copied()),
            Content::Launches => series(&|counts| Some(counts.launches)),
            Content::Gauge(name, scale) => of_gpus(&|gpu| {
                let value = *gpu.gauges.get(name)?;
                Some(Value::Level(value as f64 * scale))
            }),
            Content::OfGpu(value) => of_gpus(&|gpu| Some(value(gpu))),
            Content::OfAll(value) => vec![Point {
                gpu: None,
                series: None,
                value: value(figures),
            }],
        }
    }
}

fn named<'figures>(
    (uuid, gpu): (&'figures String, &'figures Gpu),
) -> (&'figures str, &'figures Gpu) {
    (uuid, gpu)
}
