//! Sizes that caches, logs and traffic share.

/// Bytes of a sector: the grain of coherence, of logs and of traffic.
pub const SECTOR: u64 = 32;

/// Bytes of a line: the grain at which addresses are spread over slices.
pub const LINE: u64 = 128;

/// Line numbers of code as L2 sees them lie above those of memory; it always has them.
pub const CODE_LINES: u64 = 1 << 52;

/// The bytes of one sector.
pub type SectorBytes = [u8; SECTOR as usize];
