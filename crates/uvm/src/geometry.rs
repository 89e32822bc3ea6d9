//! Pages, blocks and large pages.

use serde::{Deserialize, Serialize};

/// Bytes of a page: the unit that faults and that moves.
pub const PAGE: u64 = 4096;
/// Pages of a block, 64 KiB: a leaf of the trees.
pub const BLOCK_PAGES: u32 = 16;
/// Pages of a large page, 2 MiB: the largest tree.
pub const LARGE_PAGES: u32 = 512;

/// What one entry of a TLB covers. Page tables have pages of 4 KiB, 64 KiB and 2 MiB; a walk reads
/// a line of them, with 16 entries for 64 KiB, and what is mapped side by side in it is kept as one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum PageSize {
    /// 4 KiB.
    Small,
    /// 64 KiB.
    Big,
    /// Two of 64 KiB.
    Big2,
    /// Four of 64 KiB.
    Big4,
    /// Eight of 64 KiB.
    Big8,
    /// Sixteen of 64 KiB.
    Big16,
    /// 2 MiB.
    Large,
}

impl PageSize {
    /// All sizes, ascending.
    pub const ALL: [Self; 7] = [
        Self::Small,
        Self::Big,
        Self::Big2,
        Self::Big4,
        Self::Big8,
        Self::Big16,
        Self::Large,
    ];

    /// Pages of 4 KiB in it.
    #[must_use]
    pub const fn pages(self) -> u64 {
        let block = BLOCK_PAGES as u64;
        match self {
            Self::Small => 1,
            Self::Big => block,
            Self::Big2 => 2 * block,
            Self::Big4 => 4 * block,
            Self::Big8 => 8 * block,
            Self::Big16 => 16 * block,
            Self::Large => LARGE_PAGES as u64,
        }
    }
}

/// The trees of an allocation, in pages: one of 2 MiB for every whole 2 MiB, and one of
/// 64 KiB x 2^i, the smallest that holds the rest.
#[must_use]
pub fn tree_pages(bytes: u64) -> (u64, u32) {
    let large = u64::from(LARGE_PAGES) * PAGE;
    let rest = bytes % large;
    let block = u64::from(BLOCK_PAGES) * PAGE;
    let last = if rest == 0 {
        0
    } else {
        rest.div_ceil(block).next_power_of_two() as u32 * BLOCK_PAGES
    };
    (bytes / large, last)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(bytes: u64) -> Vec<u32> {
        let (whole, last) = tree_pages(bytes);
        let mut kib: Vec<u32> = (0..whole).map(|_| 2048).collect();
        kib.extend((last != 0).then_some(last * 4));
        kib
    }

    #[test]
    fn allocations_are_rounded_to_trees() {
        let (kib, mib) = (1u64 << 10, 1u64 << 20);
        assert_eq!(shape(4 * mib + 192 * kib), [2048, 2048, 256]);
        assert_eq!(shape(2 * mib + 192 * kib), [2048, 256]);
        assert_eq!(shape(1), [64]);
        assert_eq!(shape(mib + 4), [2048]);
        assert_eq!(shape(8 * mib + 512 * kib), [2048, 2048, 2048, 2048, 512]);
    }
}
