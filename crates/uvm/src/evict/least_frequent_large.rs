//! The tree that was used least often.

use super::{EvictionCandidates, Victim};

pub(super) fn choose(from: &mut EvictionCandidates<'_>) -> Option<Victim> {
    from.smallest_tree(|tree| (tree.uses, tree.written, tree.last_used()))
}
