//! Go round a small group of warps; a warp that cannot issue leaves the group, and the oldest warp
//! outside that can takes its place.

use serde::{Deserialize, Serialize};

use super::eligible::{Ages, WarpMask};

/// Warps of the group.
const GROUP: u32 = 4;

/// The group and whose turn it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TwoLevel {
    group: WarpMask,
    next: u8,
}

impl TwoLevel {
    #[inline]
    pub(super) fn pick(&mut self, ready: WarpMask, ages: &Ages) -> u8 {
        self.group &= ready;
        while self.group.count_ones() < GROUP && ready & !self.group != 0 {
            let mut left = ready & !self.group;
            let mut oldest = left.trailing_zeros();
            while left != 0 {
                let slot = left.trailing_zeros();
                left &= left - 1;
                if ages[slot as usize] < ages[oldest as usize] {
                    oldest = slot;
                }
            }
            self.group |= 1 << oldest;
        }
        let turn = u32::from(self.next);
        let slot = (self.group.rotate_right(turn).trailing_zeros() + turn) % 64;
        self.next = (slot as u8 + 1) % 64;
        slot as u8
    }
}
