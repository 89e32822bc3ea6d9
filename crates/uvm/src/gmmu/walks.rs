//! From a request to a page-table entry.

use super::{Event, Gmmu, Output, Pending};
use crate::geometry::PageSize;
use crate::page_set::PageSet;

impl Gmmu {
    /// Looks in the shared TLB, then walks.
    pub(super) fn translate(&mut self, pending: Pending) {
        self.state.stats.requests.increment();
        let mut at = pending.since;
        if let Some(shared) = &mut self.state.shared {
            at += self.settings.config.tlb.l2_latency.0;
            if shared.find(pending.page).is_some() {
                self.state.stats.shared_hits.increment();
                self.at(at, Event::Found(pending));
                return;
            }
        }
        let threads = self.settings.config.walk.walkers;
        if threads > 0 && self.state.walks >= threads {
            self.state.walk_queue.push_back(pending);
        } else {
            self.start_walk(pending, at);
        }
    }

    /// When a walk that is ready at a cycle begins.
    fn begin_walk(&mut self, at: u64) -> u64 {
        let most = self.settings.config.walk.walks_per_cycle;
        let (last, count) = &mut self.state.walk_starts;
        if at > *last {
            (*last, *count) = (at, 1);
        } else if most > 0 && *count >= most {
            (*last, *count) = (*last + 1, 1);
        } else {
            *count += 1;
        }
        if most > 0 { *last } else { at }
    }

    fn start_walk(&mut self, pending: Pending, at: u64) {
        let at = self.begin_walk(at);
        self.state.walks += 1;
        self.state.stats.walks.increment();
        let size = self.mapping(pending.page);
        let cache = &mut self.state.cache;
        let before = (cache.lookups, cache.hits);
        let cycles = self.walk.cycles(pending.page, size, cache);
        let stats = &mut self.state.stats;
        stats.walk_cache_lookups.add(cache.lookups - before.0);
        stats.walk_cache_hits.add(cache.hits - before.1);
        self.at(at + cycles, Event::Walked(pending));
    }

    /// A walker is free again; what it found is looked at.
    pub(super) fn walked(&mut self, pending: Pending, now: u64) {
        self.state.walks -= 1;
        if let Some(next) = self.state.walk_queue.pop_front() {
            self.state.stats.walk_queue.add(now - next.since.min(now));
            self.start_walk(next, now);
        }
        self.check(pending, now);
    }

    /// What an entry for a page covers.
    fn mapping(&mut self, page: u64) -> PageSize {
        if !self.settings.config.promotion {
            return PageSize::Small;
        }
        let size = match self.state.space.find(page) {
            Some((tree, index)) => tree.mapping(index),
            None => PageSize::Small,
        };
        match &self.state.neighbours {
            Some(neighbours) => neighbours.mapping(&self.state.space, page, size),
            None => size,
        }
    }

    /// Notes a use. Bits belong to entries: an entry for more than a page is used and written as
    /// a whole.
    pub(super) fn touch(&mut self, page: u64, now: u64, write: bool) {
        let size = self.mapping(page);
        let state = &mut *self.state;
        let Some((tree, index)) = state.space.find(page) else {
            return;
        };
        if !tree.device.contains(index) {
            return;
        }
        let count = size.pages() as u32;
        let pages = PageSet::range(index / count * count, count);
        let fresh = (tree.prefetched & pages) - tree.touched;
        state.stats.prefetch_used.add(u64::from(fresh.count()));
        tree.touch(index, now, write);
        if count > 1 {
            tree.touched |= pages;
            if write {
                tree.dirty |= pages;
            }
        }
    }

    /// A page is mapped: says so and notes the use.
    pub(super) fn translated(&mut self, pending: Pending, now: u64) {
        let Pending {
            sm, page, write, ..
        } = pending;
        let size = self.mapping(page);
        if let Some((tree, index)) = self.state.space.find(page) {
            tree.pinned -= PageSet::one(index);
        }
        self.touch(page, now, write);
        if let Some(shared) = &mut self.state.shared {
            shared.insert(page, size, false, now);
        }
        let read_only = self.is_read_only(page);
        let translated = Output::Translated {
            sm,
            page,
            size,
            read_only,
        };
        self.emit(now, translated);
    }
}
