//! The tree-based neighbourhood prefetcher as the seed describes it.
//!
//! The block of a fault counts as valid. From it to the root, a node of which more than half
//! would be valid is filled, and what is filled counts at the nodes above.

use super::{Event, Memory, Pages, by_tree};
use crate::geometry::BLOCK_PAGES;
use crate::page_set::PageSet;
use crate::space::Space;

pub(super) fn plan(space: &mut Space, event: Event<'_>, _: &mut Memory) -> Pages {
    by_tree(space, event, |tree, faults| {
        let blocks = faults.whole_blocks() & tree.all();
        let mut valid = tree.valid() | blocks;
        for leaf in blocks.iter().step_by(BLOCK_PAGES as usize) {
            let mut size = 2 * BLOCK_PAGES;
            while size <= tree.pages {
                let first = leaf / size * size;
                if 2 * valid.count_in(first, size) > size {
                    valid |= PageSet::range(first, size);
                }
                size *= 2;
            }
        }
        valid - tree.valid()
    })
}
