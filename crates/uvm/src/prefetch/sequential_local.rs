//! The block of each page that faulted.

use super::{Event, Memory, Pages, by_tree};
use crate::space::Space;

pub(super) fn plan(space: &mut Space, event: Event<'_>, _: &mut Memory) -> Pages {
    by_tree(space, event, |_, faults| faults.whole_blocks())
}
