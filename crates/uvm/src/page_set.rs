//! Sets of pages of one tree, as bits.

use std::ops::{BitAnd, BitOr, BitOrAssign, Not, Sub, SubAssign};

use serde::{Deserialize, Serialize};

use crate::geometry::{BLOCK_PAGES, LARGE_PAGES};

const WORDS: usize = LARGE_PAGES as usize / 64;

/// Some of the pages of a tree.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageSet([u64; WORDS]);

impl PageSet {
    /// No page.
    pub const EMPTY: Self = Self([0; WORDS]);

    /// One page.
    #[must_use]
    pub fn one(page: u32) -> Self {
        Self::range(page, 1)
    }

    /// So many pages from `first` on.
    #[must_use]
    pub fn range(first: u32, count: u32) -> Self {
        let mut set = Self::EMPTY;
        let (mut at, end) = (first, (first + count).min(LARGE_PAGES));
        while at < end {
            let (word, bit) = (at / 64, at % 64);
            let here = (64 - bit).min(end - at);
            let ones = if here == 64 {
                u64::MAX
            } else {
                (1 << here) - 1
            };
            set.0[word as usize] |= ones << bit;
            at += here;
        }
        set
    }

    /// The pages of the blocks that some pages lie in.
    #[must_use]
    pub fn whole_blocks(self) -> Self {
        let mut set = Self::EMPTY;
        for leaf in 0..LARGE_PAGES / BLOCK_PAGES {
            let block = Self::range(leaf * BLOCK_PAGES, BLOCK_PAGES);
            if !(self & block).is_empty() {
                set |= block;
            }
        }
        set
    }

    /// Adds a page.
    pub fn insert(&mut self, page: u32) {
        *self |= Self::one(page);
    }

    /// Whether a page is in it.
    #[must_use]
    pub fn contains(&self, page: u32) -> bool {
        page < LARGE_PAGES && self.0[(page / 64) as usize] >> (page % 64) & 1 != 0
    }

    /// Whether no page is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// How many pages are.
    #[must_use]
    pub fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// How many of a range are.
    #[must_use]
    pub fn count_in(&self, first: u32, count: u32) -> u32 {
        (*self & Self::range(first, count)).count()
    }

    /// The pages, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + use<> {
        let mut words = self.0;
        let mut word = 0;
        std::iter::from_fn(move || {
            while word < WORDS && words[word] == 0 {
                word += 1;
            }
            let left = words.get_mut(word)?;
            let bit = left.trailing_zeros();
            *left &= *left - 1;
            Some(word as u32 * 64 + bit)
        })
    }

    /// Runs of pages without gap, ascending: first page and count.
    #[must_use]
    pub fn runs(&self) -> Vec<(u32, u32)> {
        let mut runs: Vec<(u32, u32)> = Vec::new();
        for page in self.iter() {
            match runs.last_mut() {
                Some((first, count)) if *first + *count == page => *count += 1,
                _ => runs.push((page, 1)),
            }
        }
        runs
    }
}

impl FromIterator<u32> for PageSet {
    fn from_iter<I: IntoIterator<Item = u32>>(pages: I) -> Self {
        let mut set = Self::EMPTY;
        pages.into_iter().for_each(|page| set.insert(page));
        set
    }
}

impl BitAnd for PageSet {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] & other.0[i]))
    }
}

impl BitOr for PageSet {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self(std::array::from_fn(|i| self.0[i] | other.0[i]))
    }
}

impl BitOrAssign for PageSet {
    fn bitor_assign(&mut self, other: Self) {
        *self = *self | other;
    }
}

impl Not for PageSet {
    type Output = Self;
    fn not(self) -> Self {
        Self(self.0.map(|word| !word))
    }
}

impl Sub for PageSet {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        self & !other
    }
}

impl SubAssign for PageSet {
    fn sub_assign(&mut self, other: Self) {
        *self = *self - other;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_count_and_run() {
        let set = PageSet::range(60, 10) | PageSet::one(0) | PageSet::range(500, 100);
        assert_eq!(set.runs(), [(0, 1), (60, 10), (500, 12)]);
        assert_eq!(set.count(), 23);
        assert_eq!(set.count_in(64, 64), 6);
        assert_eq!(
            PageSet::one(17).whole_blocks().runs(),
            [(BLOCK_PAGES, BLOCK_PAGES)]
        );
        assert_eq!((PageSet::range(0, 512) - set).count(), 512 - 23);
    }
}
