//! Frames, and what has to leave when they run short.

use super::Gmmu;
use crate::channel::{Migration, NO_CLAIM, NO_TICKET};
use crate::evict::EvictionCandidates;
use crate::log::Cause;

impl Gmmu {
    /// Pages that wait to be brought.
    pub(super) fn queued(&self) -> u64 {
        match &self.state.neighbours {
            // What is claimed has its frames.
            Some(neighbours) => neighbours.waiting.pages(),
            None => self.state.to_device.pages(),
        }
    }

    /// Whether something waits to be brought, and nothing else is under way that frees frames.
    fn waits_for_frames(&self) -> bool {
        match &self.state.neighbours {
            Some(neighbours) => neighbours.claims.is_empty() && neighbours.waiting.len() > 0,
            None => self.state.to_device.len() > 0,
        }
    }

    /// Pages that are leaving or chosen to.
    pub(super) fn leaving(&self) -> u64 {
        let busy = self.state.to_host.busy.as_ref();
        let busy = busy.map_or(0, |(migration, _)| u64::from(migration.pages.count()));
        self.state.to_host.pages() + busy
    }

    /// Whether free frames, with `leaving` more, do not suffice for what waits and `more` pages.
    pub(super) fn is_short(&self, more: u64, leaving: u64) -> bool {
        let frames = self.frames();
        let free = frames.saturating_sub(self.state.used);
        let percent = u64::from(self.settings.config.evict.free_buffer);
        100 * (free + leaving) < 100 * (self.queued() + more) + frames * percent
    }

    /// Chooses what leaves until enough will; says whether something was chosen.
    pub(super) fn choose_victims(&mut self, now: u64) -> bool {
        let mut chosen = false;
        while self.is_short(0, self.leaving()) {
            // With nothing under way, nothing would ever change: then pages that somebody waits
            // for may leave as well.
            let stuck = self.state.to_host.busy.is_none()
                && self.state.to_host.len() == 0
                && self.state.to_device.busy.is_none()
                && self.waits_for_frames();
            let victim = match self.choose(false) {
                Some(victim) => Some(victim),
                None if stuck => self.choose(true),
                None => None,
            };
            let Some(victim) = victim else {
                break;
            };
            let state = &mut *self.state;
            let Some(tree) = state.space.tree_mut(victim.tree) else {
                break;
            };
            if victim.pages.is_empty() {
                break;
            }
            tree.staged |= victim.pages;
            let dirty = (victim.pages & tree.dirty).count();
            let unused = (victim.pages - tree.touched).count();
            let stats = &mut state.stats;
            if stats.evictions.get() == 0 {
                stats.first_eviction.see(now.max(1));
            }
            stats.evictions.increment();
            stats.evicted.add(u64::from(victim.pages.count()));
            stats.evicted_dirty.add(u64::from(dirty));
            stats.evicted_unused.add(u64::from(unused));
            state.oversubscribed = true;
            state.to_host.push(Migration {
                fill: false,
                tree: victim.tree,
                pages: victim.pages,
                cause: Cause::Eviction,
                planned: now,
                ticket: NO_TICKET,
                claim: NO_CLAIM,
            });
            chosen = true;
        }
        chosen
    }

    fn choose(&mut self, force: bool) -> Option<crate::evict::Victim> {
        let state = &mut *self.state;
        (self.settings.evictor.choose)(&mut EvictionCandidates {
            space: &state.space,
            random: &mut state.memory.random,
            reserve: self.settings.config.evict.reserve,
            force,
        })
    }

    /// A page that was chosen to leave is used: the unit that it belongs to stays.
    pub(super) fn cancel_eviction(&mut self, tree: u64, page: u32) {
        let state = &mut *self.state;
        let Some(pages) = state.to_host.cancel(tree, page) else {
            return;
        };
        state.stats.eviction_cancelled.increment();
        if let Some(tree) = state.space.tree_mut(tree) {
            tree.staged -= pages;
        }
    }
}
