//! Figures pushed to an OpenTelemetry collector: OTLP over HTTP, in protobuf.
//!
//! Names follow OpenTelemetry's conventions for hardware where they have one (`hw.power`,
//! `hw.temperature`, `hw.gpu.memory.usage`), and `lockstep.gpu.*` elsewhere. `hw.id` is the UUID of
//! the GPU. Sums are cumulative, from the start of the exporter's own state on.
//!
//! Left out: TLS. An endpoint is on this machine, where sites run a collector that forwards; it
//! knows their certificates, retries and queues.

mod message;
mod push;

pub use message::request;
pub use push::{Endpoint, Pusher};
