//! On a node with several GPUs: pages that are claimed. Those that others claim are in `recalls.rs`.
//!
//! What is to come gets frames, then is claimed at the directory of the node, then comes over the
//! link of the host, over those between GPUs, or as zeros.
//!
//! Start reading at [`Gmmu::start_claims`] and [`Gmmu::order`].

use serde::{Deserialize, Serialize};

use super::Gmmu;
use crate::PAGE;
use crate::channel::{Channel, Migration};
use crate::log::Cause;
use crate::news::{News, Order, Source};
use crate::page_set::PageSet;

/// Pages that were claimed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Claim {
    migration: Migration,
    /// Pages that have not come.
    left: PageSet,
    since: u64,
}

impl Gmmu {
    /// Claims what waits and finds frames; whether it did anything.
    pub(super) fn start_claims(&mut self, now: u64) -> bool {
        let frames = self.frames();
        let state = &mut *self.state;
        let Some(neighbours) = &mut state.neighbours else {
            return false;
        };
        let Some(migration) = neighbours.waiting.head().copied() else {
            return false;
        };
        let pages = u64::from(migration.pages.count());
        let Some(tree) = state.space.tree(migration.tree).filter(|_| pages > 0) else {
            neighbours.waiting.pop();
            self.transfer_done(migration.ticket, now);
            return true;
        };
        let waits_for_itself = !(tree.leaving & migration.pages).is_empty();
        if waits_for_itself || state.used + pages > frames {
            state.starved.get_or_insert(now);
            return false;
        }
        if let Some(since) = state.starved.take() {
            state.stats.frame_wait.add(now - since);
        }
        neighbours.waiting.pop();
        state.used += pages;
        let written = migration.pages.iter().filter(|index| {
            let page = migration.tree + u64::from(*index);
            state.faults.get(&page).is_some_and(|fault| fault.write)
        });
        let claim = neighbours.next_claim;
        neighbours.next_claim += 1;
        neighbours.news.push(News::Wanted {
            claim,
            tree: migration.tree,
            pages: migration.pages,
            written: written.collect(),
        });
        let claimed = Claim {
            migration,
            left: migration.pages,
            since: now,
        };
        neighbours.claims.insert(claim, claimed);
        true
    }

    /// Takes what the directory says.
    pub fn order(&mut self, now: u64, order: Order) {
        match order {
            Order::Granted {
                claim,
                pages,
                source,
                shared,
            } => self.granted(claim, pages, source, shared, now),
            Order::Arrived {
                claim,
                pages,
                shared,
                unsaved,
            } => self.arrived_from_neighbour(claim, pages, shared, unsaved, now),
            Order::Recall { by, tree, pages } => self.recalled(by, tree, pages, now),
            Order::Share { tree, pages } => self.share(tree, pages, now),
        }
        self.give_recalled(now);
        self.start_transfers(now);
    }

    /// Pages of a claim may come.
    fn granted(&mut self, number: u64, pages: PageSet, source: Source, shared: bool, now: u64) {
        let Some(neighbours) = &mut self.state.neighbours else {
            return;
        };
        let Some(claim) = neighbours.claims.get(&number) else {
            return;
        };
        let pages = pages & claim.left;
        let migration = Migration {
            pages,
            claim: number,
            fill: source == Source::Zeros,
            ..claim.migration
        };
        let tree = migration.tree;
        *neighbours.granted.entry(tree).or_default() |= pages;
        let around = neighbours.around.entry(tree).or_default();
        around.shared -= pages;
        if shared {
            around.shared |= pages;
        }
        if source == Source::Own {
            let stats = &mut neighbours.stats;
            stats.upgraded.add(u64::from(pages.count()));
            self.land(migration, now);
        } else {
            self.state.to_device.push(migration);
        }
    }

