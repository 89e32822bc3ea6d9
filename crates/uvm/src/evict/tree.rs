//! Tree-based pre-eviction: the mirror of the tree-based prefetcher.

use super::sequential_local::oldest_block;
use super::{EvictionCandidates, Victim};
use crate::geometry::BLOCK_PAGES;
use crate::page_set::PageSet;
use crate::tree::Tree;

pub(super) fn choose(from: &mut EvictionCandidates<'_>) -> Option<Victim> {
    let (tree, leaf) = oldest_block(from)?;
    Some(Victim {
        tree: tree.first,
        pages: with_neighbours(tree, leaf) & tree.evictable(from.force),
    })
}

/// The valid pages of a block and, from it to the root, of every node of which less than half
/// would be left; what leaves below counts above.
pub(crate) fn with_neighbours(tree: &Tree, leaf: u32) -> PageSet {
    let before = tree.valid();
    let block = PageSet::range(leaf * BLOCK_PAGES, BLOCK_PAGES);
    let mut valid = before - block;
    let mut size = 2 * BLOCK_PAGES;
    while size <= tree.pages {
        let first = leaf * BLOCK_PAGES / size * size;
        let left = valid.count_in(first, size);
        if left > 0 && 2 * left < size {
            valid -= PageSet::range(first, size);
        }
        size *= 2;
    }
    before - valid
}
