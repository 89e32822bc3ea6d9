//! As the real driver: there are no access bits, so the age of a tree is the time at which a page
//! last came to it.

use super::{EvictionCandidates, Victim};

pub(super) fn choose(from: &mut EvictionCandidates<'_>) -> Option<Victim> {
    from.smallest_tree(|tree| tree.arrived)
}
