//! Where everything stands in a segment. All numbers are little-endian and naturally aligned.
//!
//! Readers accept exactly [`VERSION`]; any change of this page is a new version.

/// First eight bytes of every segment.
pub const MAGIC: u64 = u64::from_le_bytes(*b"LOCKSEG\0");
/// Version of the layout on this page.
pub const VERSION: u32 = 5;
/// Bytes of the header, region list included. A whole page, so that regions can be mapped alone.
pub const HEADER_BYTES: usize = 4096;

/// Byte offsets in the header.
pub mod header {
    /// `u64`: [`super::MAGIC`].
    pub const MAGIC: usize = 0;
    /// `u32`: [`super::VERSION`].
    pub const VERSION: usize = 8;
    /// `u32`: [`super::HEADER_BYTES`].
    pub const HEADER_BYTES: usize = 12;
    /// `u64` seqlock of the region list: odd while it changes.
    pub const GENERATION: usize = 16;
    /// `u32`: the publishing process.
    pub const PROCESS: usize = 24;
    /// `u32`: its user.
    pub const USER: usize = 28;
    /// `u64`: when it started, in the kernel's ticks; tells a reused process number apart.
    pub const STARTED: usize = 32;
    /// `u64`: inode of its process-number namespace.
    pub const NAMESPACE: usize = 40;
    /// `u64`: last sign of life, nanoseconds since 1970.
    pub const HEARTBEAT: usize = 48;
    /// `u32`: [`super::STATE_RUNNING`] or [`super::STATE_FINISHED`].
    pub const STATE: usize = 56;
    /// `u32`: 1 if the process only samples, and runs no kernels of its own.
    pub const SAMPLER: usize = 60;
    /// `u32`: values in a record and in a row.
    pub const VALUES: usize = 64;
    /// `u32`: bytes of a record's slot.
    pub const SLOT_BYTES: usize = 68;
    /// `u64`: records begun. A slot more than one ring behind this may be overwritten.
    pub const CLAIMED: usize = 72;
    /// `u64`: records complete.
    pub const PUBLISHED: usize = 80;
    /// `u64`: records that the storing reader no longer needs.
    pub const ACKNOWLEDGED: usize = 88;
    /// `u64`: records overwritten before they were acknowledged.
    pub const LOST: usize = 96;
    /// `u64`: identities complete.
    pub const IDENTITIES: usize = 104;
    /// `u64`: rows in use.
    pub const ROWS: usize = 112;
    /// `u32`: regions in use.
    pub const REGIONS: usize = 120;
    /// First entry of the region list.
    pub const REGION_LIST: usize = 256;
}

/// The process is publishing.
pub const STATE_RUNNING: u32 = 1;
/// The process has published its last record.
pub const STATE_FINISHED: u32 = 2;

/// Bytes of one entry of the region list: kind `u32`, padding, offset, length, first index `u64`.
pub const REGION_ENTRY_BYTES: usize = 32;
/// Entries of the region list. Each region doubles the last, so these are never used up.
pub const MOST_REGIONS: usize = 96;

/// A region that holds slots of the ring.
pub const REGION_RING: u32 = 1;
/// A region that holds identities.
pub const REGION_IDENTITIES: u32 = 2;
/// A region that holds rows.
pub const REGION_ROWS: u32 = 3;

/// Most values that a record can carry.
pub const MOST_VALUES: usize = 16;

/// Byte offsets in a slot.
pub mod slot {
    /// `u64`: index of the record plus one; 0 while it is written.
    pub const SEQUENCE: usize = 0;
    /// `u32`: kind of record.
    pub const KIND: usize = 8;
    /// `u32`: bit 0 exact, bit 1 timed by the device; bits 16 to 31 say which values are there.
    pub const FLAGS: usize = 12;
    /// Four `u32`: device, context, stream, kernel.
    pub const DEVICE: usize = 16;
    /// Two `u64`: begin and end, nanoseconds since 1970.
    pub const BEGIN: usize = 32;
    /// `u64`: number of the launch.
    pub const LAUNCH: usize = 48;
    /// Six `u32`: grid and block.
    pub const GRID: usize = 56;
    /// Values, `u64` each.
    pub const VALUES: usize = 80;
}

/// Bytes of a slot with `values` values.
pub const fn slot_bytes(values: usize) -> usize {
    (slot::VALUES + 8 * values).next_multiple_of(16)
}

/// Byte offsets in a row.
pub mod row {
    /// `u64` seqlock: odd while the row changes.
    pub const SEQUENCE: usize = 0;
    /// Four `u32`: device, context, stream, kernel.
    pub const DEVICE: usize = 8;
    /// `u64`: launches.
    pub const LAUNCHES: usize = 24;
    /// `u64`: time that they ran, nanoseconds.
    pub const BUSY: usize = 32;
    /// `u64`: last change, nanoseconds since 1970.
    pub const UPDATED: usize = 40;
    /// Values, `u64` each.
    pub const VALUES: usize = 48;
}

/// Bytes of a row with `values` values.
pub const fn row_bytes(values: usize) -> usize {
    (row::VALUES + 8 * values).next_multiple_of(64)
}

/// Byte offsets in an identity; its text follows, padded to eight bytes.
pub mod identity {
    /// `u32`: kind; 0 ends a region.
    pub const KIND: usize = 0;
    /// `u32`: bytes of text.
    pub const LENGTH: usize = 4;
    /// `u32`: identity that this one belongs to.
    pub const PARENT: usize = 8;
    /// `u32`: the driver's own number for it.
    pub const NUMBER: usize = 12;
    /// The text.
    pub const TEXT: usize = 16;
}

/// Longest text of an identity; longer kernel names are cut.
pub const LONGEST_TEXT: usize = 4096;

/// Bytes of an identity with `length` bytes of text.
pub const fn identity_bytes(length: usize) -> usize {
    (identity::TEXT + length).next_multiple_of(8)
}
