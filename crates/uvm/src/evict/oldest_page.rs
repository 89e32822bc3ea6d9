//! The page that was used longest ago.

use super::{EvictionCandidates, Victim};
use crate::page_set::PageSet;

pub(super) fn choose(from: &mut EvictionCandidates<'_>) -> Option<Victim> {
    let force = from.force;
    let pages = from.trees().flat_map(|tree| {
        let pages = tree.evictable(force).iter();
        pages.map(move |page| (tree.used[page as usize], tree.first, page))
    });
    let (_, tree, page) = if from.reserve == 0 || force {
        pages.min()?
    } else {
        let mut pages: Vec<_> = pages.collect();
        pages.sort_unstable();
        let position = from.position(pages.len());
        *pages.get(position)?
    };
    Some(Victim {
        tree,
        pages: PageSet::one(page),
    })
}
