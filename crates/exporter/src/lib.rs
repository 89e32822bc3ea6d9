//! Hands what segments hold to the monitoring that sites already run.
//!
//! ```text
//! segments ─▶ Live (the collector of `lockstep sample`) ─┐
//! run folder ─▶ Replay ──────────────────────────────────┴▶ Figures ─▶ Prometheus, OpenTelemetry
//! ```
//!
//! Figures are sums by GPU, job and rank. They never fall: what was counted and how far every
//! segment was read is kept beside the segments, so that an exporter that was killed is followed by
//! one that goes on. What is lost is counted, too.
//!
//! Start reading at [`Service`]; names are in `names.rs`.

#[cfg(feature = "transport")]
mod access;
mod error;
mod figures;
mod kernels;
mod live;
mod names;
#[cfg(feature = "transport")]
mod otlp;
#[cfg(feature = "transport")]
mod prometheus;
mod replay;
#[cfg(feature = "transport")]
mod server;
#[cfg(feature = "transport")]
mod service;
mod state;
#[cfg(feature = "transport")]
mod tls;

#[cfg(feature = "transport")]
pub use access::Access;
pub use error::ExporterError;
pub use figures::{Counts, DetailKey, Figures, Gpu, Losses, SeriesKey};
pub use kernels::{KernelLabels, OTHER};
pub use live::Live;
pub use names::{Family, Point, Source, Value, families};
#[cfg(feature = "transport")]
pub use otlp::{Endpoint, Pusher, request};
#[cfg(feature = "transport")]
pub use prometheus::{CONTENT_TYPE, page};
pub use replay::Replay;
#[cfg(feature = "transport")]
pub use server::{Server, Shared};
#[cfg(feature = "transport")]
pub use service::{Options, Origin, Service};
pub use state::{State, StateFile};
