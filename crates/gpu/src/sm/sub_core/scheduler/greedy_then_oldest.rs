//! Stay with one warp until it stalls, then take the oldest.

use serde::{Deserialize, Serialize};

use super::eligible::{Ages, WarpMask};

/// The warp that issued last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GreedyThenOldest {
    last: u8,
}

impl GreedyThenOldest {
    #[inline]
    pub(super) fn pick(&mut self, ready: WarpMask, ages: &Ages) -> u8 {
        if ready >> self.last & 1 == 0 {
            let mut left = ready;
            let mut oldest = left.trailing_zeros();
            while left != 0 {
                let slot = left.trailing_zeros();
                left &= left - 1;
                if ages[slot as usize] < ages[oldest as usize] {
                    oldest = slot;
                }
            }
            self.last = oldest as u8;
        }
        self.last
    }
}
