//! What memory holds, and the one order in which it changes.
//!
//! [`Contents`] are immutable while an epoch runs. What SMs and slices write goes to a [`Log`]
//! of theirs and is applied at the end of the epoch by [`commit`](commit::commit_bucket). The
//! rule and its proof: `docs/decisions/0002-memory-order.md`.
//!
//! Start reading at [`Contents`], then [`Log`].

pub mod commit;
mod contents;
mod home;
mod log;
mod pages;
mod ranges;
pub mod table;

pub use contents::{Contents, ContentsError, reads_zero};
pub use home::Home;
pub use log::{BUCKETS, Entry, Log, bucket_of};
pub use pages::{PAGE, Pages};
pub use ranges::{RangeError, Ranges};
pub use table::spread;

/// Bytes of a sector: the grain of coherence, of logs and of traffic.
pub const SECTOR: u64 = 32;

/// Bytes of a line: the grain at which addresses are spread over slices.
pub const LINE: u64 = 128;

/// Line numbers of code as L2 sees them lie above those of memory; it always has them.
pub const CODE_LINES: u64 = 1 << 52;

/// The bytes of one sector.
pub type SectorBytes = [u8; SECTOR as usize];
