//! The tree that was used least often.

use super::{Oldest, Victim};

pub(super) fn choose(from: &mut Oldest<'_>) -> Option<Victim> {
    from.smallest_tree(|tree| (tree.uses, tree.written, tree.last_used()))
}
