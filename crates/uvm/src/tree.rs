//! One tree of blocks: up to 2 MiB of one allocation, and where its pages are.
//!
//! A page is on the host unless a set here says otherwise. Staged pages are still mapped on the
//! device; leaving ones are not, and their frames are free only when they have left. A page may
//! be leaving and wanted back (incoming) at once: it cannot come before it has left.

use serde::{Deserialize, Serialize};

use crate::geometry::{BLOCK_PAGES, LARGE_PAGES, PageSize};
use crate::page_set::PageSet;

/// Blocks of the largest tree.
pub const LEAVES: usize = (LARGE_PAGES / BLOCK_PAGES) as usize;

/// Where the pages of one tree are, and how they are used.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tree {
    /// Number of the first page.
    pub first: u64,
    /// Pages; 64 KiB x 2^i.
    pub pages: u32,
    /// Belong to no allocation.
    pub absent: PageSet,
    /// Nobody has touched them: neither side has memory for them.
    pub untouched: PageSet,
    /// Mapped on the device.
    pub device: PageSet,
    /// Planned or on their way to the device.
    pub incoming: PageSet,
    /// On the device, chosen to leave.
    pub staged: PageSet,
    /// On their way to the host.
    pub leaving: PageSet,
    /// Written on the device.
    pub dirty: PageSet,
    /// Used since they arrived.
    pub touched: PageSet,
    /// Came without having been asked for.
    pub prefetched: PageSet,
    /// Somebody waits to use them for the first time.
    pub pinned: PageSet,
    /// Were on the device before.
    pub evicted: PageSet,
    /// Stay on the host and are used over the link.
    pub remote: PageSet,
    /// Are copied and kept on the host as well.
    pub duplicated: PageSet,
    /// Move to and fro too often.
    pub thrashing: PageSet,
    /// When each page was last used.
    pub used: Vec<u64>,
    /// When each block was.
    pub block_used: [u64; LEAVES],
    /// Uses, counted at translation.
    pub uses: u64,
    /// Whether something in it was ever written on the device.
    pub written: bool,
    /// Uses of each block, while its pages are on the host.
    pub counters: [u32; LEAVES],
    /// How often pages of it were evicted.
    pub round_trips: u8,
    /// When a page last came to the device.
    pub arrived: u64,
    /// What is known of each page that the host took back; nothing until it takes the first.
    pub taken_back: Vec<TakenBack>,
}

/// A page that the host took back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TakenBack {
    /// When it last did.
    pub last: u64,
    /// How often in a row, each time soon after the time before.
    pub count: u32,
    /// How often the device had to wait for it.
    pub naps: u32,
}

impl Tree {
    /// A tree whose pages are all on the host.
    #[must_use]
    pub fn new(first: u64, pages: u32) -> Self {
        Self {
            first,
            pages,
            absent: PageSet::EMPTY,
            untouched: PageSet::EMPTY,
            device: PageSet::EMPTY,
            incoming: PageSet::EMPTY,
            staged: PageSet::EMPTY,
            leaving: PageSet::EMPTY,
            dirty: PageSet::EMPTY,
            touched: PageSet::EMPTY,
            prefetched: PageSet::EMPTY,
            pinned: PageSet::EMPTY,
            evicted: PageSet::EMPTY,
            remote: PageSet::EMPTY,
            duplicated: PageSet::EMPTY,
            thrashing: PageSet::EMPTY,
            used: vec![0; pages as usize],
            block_used: [0; LEAVES],
            uses: 0,
            written: false,
            counters: [0; LEAVES],
            round_trips: 0,
            arrived: 0,
            taken_back: Vec::new(),
        }
    }

    /// Its pages, as far as they were allocated.
    #[must_use]
    pub fn all(&self) -> PageSet {
        PageSet::range(0, self.pages) - self.absent
    }

    /// Pages that are on the device or will be, and are not about to leave.
    #[must_use]
    pub fn valid(&self) -> PageSet {
        (self.device - self.staged) | self.incoming
    }

    /// Number of blocks.
    #[must_use]
    pub fn leaves(&self) -> u32 {
        self.pages / BLOCK_PAGES
    }

    /// Marks a use of a page.
    pub fn touch(&mut self, page: u32, now: u64, write: bool) {
        self.touched.insert(page);
        self.uses += 1;
        let leaf = (page / BLOCK_PAGES) as usize;
        self.used[page as usize] = self.used[page as usize].max(now);
        self.block_used[leaf] = self.block_used[leaf].max(now);
        if write {
            self.dirty.insert(page);
            self.written = true;
        }
    }

    /// When any of it was last used.
    #[must_use]
    pub fn last_used(&self) -> u64 {
        self.block_used.iter().copied().max().unwrap_or(0)
    }

    /// What an entry for a page can cover: as much around it as is mapped.
    #[must_use]
    pub fn mapping(&self, page: u32) -> PageSize {
        let mapped = self.device | self.absent;
        let fits = |size: &&PageSize| {
            let pages = size.pages() as u32;
            pages <= self.pages && mapped.count_in(page / pages * pages, pages) == pages
        };
        let largest = PageSize::ALL.iter().rev().find(fits);
        largest.copied().unwrap_or(PageSize::Small)
    }

    /// Pages that an evictor may choose; with `force` also those that somebody waits for.
    #[must_use]
    pub fn evictable(&self, force: bool) -> PageSet {
        let pages = self.device - self.staged - self.incoming;
        if force { pages } else { pages - self.pinned }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A TLB keeps as much around a page as is mapped, in aligned powers of two of blocks.
    #[test]
    fn an_entry_covers_what_is_mapped_around_a_page() {
        let mut tree = Tree::new(0, LARGE_PAGES);
        tree.device = PageSet::range(0, 5);
        assert_eq!(tree.mapping(3), PageSize::Small);
        tree.device = PageSet::range(0, 16);
        assert_eq!(tree.mapping(3), PageSize::Big);
        tree.device = PageSet::range(16, 32);
        assert_eq!(tree.mapping(17), PageSize::Big, "its pair is not there");
        tree.device = PageSet::range(0, 8 * 16);
        assert_eq!(tree.mapping(100), PageSize::Big8);
        tree.device = PageSet::range(0, 511);
        assert_eq!(tree.mapping(0), PageSize::Big16);
        assert_eq!(tree.mapping(500), PageSize::Small);
        tree.device = PageSet::range(0, 512);
        assert_eq!(tree.mapping(500), PageSize::Large);
        let mut small = Tree::new(0, 32);
        small.device = PageSet::range(0, 32);
        assert_eq!(
            small.mapping(0),
            PageSize::Big2,
            "no more than the tree has"
        );
    }
}
