//! What memory holds, and the one order in which it changes.
//!
//! [`Contents`] are immutable while an epoch runs. What SMs and slices write goes to a [`Log`]
//! of theirs and is applied at the end of the epoch by [`commit`](commit::commit_bucket). The
//! rule and its proof: `docs/decisions/0002-memory-order.md`.
//!
//! Left out: time. Caches and DRAM hold tags and rows, never bytes.
//!
//! Start reading at [`Contents`], then [`Log`].

mod aliases;
pub mod commit;
mod contents;
mod geometry;
mod home;
mod initialised;
mod log;
mod log_bytes;
mod mapped;
mod mapping;
mod multicast;
mod pages;
mod ranges;
pub mod table;

pub use aliases::Aliases;
pub use contents::{Contents, ContentsError, reads_zero};
pub use geometry::{CODE_LINES, LINE, SECTOR, SectorBytes};
pub use home::Home;
pub use initialised::Initialised;
pub use log::{BUCKETS, Entry, Log, bucket_of};
pub use mapped::DEVICE_PAGE;
pub use mapping::Mapping;
pub use multicast::{MulticastMapping, MulticastMember, Multicasts, Places};
pub use pages::{PAGE, Pages};
pub use ranges::{RangeError, Ranges};
pub use table::spread;
