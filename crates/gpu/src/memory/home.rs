//! Which slice an address belongs to: how memory is interleaved over slices.
//!
//! Start reading at [`Home::slice`].

use lockstep_config::GpuConfig;
use serde::{Deserialize, Serialize};

use super::geometry::LINE;

/// Spreads memory evenly over any number of slices. A region of neighbouring addresses lies on one
/// group of slices, whose members take turns by pieces of the region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Home {
    /// Groups of slices.
    groups: u32,
    /// Slices of a group.
    members: u32,
    /// Shift from an address to its region.
    region: u32,
    /// Shift from an address to its piece.
    piece: u32,
    /// Shift from a region to its turn.
    turn: u32,
}

impl Home {
    /// From a GPU file.
    #[must_use]
    pub fn of(config: &GpuConfig) -> Self {
        let l2 = &config.l2;
        Self::new(
            l2.slices,
            l2.interleave_region.0,
            l2.interleave_slices,
            l2.interleave_granularity.0,
            l2.interleave_regions,
        )
    }

    /// For so many slices; `region` bytes that lie on `members` slices, in pieces of `piece`
    /// bytes; `turn` regions lie evenly apart. Sizes are rounded down to powers of two, and a piece
    /// has at least a line.
    #[must_use]
    pub fn new(slices: u32, region: u64, members: u32, piece: u64, turn: u32) -> Self {
        let slices = slices.max(1);
        let members = if slices.is_multiple_of(members.max(1)) {
            members.max(1)
        } else {
            1
        };
        let piece = piece.max(LINE).ilog2();
        Self {
            groups: slices / members,
            members,
            region: region.max(LINE).ilog2().max(piece),
            piece,
            turn: turn.max(1).ilog2(),
        }
    }

    /// The slice of an address. The regions of a turn lie on different groups, evenly apart; where
    /// the next turn begins is hashed, so that no stride that programs use falls on few
    /// slices, and the count need not be a power of two.
    #[must_use]
    #[inline]
    pub fn slice(self, address: u64) -> u32 {
        let region = address >> self.region;
        let groups = u64::from(self.groups);
        let turn = region >> self.turn;
        let place = region & ((1 << self.turn) - 1);
        let mut mixed = turn ^ turn >> 29;
        mixed = mixed.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed ^= mixed >> 32;
        mixed = mixed.wrapping_mul(0x94d0_49bb_1331_11eb);
        let begin = ((u128::from(mixed) * u128::from(groups)) >> 64) as u64;
        let group = (begin + ((place * groups) >> self.turn)) % groups;
        if self.members == 1 {
            return group as u32;
        }
        // Another part of the hash, so that the first pieces of regions do not all fall alike.
        let piece = (address >> self.piece) ^ (mixed & 0xff) ^ place;
        group as u32 * self.members + (piece % u64::from(self.members)) as u32
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strides_are_spread_evenly() {
        for slices in [1, 10, 80, 96] {
            for stride in [128, 256, 4096, 1 << 16, 96 * 128] {
                let home = Home::new(slices, 1024, 2, 256, 4);
                let mut counts = vec![0u64; slices as usize];
                let lines = 4000 * u64::from(slices);
                for line in 0..lines {
                    counts[home.slice(0x2000_0000_0000 + line * stride) as usize] += 1;
                }
                let most = *counts.iter().max().unwrap();
                assert!(
                    most < 4800,
                    "{slices} slices, stride {stride}: {most} of 4000"
                );
            }
        }
    }

    #[test]
    fn a_region_lies_on_the_slices_of_one_group() {
        let home = Home::new(96, 1024, 2, 256, 4);
        for region in 0..100u64 {
            let slices: Vec<u32> = (0..8)
                .map(|l| home.slice(region * 1024 + l * 128))
                .collect();
            let first = slices[0] / 2;
            assert!(slices.iter().all(|slice| slice / 2 == first), "{slices:?}");
            assert_eq!(slices[0], slices[1], "two lines are a piece");
            assert_ne!(slices[0], slices[2], "the members take turns");
        }
        // Without groups every line goes its own way.
        let home = Home::new(96, 128, 1, 128, 4);
        let slices: std::collections::BTreeSet<u32> =
            (0..64).map(|l| home.slice(l * 128)).collect();
        assert!(slices.len() > 30, "{}", slices.len());
    }
}
