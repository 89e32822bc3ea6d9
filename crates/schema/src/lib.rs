//! The counter schema that simulated and real GPUs share.
//!
//! A metadata file (TOML) names counters, an interval and a mode; the table of counters
//! (`lockstep_counters`) says what each name means on each architecture. Counters are cumulative. The
//! same file drives `lockstep run` and `lockstep sample`.
//!
//! Start reading at [`Metadata`] for the file and at [`lockstep_counters::COUNTERS`] for the names.

mod error;
mod metadata;
mod nearest;

pub use lockstep_counters::{COUNTERS, DEVICE_GAUGES, Definition, HOST_GAUGES, Metric};

pub use error::SchemaError;
pub use metadata::{GaugeSettings, Metadata, Mode, SegmentSettings, Timeline};
