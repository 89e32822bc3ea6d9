//! The tree that was used longest ago.

use super::{Oldest, Victim};

pub(super) fn choose(from: &mut Oldest<'_>) -> Option<Victim> {
    from.smallest_tree(|tree| tree.last_used())
}
