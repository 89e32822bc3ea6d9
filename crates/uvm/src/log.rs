//! What happened when, for pictures.

use serde::{Deserialize, Serialize};

/// The direction of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Direction {
    /// From the host.
    ToDevice,
    /// To the host.
    ToHost,
}

/// The cause of a migration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum Cause {
    /// A page of it faulted.
    Fault,
    /// The prefetcher brought it along.
    Prefetch,
    /// The program asked for it.
    User,
    /// Room was needed.
    Eviction,
    /// The host touched it.
    HostFault,
    /// The host waited, and what was written came back.
    Flush,
}

impl Cause {
    /// Its name in outputs.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fault => "fault",
            Self::Prefetch => "prefetch",
            Self::User => "user prefetch",
            Self::Eviction => "eviction",
            Self::HostFault => "host fault",
            Self::Flush => "flush",
        }
    }
}

/// One transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MigrationRecord {
    /// First cycle.
    pub start: u64,
    /// Cycle at which it was complete.
    pub end: u64,
    /// First page.
    pub page: u64,
    /// Number of pages.
    pub pages: u32,
    /// The direction of the transfer.
    pub direction: Direction,
    /// The cause of the transfer.
    pub cause: Cause,
}

/// One far fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FaultRecord {
    /// When the GMMU found the page missing.
    pub detected: u64,
    /// When the page was mapped.
    pub mapped: u64,
    /// Page number.
    pub page: u64,
    /// SM that asked first.
    pub sm: u32,
    /// Whether it wanted to write.
    pub write: bool,
}
