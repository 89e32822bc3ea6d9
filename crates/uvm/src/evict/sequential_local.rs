//! Blocks: trees by when any of their blocks was last used, in a tree blocks by when they were.

use super::{EvictionCandidates, Victim};
use crate::geometry::BLOCK_PAGES;
use crate::page_set::PageSet;
use crate::tree::Tree;

pub(super) fn choose(from: &mut EvictionCandidates<'_>) -> Option<Victim> {
    let (tree, leaf) = oldest_block(from)?;
    let block = PageSet::range(leaf * BLOCK_PAGES, BLOCK_PAGES);
    Some(Victim {
        tree: tree.first,
        pages: tree.evictable(from.force) & block,
    })
}

/// The block at the old end of the list, after the reserve.
pub(super) fn oldest_block<'a>(from: &'a EvictionCandidates<'_>) -> Option<(&'a Tree, u32)> {
    let force = from.force;
    let mut skipped = 0;
    if from.reserve > 0 && !force {
        let count: usize = from.trees().map(|tree| blocks(tree, force).len()).sum();
        skipped = from.position(count);
    }
    if skipped == 0 {
        let tree = from
            .trees()
            .min_by_key(|tree| (tree.last_used(), tree.first))?;
        return blocks(tree, force).first().map(|leaf| (tree, *leaf));
    }
    let mut trees: Vec<&Tree> = from.trees().collect();
    trees.sort_by_key(|tree| (tree.last_used(), tree.first));
    for tree in trees {
        let blocks = blocks(tree, force);
        if let Some(leaf) = blocks.get(skipped) {
            return Some((tree, *leaf));
        }
        skipped -= blocks.len();
    }
    None
}

/// Blocks of a tree with something to evict, oldest first.
fn blocks(tree: &Tree, force: bool) -> Vec<u32> {
    let pages = tree.evictable(force);
    let mut blocks: Vec<u32> = (0..tree.leaves())
        .filter(|leaf| pages.count_in(leaf * BLOCK_PAGES, BLOCK_PAGES) > 0)
        .collect();
    blocks.sort_by_key(|leaf| (tree.block_used[*leaf as usize], *leaf));
    blocks
}
