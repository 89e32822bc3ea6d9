//! The tree-based prefetcher as the real driver has it.
//!
//! Blocks of faults count as full, unless they hold pages that thrash. For each fault the largest
//! node above it of which more than 51 % is there or faulted is brought; nothing that is brought
//! counts for another decision. Pages that thrash are left out.

use super::{Event, Memory, Pages, by_tree};
use crate::geometry::BLOCK_PAGES;
use crate::page_set::PageSet;
use crate::space::Space;

/// Share of a node that must be there, in percent.
const THRESHOLD: u32 = 51;

pub(super) fn plan(space: &mut Space, event: Event<'_>, _: &mut Memory) -> Pages {
    by_tree(space, event, |tree, faults| {
        neighbours(tree.pages, tree.valid(), faults, tree.thrashing)
    })
}

/// What is brought with some faults to where `valid` pages are. The host's own faults are served
/// by the same rule, with what is valid there.
pub(crate) fn neighbours(
    pages: u32,
    valid: PageSet,
    faults: PageSet,
    thrashing: PageSet,
) -> PageSet {
    let mut blocks = PageSet::EMPTY;
    for page in faults.iter() {
        let block = PageSet::one(page).whole_blocks();
        if (block & thrashing).is_empty() {
            blocks |= block;
        }
    }
    let counted = valid | blocks | faults;
    let mut wanted = blocks;
    for page in faults.iter() {
        let mut size = pages;
        while size > BLOCK_PAGES {
            let first = page / size * size;
            if counted.count_in(first, size) * 100 > size * THRESHOLD {
                wanted |= PageSet::range(first, size);
                break;
            }
            size /= 2;
        }
    }
    wanted - thrashing
}
