//! What the SMs of a GPC share on their way to the L2 slices.
//!
//! Modelled: which TPC is in which GPC, reads of one GPC that reach a slice as one request, and
//! arbitration at a slice that many GPCs want. Each slice keeps its own state of these.
//! Left out: ports and queues of a GPC as parts of their own.
//!
//! Start reading at [`GroupPlaces`], then [`read_arbiter`].

pub mod atomic_arbiter;
pub mod read_arbiter;
pub mod request_coalescer;

pub use atomic_arbiter::{AtomicArbiter, GroupPlaces};
pub use read_arbiter::GpcReadArbiter;
pub use request_coalescer::GpcRequestCoalescer;
