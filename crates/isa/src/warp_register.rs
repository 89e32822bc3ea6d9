//! A register of a warp: one 32-bit word for each of its 32 lanes.

use serde::{Deserialize, Serialize};

/// Lanes in a warp, on every GPU that we model.
pub const LANES: usize = 32;

/// A set of lanes: bit `i` stands for lane `i`. Predicates are kept this way too.
pub type Mask = u32;

/// All 32 lanes.
pub const FULL: Mask = u32::MAX;

/// The words of one register. 64-bit values take two registers, low word first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[repr(C, align(64))]
pub struct WarpRegister(pub [u32; LANES]);

impl WarpRegister {
    /// All lanes zero.
    pub const ZERO: Self = Self([0; LANES]);

    /// The same word in every lane.
    #[must_use]
    #[inline(always)]
    pub const fn splat(word: u32) -> Self {
        Self([word; LANES])
    }

    /// Takes the lanes of `mask` from `new` and leaves the others alone. Written without a
    /// branch per lane so that it becomes vector blends.
    #[inline(always)]
    pub fn blend(&mut self, new: &Self, mask: Mask) {
        if mask == FULL {
            *self = *new;
            return;
        }
        for lane in 0..LANES {
            // Bits against constants: without shifts by lane, any host's vectors can do it.
            let taken = mask & (1 << lane) != 0;
            self.0[lane] = if taken { new.0[lane] } else { self.0[lane] };
        }
    }
}

impl Default for WarpRegister {
    fn default() -> Self {
        Self::ZERO
    }
}

/// The lanes of `mask`, lowest first.
#[inline]
pub fn lanes_of(mut mask: Mask) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        (mask != 0).then(|| {
            let lane = mask.trailing_zeros() as usize;
            mask &= mask - 1;
            lane
        })
    })
}
