//! Which pages were ever written: what the digest is taken over.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes of a page of the digest.
pub const PAGE: u64 = 4096;

/// Words of a leaf; a leaf stands for 32,768 pages.
const WORDS: usize = 512;

type Leaf = Box<[AtomicU64; WORDS]>;

/// A set of page numbers that workers add to at once.
#[derive(Debug)]
pub struct Pages {
    leaves: Box<[OnceLock<Leaf>]>,
}

impl Pages {
    /// An empty set for so many pages.
    #[must_use]
    pub fn new(pages: u64) -> Self {
        let leaves = pages.div_ceil(WORDS as u64 * 64);
        Self {
            leaves: (0..leaves).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Adds a page. Almost always it is there already, which costs one load.
    #[inline]
    pub fn mark(&self, page: u64) {
        let leaf = self.leaves[(page / (WORDS as u64 * 64)) as usize]
            .get_or_init(|| Box::new(std::array::from_fn(|_| AtomicU64::new(0))));
        let word = &leaf[(page / 64) as usize % WORDS];
        let bit = 1 << (page % 64);
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// The pages, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let leaves = self.leaves.iter().enumerate();
        leaves.flat_map(|(index, leaf)| {
            let words = leaf.get().map(|leaf| leaf.as_slice()).unwrap_or(&[]);
            words.iter().enumerate().flat_map(move |(at, word)| {
                let first = (index * WORDS + at) as u64 * 64;
                let mut left = word.load(Ordering::Relaxed);
                std::iter::from_fn(move || {
                    (left != 0).then(|| {
                        let bit = u64::from(left.trailing_zeros());
                        left &= left - 1;
                        first + bit
                    })
                })
            })
        })
    }

    /// Forgets all pages.
    pub fn clear(&mut self) {
        for leaf in &mut self.leaves {
            *leaf = OnceLock::new();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_come_back_in_order_and_once() {
        let pages = Pages::new(1 << 32);
        for page in [70_000, 3, 64, 3, (1 << 32) - 1] {
            pages.mark(page);
        }
        let all: Vec<u64> = pages.iter().collect();
        assert_eq!(all, [3, 64, 70_000, (1 << 32) - 1]);
    }
}
