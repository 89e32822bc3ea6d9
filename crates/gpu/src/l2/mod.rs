//! The L2 cache: slices, each with the DRAM channel behind it.
//!
//! Modelled: tags by line and sector, write-back, the bandwidth of a slice and of its write port,
//! the rate of atomics, requests of a GPC that are coalesced, arbitration between GPCs, and two L2
//! partitions that each keep copies of the other's lines for their own SMs.
//! Misses take MSHRs; when there is none, a slice takes up nothing, and SMs get no credits back for what
//! waits in its queue (`crossbar::credits`): that is the back-pressure on them.
//! Times are reserved when a request arrives: nothing is simulated while it waits.
//!
//! Start reading at [`L2Slice::run`], then [`sector_store`].

mod atomic_unit;
mod attribution;
mod end_of_kernel_flush;
mod fabric;
mod mshr;
mod outside;
mod parameters;
mod partial_sector_tracker;
mod peer_port;
mod replies;
mod sector_store;
mod slice;
mod strong_accesses;
mod strong_loads;

pub use attribution::{NO_LAUNCH, Traffic};
pub use outside::{OutsideAccess, OutsideRequest, slice_of};
pub use parameters::{SliceParameters, SliceWiring};
pub use peer_port::{LinkLoad, PeerLinks, PeerStats};
pub use replies::Reply;
pub use sector_store::{DmaSource, WrittenLine};
pub use slice::L2Slice;
