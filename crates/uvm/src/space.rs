//! Managed allocations and their trees.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::geometry::{LARGE_PAGES, PAGE, tree_pages};
use crate::page_set::PageSet;
use crate::tree::Tree;

/// Allocations below this share 2 MiB with others, where small ones are packed.
const SHARED_BELOW: u64 = 1 << 20;

/// One managed allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Allocation {
    /// First page.
    pub first: u64,
    /// Trees of 2 MiB.
    pub whole: u64,
    /// Pages of the last, smaller tree.
    pub last: u32,
}

impl Allocation {
    /// Pages, rounded up to trees.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.whole * u64::from(LARGE_PAGES) + u64::from(self.last)
    }
}

/// All managed memory. Trees are made when they are first looked at, so a large allocation costs
/// nothing until it is used.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Space {
    allocations: BTreeMap<u64, Allocation>,
    /// The allocations in each 2 MiB that small ones share: first page and pages, by the first
    /// page of the 2 MiB.
    shared: BTreeMap<u64, BTreeMap<u64, u32>>,
    trees: BTreeMap<u64, Tree>,
    /// Whether memory that nobody has touched is on neither side.
    starts_untouched: bool,
}

impl Space {
    /// Without allocations. What is allocated is on the host, or on neither side until somebody
    /// touches it.
    #[must_use]
    pub fn new(starts_untouched: bool) -> Self {
        Self {
            starts_untouched,
            ..Self::default()
        }
    }

    /// Adds an allocation, a small one beside others if those are packed.
    pub fn add(&mut self, address: u64, bytes: u64, packing: bool) {
        if packing && bytes < SHARED_BELOW {
            self.map_shared(address, bytes);
        } else {
            self.map(address, bytes);
        }
    }

    /// Adds an allocation; its pages are on the host.
    pub fn map(&mut self, address: u64, bytes: u64) {
        let first = address / PAGE;
        let (whole, last) = tree_pages(bytes.saturating_add(address % PAGE));
        let allocation = Allocation { first, whole, last };
        self.allocations.insert(first, allocation);
    }

    /// Adds a small allocation to the 2 MiB that it lies in. The tree is that of the whole 2 MiB;
    /// only pages that were allocated ever move.
    pub fn map_shared(&mut self, address: u64, bytes: u64) {
        let first = address / PAGE;
        let window = window_of(first);
        let end = (address + bytes).div_ceil(PAGE);
        let pages = (end - first).min(window + u64::from(LARGE_PAGES) - first) as u32;
        self.shared.entry(window).or_default().insert(first, pages);
        let allocation = Allocation {
            first: window,
            whole: 1,
            last: 0,
        };
        self.allocations.insert(window, allocation);
        if let Some(tree) = self.trees.get_mut(&window) {
            let own = PageSet::range((first - window) as u32, pages);
            tree.absent -= own;
            if self.starts_untouched {
                tree.untouched |= own;
            }
        }
    }

    /// Pages of a tree that no allocation has.
    fn absent(&self, first: u64) -> PageSet {
        let mut absent = PageSet::EMPTY;
        if let Some(users) = self.shared.get(&first) {
            absent = PageSet::range(0, LARGE_PAGES);
            for (page, count) in users {
                absent -= PageSet::range((page - first) as u32, *count);
            }
        }
        absent
    }

    /// Takes a small allocation out of the 2 MiB that it shares with others which stay: the first
    /// page of the 2 MiB and its own. Nothing if there is none such: then all of it can go.
    pub fn unmap_shared(&mut self, address: u64) -> Option<(u64, PageSet)> {
        let first = address / PAGE;
        let window = window_of(first);
        let users = self.shared.get_mut(&window)?;
        if users.len() == 1 {
            return None;
        }
        let count = users.remove(&first)?;
        let pages = PageSet::range((first - window) as u32, count);
        if let Some(tree) = self.trees.get_mut(&window) {
            tree.absent |= pages;
            tree.untouched -= pages;
        }
        Some((window, pages))
    }

