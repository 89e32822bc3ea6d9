//! Go round the warps, passing over those that are not ready.

use serde::{Deserialize, Serialize};

use super::eligible::WarpMask;

/// The slot after the one that issued last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LooseRoundRobin {
    next: u8,
}

impl LooseRoundRobin {
    #[inline]
    pub(super) fn pick(&mut self, ready: WarpMask) -> u8 {
        let turn = u32::from(self.next);
        let slot = (ready.rotate_right(turn).trailing_zeros() + turn) % 64;
        self.next = (slot as u8 + 1) % 64;
        slot as u8
    }
}
