//! Which pages were ever written: what the digest is taken over.

use std::ops::Range;
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
    /// Those that were added since somebody last asked for them.
    recent: Box<[OnceLock<Leaf>]>,
    /// Those that were added before.
    older: Box<[OnceLock<Leaf>]>,
}

/// A leaf with no page in it.
fn empty() -> Leaf {
    Box::new(std::array::from_fn(|_| AtomicU64::new(0)))
}

impl Pages {
    /// An empty set for so many pages.
    #[must_use]
    pub fn new(pages: u64) -> Self {
        let leaves = pages.div_ceil(WORDS as u64 * 64);
        Self {
            recent: (0..leaves).map(|_| OnceLock::new()).collect(),
            older: (0..leaves).map(|_| OnceLock::new()).collect(),
        }
    }

    /// Adds a page. Almost always it is there already, which costs one load.
    #[inline]
    pub fn mark(&self, page: u64) {
        let leaf = self.recent[(page / (WORDS as u64 * 64)) as usize].get_or_init(empty);
        let word = &leaf[(page / 64) as usize % WORDS];
        let bit = 1 << (page % 64);
        if word.load(Ordering::Relaxed) & bit == 0 {
            word.fetch_or(bit, Ordering::Relaxed);
        }
    }

    /// The pages, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        let leaves = self.recent.iter().zip(&self.older).enumerate();
        leaves.flat_map(|(index, (recent, older))| {
            let words = match recent.get().is_some() || older.get().is_some() {
                true => WORDS,
                false => 0,
            };
            (0..words).flat_map(move |at| {
                let word = |leaf: &OnceLock<Leaf>| {
                    let leaf = leaf.get();
                    leaf.map_or(0, |leaf| leaf[at].load(Ordering::Relaxed))
                };
                let first = (index * WORDS + at) as u64 * 64;
                bits(first, word(recent) | word(older))
            })
        })
    }

    /// The pages of the leaves that a range touches that were added since this was last asked, ascending. Nobody
    /// may add one meanwhile.
    pub fn take_recent(&self, range: Range<u64>) -> Vec<u64> {
        let leaf = WORDS as u64 * 64;
        let (first, end) = (range.start / leaf, range.end.div_ceil(leaf));
        let leaves = self.recent.iter().zip(&self.older).enumerate();
        let mut taken = Vec::new();
        for (index, (recent, older)) in leaves.take(end as usize).skip(first as usize) {
            let Some(recent) = recent.get() else {
                continue;
            };
            let older = older.get_or_init(empty);
            for (at, (recent, older)) in recent.iter().zip(older.iter()).enumerate() {
                let word = recent.swap(0, Ordering::Relaxed);
                if word != 0 {
                    older.fetch_or(word, Ordering::Relaxed);
                    taken.extend(bits((index * WORDS + at) as u64 * 64, word));
                }
            }
        }
        taken
    }

    /// Forgets all pages.
    pub fn clear(&mut self) {
        for leaf in self.recent.iter_mut().chain(&mut self.older) {
            *leaf = OnceLock::new();
        }
    }
}

/// The numbers of the bits of a word, counted from the number of its first.
fn bits(first: u64, word: u64) -> impl Iterator<Item = u64> {
    let mut left = word;
    std::iter::from_fn(move || {
        (left != 0).then(|| {
            let bit = u64::from(left.trailing_zeros());
            left &= left - 1;
            first + bit
        })
    })
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

    #[test]
    fn recent_pages_are_told_once_and_stay() {
        let pages = Pages::new(1 << 20);
        pages.mark(5);
        pages.mark(70_000);
        assert_eq!(pages.take_recent(65_536..70_001), [70_000]);
        assert_eq!(pages.take_recent(0..1 << 20), [5]);
        assert!(pages.take_recent(0..1 << 20).is_empty());
        pages.mark(5);
        pages.mark(6);
        assert_eq!(pages.take_recent(0..1 << 20), [5, 6]);
        assert_eq!(pages.iter().collect::<Vec<_>>(), [5, 6, 70_000]);
    }
}