    /// Removes the allocation at an address and gives its trees.
    pub fn unmap(&mut self, address: u64) -> Vec<Tree> {
        let mut first = address / PAGE;
        let window = window_of(first);
        if let Some(users) = self.shared.get(&window) {
            if !users.contains_key(&first) {
                return Vec::new();
            }
            self.shared.remove(&window);
            first = window;
        }
        let Some(allocation) = self.allocations.remove(&first) else {
            return Vec::new();
        };
        let end = allocation.first + allocation.pages();
        let mut later = self.trees.split_off(&allocation.first);
        let mut rest = later.split_off(&end);
        self.trees.append(&mut rest);
        later.into_values().collect()
    }

    /// Pages of all allocations, rounded up to trees.
    #[must_use]
    pub fn pages(&self) -> u64 {
        self.allocations.values().map(Allocation::pages).sum()
    }

    /// Pages of the largest tree.
    #[must_use]
    pub fn largest_tree(&self) -> u64 {
        let largest = |allocation: &Allocation| match allocation.whole {
            0 => allocation.last,
            _ => LARGE_PAGES,
        };
        let pages = self.allocations.values().map(largest).max();
        u64::from(pages.unwrap_or(LARGE_PAGES))
    }

    /// Whether there is any managed memory.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.allocations.is_empty()
    }

    /// All allocations, by address.
    pub fn allocations(&self) -> impl Iterator<Item = &Allocation> {
        self.allocations.values()
    }

    /// The allocation that a page belongs to.
    #[must_use]
    pub fn allocation(&self, page: u64) -> Option<Allocation> {
        let (_, allocation) = self.allocations.range(..=page).next_back()?;
        (page < allocation.first + allocation.pages()).then_some(*allocation)
    }

    /// First page and size of the tree that a page belongs to.
    #[must_use]
    pub fn shape(&self, page: u64) -> Option<(u64, u32)> {
        let allocation = self.allocation(page)?;
        let number = (page - allocation.first) / u64::from(LARGE_PAGES);
        let first = allocation.first + number * u64::from(LARGE_PAGES);
        let pages = if number < allocation.whole {
            LARGE_PAGES
        } else {
            allocation.last
        };
        Some((first, pages))
    }

    /// The tree that a page belongs to, and the page's number in it.
    pub fn find(&mut self, page: u64) -> Option<(&mut Tree, u32)> {
        let (first, pages) = self.shape(page)?;
        if !self.trees.contains_key(&first) {
            let mut tree = Tree::new(first, pages);
            tree.absent = self.absent(first);
            if self.starts_untouched {
                tree.untouched = tree.all();
            }
            self.trees.insert(first, tree);
        }
        let tree = self.trees.get_mut(&first)?;
        Some((tree, (page - first) as u32))
    }

    /// The tree that begins at a page, if it was looked at before.
    #[must_use]
    pub fn tree(&self, first: u64) -> Option<&Tree> {
        self.trees.get(&first)
    }

    /// The tree that begins at a page, made if it was not looked at before.
    pub fn tree_mut(&mut self, first: u64) -> Option<&mut Tree> {
        self.find(first).map(|(tree, _)| tree)
    }

    /// All trees that were looked at, by address.
    pub fn trees(&self) -> impl Iterator<Item = &Tree> {
        self.trees.values()
    }

    /// Runs of pages from one to another, which is not among them, that the host does not have:
    /// first page and pages.
    #[must_use]
    pub fn away(&self, from: u64, end: u64) -> Vec<(u64, u64)> {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        let mut add = |first: u64, stop: u64| {
            let (first, stop) = (first.max(from), stop.min(end));
            match runs.last_mut() {
                _ if first >= stop => {}
                Some((known, count)) if *known + *count == first => *count += stop - first,
                _ => runs.push((first, stop - first)),
            }
        };
        let mut at = from;
        for tree in self.trees.range(..end).map(|(_, tree)| tree) {
            let stop = tree.first + u64::from(tree.pages);
            if stop <= from {
                continue;
            }
            for (first, stop) in self.not_looked_at(at, tree.first) {
                add(first, stop);
            }
            for (first, count) in (tree.device | tree.untouched).runs() {
                let first = tree.first + u64::from(first);
                add(first, first + u64::from(count));
            }
            at = stop;
        }
        for (first, stop) in self.not_looked_at(at, end) {
            add(first, stop);
        }
        runs
    }

    /// Parts of a range without trees that belong to allocations nobody has touched.
    fn not_looked_at(&self, from: u64, end: u64) -> impl Iterator<Item = (u64, u64)> + '_ {
        let most = if self.starts_untouched && from < end {
            usize::MAX
        } else {
            0
        };
        let own = self.allocations.range(..end).map(move |(_, allocation)| {
            let stop = allocation.first + allocation.pages();
            (allocation.first.max(from), stop.min(end))
        });
        own.take(most).filter(|(first, stop)| first < stop)
    }

    /// Whether the host does not have a page.
    #[must_use]
    pub fn is_away(&self, page: u64) -> bool {
        let Some((first, _)) = self.shape(page) else {
            return false;
        };
        self.trees
            .get(&first)
            .map_or(self.starts_untouched, |tree| {
                (tree.device | tree.untouched).contains((page - tree.first) as u32)
            })
    }

    /// Whether a page is mapped on the device.
    #[must_use]
    pub fn is_resident(&self, page: u64) -> bool {
        self.shape(page)
            .and_then(|(first, _)| self.trees.get(&first))
            .is_some_and(|tree| tree.device.contains((page - tree.first) as u32))
    }
}

