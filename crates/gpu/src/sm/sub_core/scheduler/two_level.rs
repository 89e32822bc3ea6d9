//! Go round a small group of warps; a warp that cannot issue leaves the group, and the oldest warp
//! outside that can takes its place.

use serde::{Deserialize, Serialize};

use super::eligible::{Ages, WarpMask};

/// The group and whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TwoLevel {
    group: WarpMask,
    /// Warps of the group.
    size: u32,
    next: u8,
}

impl TwoLevel {
    /// An empty group that takes so many warps.
    pub(super) fn new(size: u32) -> Self {
        Self {
            group: 0,
            size,
            next: 0,
        }
    }

    #[inline]
    pub(super) fn pick(&mut self, ready: WarpMask, ages: &Ages) -> u8 {
        self.group &= ready;
        while self.group.count_ones() < self.size && ready & !self.group != 0 {
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
