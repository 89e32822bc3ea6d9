//! What the SMs of a GPC share on their way to the L2 slices.
//!
//! Modelled: which TPC is in which GPC, reads of one GPC that reach a slice as one request, and
//! arbitration at a slice that many GPCs want. These stand on the way of a request before its
//! slice; each slice keeps their state for the requests that come to it.
//! Left out: ports and queues of a GPC as parts of their own, and a GPC's MMU.
//!
//! Start reading at [`GpcMap`], then [`GpcReadArbiter::begin`].

mod atomic_arbiter;
mod map;
mod read_arbiter;
mod request_coalescer;

pub use atomic_arbiter::AtomicArbiter;
pub use map::{GpcMap, partitions_of_gpcs, tpc_hop_latencies, tpc_of_sm};
pub use read_arbiter::GpcReadArbiter;
pub use request_coalescer::GpcRequestCoalescer;