    /// Pages of a claim have come from another GPU.
    fn arrived_from_neighbour(
        &mut self,
        number: u64,
        pages: PageSet,
        shared: bool,
        unsaved: PageSet,
        now: u64,
    ) {
        let state = &mut *self.state;
        let Some(neighbours) = &mut state.neighbours else {
            return;
        };
        let Some(claim) = neighbours.claims.get(&number) else {
            return;
        };
        let pages = pages & claim.left;
        let migration = Migration {
            pages,
            claim: number,
            ..claim.migration
        };
        let tree = migration.tree;
        let around = neighbours.around.entry(tree).or_default();
        around.shared -= pages;
        let bytes = u64::from(pages.count()) * PAGE;
        let stats = &mut neighbours.stats;
        stats.transfers.increment();
        if shared {
            around.shared |= pages;
            stats.copied.add(bytes);
        }
        if migration.cause == Cause::User {
            stats.user_prefetch.add(bytes);
        } else {
            stats.migrated.add(bytes);
        }
        if let Some(tree) = state.space.tree(tree) {
            let again = (tree.evicted & pages).count();
            stats.returned.add(u64::from(again));
        }
        self.report_dma(tree, pages, now, 0, true);
        self.land(migration, now);
        // The host has nothing of them: they are as if they had been written here.
        if let Some(tree) = self.state.space.tree_mut(tree) {
            tree.dirty |= unsaved & pages;
        }
    }

    /// Pages are here that did not come over the link of the host.
    fn land(&mut self, migration: Migration, now: u64) {
        self.state.changes += 1;
        let migration = Migration {
            // What came over no link of the host is not counted as such.
            fill: true,
            ..migration
        };
        self.map(&migration, now);
        if self.settings.shootdown_on_map {
            self.shoot_down(migration.tree, migration.pages, now);
        }
        self.claimed(migration.claim, migration.pages, now);
    }

    /// Pages of a claim are mapped.
    pub(super) fn claimed(&mut self, number: u64, pages: PageSet, now: u64) {
        let Some(neighbours) = &mut self.state.neighbours else {
            return;
        };
        let Some(claim) = neighbours.claims.get_mut(&number) else {
            return;
        };
        claim.left -= pages;
        let done = *claim;
        if let Some(granted) = neighbours.granted.get_mut(&done.migration.tree) {
            *granted -= pages;
        }
        if !done.left.is_empty() {
            return;
        }
        neighbours.claims.remove(&number);
        neighbours.stats.claim_wait.add(now - done.since.min(now));
        self.transfer_done(done.migration.ticket, now);
    }

    /// Memory is gone: nothing of it is waited for.
    pub(super) fn forget_claims(&mut self, tree: u64, pages: PageSet, now: u64) {
        let state = &mut *self.state;
        let Some(neighbours) = &mut state.neighbours else {
            return;
        };
        let mut gone = Vec::new();
        for (number, claim) in &neighbours.claims {
            let left = claim.left & pages;
            if claim.migration.tree == tree && !left.is_empty() {
                gone.push((*number, left));
            }
        }
        for recall in &mut neighbours.recalls {
            if recall.tree == tree {
                recall.left -= pages;
            }
        }
        neighbours.recalls.retain(|recall| !recall.left.is_empty());
        if let Some(around) = neighbours.around.get_mut(&tree) {
            around.shared -= pages;
        }
        for (_, left) in &gone {
            state.used -= u64::from(left.count()).min(state.used);
        }
        for (number, left) in gone {
            self.claimed(number, left, now);
        }
    }

    /// Gives up what is claimed, and gives what others claim: kernels of this GPU are gone.
    pub(super) fn abort_claims(&mut self) {
        let state = &mut *self.state;
        let Some(neighbours) = &mut state.neighbours else {
            return;
        };
        neighbours.waiting = Channel::default();
        neighbours.granted.clear();
        for (claim, claimed) in std::mem::take(&mut neighbours.claims) {
            neighbours.news.push(News::GivenUp {
                claim,
                tree: claimed.migration.tree,
                pages: claimed.left,
            });
        }
        for recall in std::mem::take(&mut neighbours.recalls) {
            let mut had = PageSet::EMPTY;
            if let Some(tree) = state.space.tree_mut(recall.tree) {
                had = tree.device & recall.left;
                tree.device -= had;
            }
            neighbours.news.push(News::Given {
                by: recall.by,
                tree: recall.tree,
                pages: recall.left,
                had,
            });
        }
        let trees: Vec<(u64, PageSet)> = state
            .space
            .trees()
            .filter(|tree| !tree.leaving.is_empty())
            .map(|tree| (tree.first, tree.leaving))
            .collect();
        for (tree, pages) in trees {
            neighbours.left(tree, pages);
        }
    }
}
