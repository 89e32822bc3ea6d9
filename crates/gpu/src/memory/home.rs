//! Which slice an address belongs to.

use serde::{Deserialize, Serialize};

use super::LINE;

/// Spreads lines evenly over any number of slices.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    slices: u32,
}

impl Home {
    /// For so many slices.
    #[must_use]
    pub fn new(slices: u32) -> Self {
        Self {
            slices: slices.max(1),
        }
    }

    /// The slice of an address. All bits of the line number take part, so that no stride that
    /// programs use falls on few slices, and the count need not be a power of two.
    #[must_use]
    #[inline]
    pub fn slice(self, address: u64) -> u32 {
        let mut mixed = address / LINE;
        mixed ^= mixed >> 29;
        mixed = mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^= mixed >> 32;
        mixed = mixed.wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(mixed) * u128::from(self.slices)) >> 64) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_are_spread_evenly() {
        for slices in [1, 10, 80, 96] {
            for stride in [128, 256, 4096, 1 << 16, 96 * 128] {
                let home = Home::new(slices);
                let mut counts = vec![0u64; slices as usize];
                let lines = 1000 * u64::from(slices);
                for line in 0..lines {
                    counts[home.slice(0x2000_0000_0000 + line * stride) as usize] += 1;
                }
                let most = *counts.iter().max().unwrap();
                assert!(
                    most < 1200,
                    "{slices} slices, stride {stride}: {most} of 1000"
                );
            }
        }
    }
}
