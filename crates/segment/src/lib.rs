//! Shared memory between a sampled process and its readers.
//!
//! Each sampled process owns one segment, a file in a private folder of a memory file system. It
//! holds a header, a ring of records (launches, samples, gauges), a table of names, and rows of
//! cumulative counters. Everything grows: a region that is full is followed by one twice its size,
//! and the header's generation number tells readers to look at the list of regions again.
//!
//! Nothing blocks. The publisher never waits for a reader; a reader never maps the file, it reads
//! bytes and checks them against counters read before and after (a seqlock), so that neither a
//! killed publisher nor a hostile one can hang it, tear a value, or take it down with a fault.
//! One reader may acknowledge what it has stored; until then the publisher keeps the records, up
//! to the configured size, and counts what it had to give up.
//!
//! Start reading at [`layout`], then [`Publisher`] and [`SegmentReader`].

mod directory;
mod error;
mod groups;
mod introduction;
pub mod layout;
mod membership;
mod publisher;
mod reader;
mod record;
mod region;
mod time;

pub use directory::{KEPT, SegmentDirectory, process_start_ticks};
pub use error::SegmentError;
pub use groups::is_member;
pub use introduction::node_name;
pub use membership::{RANK_VARIABLES, rank};
pub use publisher::{Publisher, RowKey};
pub use reader::{Batch, Liveness, Row, SegmentReader};
pub use record::{Identity, IdentityKind, NO_IDENTITY, Record, RecordKind};
pub use time::now;
