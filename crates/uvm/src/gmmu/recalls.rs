//! On a node with several GPUs: pages that others claim, and copies of pages.
//!
//! A page that another GPU claims is unmapped once somebody has used it here, at the latest after
//! [`KEPT`].
//!
//! Start reading at [`Gmmu::give_recalled`].

use lockstep_units::Duration;
use serde::{Deserialize, Serialize};

use super::{Event, Gmmu, Output};
use crate::PAGE;
use crate::news::{ClaimId, News};
use crate::page_set::PageSet;

/// How long a page that came for somebody is kept although another GPU claims it: two GPUs that
/// each hold what the other needs would wait for each other without end.
const KEPT: Duration = Duration::microseconds(100);

/// Pages that another GPU claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Recall {
    pub by: ClaimId,
    pub tree: u64,
    pub left: PageSet,
    since: u64,
    /// When they go although nobody has used them.
    until: u64,
}

impl Gmmu {
    /// Another GPU claims pages.
    pub(super) fn recalled(&mut self, by: ClaimId, tree: u64, pages: PageSet, now: u64) {
        let until = now + self.settings.cycles(KEPT);
        if let Some(neighbours) = &mut self.state.neighbours {
            neighbours.recalls.push(Recall {
                by,
                tree,
                left: pages,
                since: now,
                until,
            });
            self.at(until, Event::Give);
        }
    }

    /// Another GPU gets copies of pages: they are not to be written without asking.
    pub(super) fn share(&mut self, tree: u64, pages: PageSet, now: u64) {
        let state = &mut *self.state;
        let known = state.space.tree(tree);
        let here = pages & known.map_or(PageSet::EMPTY, |tree| tree.device);
        if let Some(neighbours) = &mut state.neighbours {
            neighbours.around.entry(tree).or_default().shared |= here;
            self.shoot_down(tree, here, now);
        }
    }

    /// Unmaps pages that others claim, as far as they are here and were used, and says so.
    pub(super) fn give_recalled(&mut self, now: u64) {
        let Some(neighbours) = &mut self.state.neighbours else {
            return;
        };
        if neighbours.recalls.is_empty() {
            return;
        }
        let recalls = std::mem::take(&mut neighbours.recalls);
        for mut recall in recalls {
            let (ready, had) = self.ready_to_give(&recall, now);
            if !ready.is_empty() {
                self.unmap_for_neighbour(recall.tree, had, now);
                recall.left -= ready;
            }
            let Some(neighbours) = &mut self.state.neighbours else {
                return;
            };
            if !ready.is_empty() {
                let wait = now - recall.since.min(now);
                neighbours.stats.recall_wait.add(wait);
                neighbours.news.push(News::Given {
                    by: recall.by,
                    tree: recall.tree,
                    pages: ready,
                    had,
                });
            }
            if !recall.left.is_empty() {
                neighbours.recalls.push(recall);
            }
        }
    }

    /// Pages of a recall that need not be waited for, and those of them that are here.
    fn ready_to_give(&self, recall: &Recall, now: u64) -> (PageSet, PageSet) {
        let state = &*self.state;
        let granted = state.neighbours.as_deref();
        let granted = granted.and_then(|one| one.granted.get(&recall.tree));
        let granted = granted.copied().unwrap_or_default();
        let Some(tree) = state.space.tree(recall.tree) else {
            return (recall.left, PageSet::EMPTY);
        };
        let here = recall.left & tree.device;
        let free = match now < recall.until {
            true => here - tree.pinned,
            false => here,
        };
        // What is neither here nor coming has left before.
        let gone = recall.left - here - granted;
        (free | gone, free)
    }

    /// Unmaps pages, as for an eviction, but that they leave over another link.
    fn unmap_for_neighbour(&mut self, tree: u64, pages: PageSet, now: u64) {
        if pages.is_empty() {
            return;
        }
        let state = &mut *self.state;
        let Some(known) = state.space.tree_mut(tree) else {
            return;
        };
        let unused = known.prefetched & (pages - known.touched);
        state.stats.prefetch_unused.add(u64::from(unused.count()));
        for set in [
            &mut known.device,
            &mut known.staged,
            &mut known.pinned,
            &mut known.dirty,
            &mut known.prefetched,
        ] {
            *set -= pages;
        }
        known.evicted |= pages;
        for index in pages.iter() {
            known.used[index as usize] = now;
        }
        state.used -= u64::from(pages.count()).min(state.used);
        state.changes += 1;
        let mut copies = PageSet::EMPTY;
        if let Some(neighbours) = &mut state.neighbours {
            let around = neighbours.around.entry(tree).or_default();
            copies = around.shared & pages;
            around.shared -= pages;
            let stats = &mut neighbours.stats;
            stats.given.add(u64::from(pages.count()) * PAGE);
            stats.given_copies.add(u64::from(copies.count()) * PAGE);
        }
        self.shoot_down(tree, pages, now);
        for (first, count) in pages.runs() {
            let first = tree + u64::from(first);
            self.emit(now, Output::Unmapped { first, count });
        }
        // Nobody reads a copy once more before it goes.
        for (first, count) in copies.runs() {
            let first = tree + u64::from(first);
            self.emit(now, Output::Dropped { first, count });
        }
        if pages != copies {
            self.report_dma(tree, pages - copies, now, 0, false);
        }
    }

    /// A copy is to be written: it goes, and comes again as the only one. Says whether it was one.
    pub(super) fn surrender(&mut self, page: u64, now: u64) -> bool {
        if !self.is_read_only(page) {
            return false;
        }
        let state = &mut *self.state;
        let Some((tree, index)) = state.space.find(page) else {
            return false;
        };
        let (first, pages) = (tree.first, PageSet::one(index));
        tree.device -= pages;
        tree.pinned -= pages;
        state.used = state.used.saturating_sub(1);
        if let Some(neighbours) = &mut state.neighbours
            && let Some(around) = neighbours.around.get_mut(&first)
        {
            around.shared -= pages;
        }
        self.shoot_down(first, pages, now);
        true
    }
}
