//! The L2 cache: slices, each with the DRAM channel behind it.
//!
//! Start reading at [`slice`].

mod end_of_kernel_flush;
mod partial_sector_tracker;
mod replies;
mod requests;
pub mod slice;

pub use slice::{L2Slice, SliceParameters};
