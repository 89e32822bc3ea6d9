//! What the program and the host do to pages.

use super::Directory;
use crate::geometry::{LARGE_PAGES, PAGE};
use crate::page_set::PageSet;

impl Directory {
    /// Adds managed memory.
    pub fn map(&mut self, address: u64, bytes: u64) {
        self.space.add(address, bytes, self.packing);
    }

    /// Removes managed memory; nothing is using it.
    pub fn unmap(&mut self, address: u64, bytes: u64) {
        let trees = self.pieces(address, bytes);
        if let Some((tree, pages)) = self.space.unmap_shared(address) {
            self.forget(tree, pages);
            return;
        }
        self.space.unmap(address);
        for (tree, _) in trees {
            self.forget(tree, PageSet::range(0, LARGE_PAGES));
        }
    }

    /// Pages of a tree are as if nobody had ever used them.
    fn forget(&mut self, tree: u64, pages: PageSet) {
        for claim in self.claims.iter_mut().filter(|claim| claim.tree == tree) {
            claim.left -= pages;
        }
        self.claims.retain(|claim| !claim.left.is_empty());
        for carried in self.carries.values_mut().filter(|one| one.tree == tree) {
            carried.pages -= pages;
        }
        for gpu in self.gpus.clone() {
            self.release(gpu, tree, pages);
        }
        let zero_fill = self.zero_fill;
        let places = self.places_of(tree);
        places.moving -= pages;
        places.leaving -= pages;
        places.read_mostly -= pages;
        if zero_fill {
            places.untouched |= pages;
            places.host -= pages;
        } else {
            places.host |= pages;
        }
    }

    /// The host has memory of its own for pages that nobody has touched.
    pub fn populate(&mut self, address: u64, bytes: u64) {
        for (tree, pages) in self.pieces(address, bytes) {
            let places = self.places_of(tree);
            let fresh = pages & places.untouched;
            places.untouched -= fresh;
            places.host |= fresh;
        }
    }

    /// Pages are mostly read, or no longer.
    pub fn set_read_mostly(&mut self, address: u64, bytes: u64, yes: bool) {
        for (tree, pages) in self.pieces(address, bytes) {
            let places = self.places_of(tree);
            if yes {
                places.read_mostly |= pages;
            } else {
                places.read_mostly -= pages;
            }
        }
    }

    /// The GPUs that have some page of a range.
    #[must_use]
    pub fn holders(&self, address: u64, bytes: u64) -> Vec<u32> {
        let pieces = self.pieces(address, bytes);
        let has = |slot: usize| {
            pieces.iter().any(|(tree, pages)| {
                let places = self.places.get(tree);
                places.is_some_and(|places| !(places.held[slot] & *pages).is_empty())
            })
        };
        let gpus = self.gpus.clone().zip(0..);
        gpus.filter(|(_, slot)| has(*slot))
            .map(|(gpu, _)| gpu)
            .collect()
    }

    /// Whether the host has a copy of the page of an address.
    #[must_use]
    pub fn host_has(&self, address: u64) -> bool {
        let Some((tree, _)) = self.space.shape(address / PAGE) else {
            return true;
        };
        let index = (address / PAGE - tree) as u32;
        self.places
            .get(&tree)
            .map_or(!self.zero_fill, |places| places.host.contains(index))
    }

    /// Whether nobody has touched the page of an address.
    #[must_use]
    pub fn is_untouched(&self, address: u64) -> bool {
        let Some((tree, _)) = self.space.shape(address / PAGE) else {
            return false;
        };
        let index = (address / PAGE - tree) as u32;
        self.places
            .get(&tree)
            .map_or(self.zero_fill, |places| places.untouched.contains(index))
    }

    /// Parts of a range that the host does not have, or shares with a GPU: address and bytes.
    #[must_use]
    pub fn away(&self, address: u64, bytes: u64) -> Vec<(u64, u64)> {
        let end = address.saturating_add(bytes);
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for (tree, pages) in self.pieces(address, bytes) {
            let away = match self.places.get(&tree) {
                Some(places) => pages & places.away(),
                None if self.zero_fill => pages,
                None => PageSet::EMPTY,
            };
            for (first, count) in away.runs() {
                let first = tree + u64::from(first);
                let start = (first * PAGE).max(address);
                let stop = ((first + u64::from(count)) * PAGE).min(end);
                match runs.last_mut() {
                    Some((known, length)) if *known + *length == start => *length = stop - *known,
                    _ => runs.push((start, stop - start)),
                }
            }
        }
        runs
    }

    /// The trees and pages that some bytes lie in.
    fn pieces(&self, address: u64, bytes: u64) -> Vec<(u64, PageSet)> {
        let mut page = address / PAGE;
        let end = address.saturating_add(bytes).div_ceil(PAGE);
        let mut pieces = Vec::new();
        while page < end {
            let Some((tree, pages)) = self.space.shape(page) else {
                break;
            };
            let index = (page - tree) as u32;
            let count = u64::from(pages - index).min(end - page) as u32;
            pieces.push((tree, PageSet::range(index, count)));
            page += u64::from(count);
        }
        pieces
    }
}
