//! The tree-based prefetcher as UVMSmart has it: all nodes of the tree are looked at, the lower
//! ones first, so a subtree that is more than half full for another reason is filled too.

use super::{Event, Memory, Pages, by_tree};
use crate::geometry::BLOCK_PAGES;
use crate::page_set::PageSet;
use crate::space::Space;

pub(super) fn plan(space: &mut Space, event: Event<'_>, _: &mut Memory) -> Pages {
    by_tree(space, event, |tree, faults| {
        let mut valid = tree.valid() | faults.whole_blocks() & tree.all();
        let mut size = 2 * BLOCK_PAGES;
        while size <= tree.pages {
            for first in (0..tree.pages).step_by(size as usize) {
                if 2 * valid.count_in(first, size) > size {
                    valid |= PageSet::range(first, size);
                }
            }
            size *= 2;
        }
        valid - tree.valid()
    })
}
