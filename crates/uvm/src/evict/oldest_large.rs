//! The tree that was used longest ago.

use super::{EvictionCandidates, Victim};

pub(super) fn choose(from: &mut EvictionCandidates<'_>) -> Option<Victim> {
    from.smallest_tree(|tree| tree.last_used())
}
