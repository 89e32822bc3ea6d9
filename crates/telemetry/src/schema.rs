//! The counter schema that simulated and real GPUs share.
//!
//! A metadata file (TOML) names counters, an interval and a mode; the registry in
//! [`counters`] says what each name means on each architecture. Counters are cumulative. The same
//! file drives `lockstep run` and `lockstep sample`.
//!
//! Start reading at [`Metadata`] for the file and at [`counters::COUNTERS`] for the names.

pub mod counters;
mod error;
mod metadata;
mod nearest;

pub use counters::{COUNTERS, Counter, Definition, GAUGES, Gauge};
pub use error::SchemaError;
pub use metadata::{GaugeSettings, Metadata, Mode, SegmentSettings, Timeline};