/// The first page of the 2 MiB that a page lies in.
fn window_of(page: u64) -> u64 {
    page / u64::from(LARGE_PAGES) * u64::from(LARGE_PAGES)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WINDOW: u64 = 2 << 20;

    #[test]
    fn small_allocations_share_a_tree_until_the_last_is_gone() {
        let mut space = Space::default();
        space.map_shared(WINDOW, 3 * PAGE);
        space.map_shared(WINDOW + 3 * PAGE, PAGE);
        let (tree, index) = space.find(512 + 3).unwrap();
        assert_eq!((tree.first, index, tree.pages), (512, 3, LARGE_PAGES));
        assert_eq!(tree.all(), PageSet::range(0, 4));
        space.map_shared(WINDOW + 4 * PAGE, 2 * PAGE);
        assert_eq!(space.tree_mut(512).unwrap().all(), PageSet::range(0, 6));
        let (window, pages) = space.unmap_shared(WINDOW).unwrap();
        assert_eq!((window, pages), (512, PageSet::range(0, 3)));
        assert_eq!(space.unmap_shared(WINDOW), None, "it is gone already");
        assert!(space.unmap(WINDOW).is_empty());
        assert!(space.unmap_shared(WINDOW + 3 * PAGE).is_some());
        assert_eq!(space.unmap_shared(WINDOW + 4 * PAGE), None, "the last");
        let trees = space.unmap(WINDOW + 4 * PAGE);
        assert_eq!(trees.len(), 1);
        assert!(space.is_empty());
    }

    #[test]
    fn large_ones_beside_them_have_trees_of_their_own() {
        let mut space = Space::default();
        space.map_shared(WINDOW, PAGE);
        space.map(2 * WINDOW, WINDOW + PAGE);
        assert_eq!(space.shape(1024), Some((1024, 512)));
        assert_eq!(space.shape(1536), Some((1536, 16)));
        assert_eq!(space.unmap(2 * WINDOW).len(), 0);
        assert_eq!(space.shape(1024), None);
        assert_eq!(space.shape(512), Some((512, 512)));
    }
}
