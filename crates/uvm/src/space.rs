//! Managed allocations and their trees.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::geometry::{LARGE_PAGES, PAGE, tree_pages};
use crate::tree::Tree;

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
    trees: BTreeMap<u64, Tree>,
}

impl Space {
    /// Adds an allocation; its pages are on the host.
    pub fn map(&mut self, address: u64, bytes: u64) {
        let first = address / PAGE;
        let (whole, last) = tree_pages(bytes.saturating_add(address % PAGE));
        let allocation = Allocation { first, whole, last };
        self.allocations.insert(first, allocation);
    }

    /// Removes the allocation at an address and gives its trees.
    pub fn unmap(&mut self, address: u64) -> Vec<Tree> {
        let Some(allocation) = self.allocations.remove(&(address / PAGE)) else {
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
        let tree = self
            .trees
            .entry(first)
            .or_insert_with(|| Tree::new(first, pages));
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

    /// Whether a page is mapped on the device.
    #[must_use]
    pub fn is_resident(&self, page: u64) -> bool {
        self.shape(page)
            .and_then(|(first, _)| self.trees.get(&first))
            .is_some_and(|tree| tree.device.contains((page - tree.first) as u32))
    }
}
