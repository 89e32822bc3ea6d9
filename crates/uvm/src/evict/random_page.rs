//! A page at random.

use super::{EvictionCandidates, Victim};
use crate::page_set::PageSet;

pub(super) fn choose(from: &mut EvictionCandidates<'_>) -> Option<Victim> {
    let force = from.force;
    let count: u64 = from
        .trees()
        .map(|tree| u64::from(tree.evictable(force).count()))
        .sum();
    let mut left = from.random.below(count);
    for tree in from.trees() {
        let pages = tree.evictable(force);
        let here = u64::from(pages.count());
        if left >= here {
            left -= here;
            continue;
        }
        return pages.iter().nth(left as usize).map(|page| Victim {
            tree: tree.first,
            pages: PageSet::one(page),
        });
    }
    None
}
