//! How an access went: what the issue model learns from the instruction that was executed.

use super::transactions::NOBODY;

/// What the time of an atomic on shared memory depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SharedAtomic {
    /// Wavefronts after those of the first lane.
    pub waiting: u32,
    /// Compares before it writes.
    pub swaps: bool,
    /// On 64 bits.
    pub wide: bool,
}

/// What an access touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Nothing, or nothing that takes time.
    None,
    /// Shared memory, in so many wavefronts over its banks.
    Shared {
        /// Wavefronts; 1 without conflicts.
        wavefronts: u32,
        /// Read, modify, write.
        atomic: Option<SharedAtomic>,
    },
    /// A barrier in shared memory.
    Mbarrier,
    /// Shared memory of other blocks.
    Remote,
    /// A bank of constants.
    Constant,
    /// Local memory: sectors in `Port::found`.
    Local {
        /// Stores.
        write: bool,
    },
    /// Texels: sectors of global memory in `Port::texels`.
    Texture {
        /// Cycles for which the texture unit is busy, in quarters.
        quarters: u16,
    },
    /// Sectors of global memory in `Port::found`; strong accesses are under way by themselves.
    Global {
        /// Stores.
        write: bool,
    },
}

/// How an access went. It lies in [`Port::done`](super::port::Port::done) and is read there: handed from
/// function to function, each copy would wait until the words just written have reached the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// What it touched weakly.
    pub traffic: Traffic,
    /// The transaction whose answers bring values, or `NOBODY`.
    pub transaction: u32,
    /// Lines of the sectors that left for their slices.
    pub strong_lines: u8,
    /// Whether these are loaded.
    pub strong_load: bool,
    /// Wavefronts over L1, where they are known: of local memory, and of loads whose words lie in
    /// several lines.
    pub wavefronts: u16,
    /// Sectors of [`Port::changed`](super::port::Port::changed) are no longer what L1 has.
    pub changed: bool,
    /// [`Port::mbarriers`](super::port::Port::mbarriers) has something to be looked at.
    pub mbarrier: bool,
    /// Nothing happened yet: the warp waits at an `mbarrier`.
    pub suspends: bool,
    /// Other lanes of the warp go first.
    pub yields: bool,
    /// Nothing happened yet: strong accesses under way must be answered first.
    pub order_first: bool,
}

impl Done {
    /// An access of no lane.
    pub const NOTHING: Self = Self {
        traffic: Traffic::None,
        transaction: NOBODY,
        strong_lines: 0,
        strong_load: false,
        wavefronts: 0,
        changed: false,
        mbarrier: false,
        suspends: false,
        yields: false,
        order_first: false,
    };
}

impl Done {
    /// Whether others than the block could notice the access.
    #[must_use]
    #[inline(always)]
    pub fn is_seen_by_others(&self) -> bool {
        matches!(
            self.traffic,
            Traffic::Global { .. } | Traffic::Texture { .. } | Traffic::Remote
        )
    }
}
