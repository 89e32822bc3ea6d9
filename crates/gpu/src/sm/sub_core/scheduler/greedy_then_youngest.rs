//! Stay with one warp until it stalls, then take the youngest. Where the code has control bits,
//! this is the compiler-guided scheduler of recent GPUs: the bits say when a warp stalls or yields.

use serde::{Deserialize, Serialize};

use super::eligible::{Ages, WarpMask};

/// The warp that issued last.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct GreedyThenYoungest {
    last: u8,
}

impl GreedyThenYoungest {
    #[inline]
    pub(super) fn pick(&mut self, ready: WarpMask, ages: &Ages) -> u8 {
        if ready >> self.last & 1 == 0 {
            let mut left = ready;
            let mut youngest = left.trailing_zeros();
            while left != 0 {
                let slot = left.trailing_zeros();
                left &= left - 1;
                if ages[slot as usize] > ages[youngest as usize] {
                    youngest = slot;
                }
            }
            self.last = youngest as u8;
        }
        self.last
    }
}
