//! Transfers both ways, mapping and unmapping.

use super::{Event, Gmmu, MOST_RECORDS, Output};
use crate::PAGE;
use crate::channel::{Migration, NO_CLAIM, NO_TICKET};
use crate::log::{Cause, Direction, FaultRecord, MigrationRecord};
use crate::page_set::PageSet;
use crate::settings::Shootdown;
use crate::tlb::Scope;

impl Gmmu {
    /// Starts whatever can start.
    pub(super) fn start_transfers(&mut self, now: u64) {
        loop {
            let left = self.start_to_host(now);
            let came = self.start_to_device(now);
            let claimed = self.start_claims(now);
            if !left && !came && !claimed && !self.choose_victims(now) {
                return;
            }
        }
    }

    /// Whether the link is taken by the other direction.
    fn is_taken(&self, other_busy: bool) -> bool {
        !self.settings.config.link.duplex && other_busy
    }

    fn start_to_device(&mut self, now: u64) -> bool {
        if self.state.to_device.busy.is_some() || self.is_taken(self.state.to_host.busy.is_some()) {
            return false;
        }
        let frames = self.frames();
        let state = &mut *self.state;
        let Some(migration) = state.to_device.head().copied() else {
            return false;
        };
        let pages = migration.pages.count();
        let Some(tree) = state.space.tree(migration.tree) else {
            state.to_device.pop();
            return true;
        };
        // What was claimed has its frames already.
        if migration.claim == NO_CLAIM {
            let waits_for_itself = !(tree.leaving & migration.pages).is_empty();
            if waits_for_itself || state.used + u64::from(pages) > frames {
                state.starved.get_or_insert(now);
                return false;
            }
            if let Some(since) = state.starved.take() {
                state.stats.frame_wait.add(now - since);
            }
            state.used += u64::from(pages);
        }
        state.to_device.pop();
        state
            .stats
            .channel_wait
            .add(now - migration.planned.min(now));
        if migration.fill {
            // What writing zeros takes is part of what serving the fault does.
            state.stats.zero_filled.add(u64::from(pages));
            state.to_device.busy = Some((migration, now));
            // The frames are others than before: nothing of them is cached.
            for (first, count) in migration.pages.runs() {
                let first = migration.tree + u64::from(first);
                self.emit(now, Output::Dropped { first, count });
            }
            self.at(now, Event::Arrived);
            return true;
        }
        let time = self.settings.transfer(pages, true);
        state.stats.to_device_busy.add(time);
        state.stats.transfer_time.add(time);
        if pages > 0 {
            state.stats.transfers.increment();
            state.stats.transfer_size.add(u64::from(pages) * PAGE);
        }
        state.to_device.busy = Some((migration, now));
        state.to_device.free_at = now + time;
        self.report_dma(migration.tree, migration.pages, now, time, true);
        self.at(now + time, Event::Arrived);
        true
    }

    /// Says what a transfer writes into device memory or reads from it, as it gets along.
    pub(super) fn report_dma(
        &mut self,
        tree: u64,
        pages: PageSet,
        now: u64,
        time: u64,
        to_device: bool,
    ) {
        let all = u64::from(pages.count());
        let mut before = 0;
        for (mut first, mut left) in pages.runs() {
            while left > 0 {
                let count = left.min(crate::BLOCK_PAGES);
                let page = tree + u64::from(first);
                // What is written is there when the last of it came; what is read leaves first.
                let done = before + if to_device { u64::from(count) } else { 0 };
                let output = Output::DmaTransferred {
                    first: page,
                    count,
                    to_device,
                };
                self.emit(now + time * done / all, output);
                before += u64::from(count);
                first += count;
                left -= count;
            }
        }
    }

    /// A transfer to the device is complete: its pages are mapped.
    pub(super) fn arrived(&mut self, now: u64) {
        let Some((migration, since)) = self.state.to_device.busy.take() else {
            return;
        };
        if !migration.fill {
            self.record(&migration, since, now, Direction::ToDevice);
        }
        self.state.changes += 1;
        self.map(&migration, now);
        if self.settings.shootdown_on_map {
            self.shoot_down(migration.tree, migration.pages, now);
        }
        match migration.claim {
            NO_CLAIM => self.transfer_done(migration.ticket, now),
            claim => self.claimed(claim, migration.pages, now),
        }
    }

    /// A transfer to the device is complete, with all its parts.
    pub(super) fn transfer_done(&mut self, ticket: u64, now: u64) {
        if ticket != NO_TICKET {
            self.part_done(ticket, now);
        } else if self.settings.is_batched() {
            self.batch_arrived(now);
        }
    }

    pub(super) fn map(&mut self, migration: &Migration, now: u64) {
        let batched = self.settings.is_batched() && migration.cause != Cause::User;
        let (mut demand, mut prefetched, mut late) = (0, 0, 0);
        let Some(tree) = self.state.space.tree_mut(migration.tree) else {
            return;
        };
        let pages = migration.pages;
        tree.incoming -= pages;
        tree.device |= pages;
        tree.untouched -= pages;
        tree.touched -= pages;
        tree.dirty -= pages;
        tree.prefetched -= pages;
        tree.arrived = now;
        let again = tree.evicted & pages;
        self.state.stats.thrashed.add(u64::from(again.count()));
        for index in again.iter() {
            let away = now - tree.used[index as usize].min(now);
            self.state.stats.away.add(away);
        }
        for index in pages.iter() {
            let leaf = (index / crate::BLOCK_PAGES) as usize;
            tree.used[index as usize] = now;
            tree.block_used[leaf] = now;
        }
        for index in pages.iter() {
            let page = migration.tree + u64::from(index);
            let Some(fault) = self.state.faults.get(&page) else {
                continue;
            };
            let (prefetch, waited) = (fault.prefetch, !fault.sharers.is_empty());
            if prefetch {
                prefetched += 1;
                late += u64::from(waited);
            } else {
                demand += 1;
                self.state.stats.fault_latency.add(now - fault.detected);
                if self.state.fault_log.len() < MOST_RECORDS {
                    self.state.fault_log.push(FaultRecord {
                        detected: fault.detected,
                        mapped: now,
                        page,
                        sm: fault.sharers.first().map_or(0, |first| first.sm),
                        write: fault.write,
                    });
                }
            }
            if let Some((tree, index)) = self.state.space.find(page) {
                if prefetch {
                    tree.prefetched.insert(index);
                }
                if waited {
                    tree.pinned.insert(index);
                }
            }
            // A batch tells everybody at its end.
            if !batched && let Some(fault) = self.state.faults.remove(&page) {
                for sharer in fault.sharers {
                    self.replay(page, sharer.sm, now);
                }
            }
        }
        let stats = &mut self.state.stats;
        stats.prefetch_late.add(late);
        stats.prefetched.add(prefetched);
        if migration.fill {
            return;
        }
        stats.demand.add(demand * PAGE);
        if migration.cause == Cause::User {
            stats.user_prefetch.add(prefetched * PAGE);
        } else {
            stats.prefetch.add(prefetched * PAGE);
        }
    }

    fn start_to_host(&mut self, now: u64) -> bool {
        if self.state.to_host.busy.is_some() || self.is_taken(self.state.to_device.busy.is_some()) {
            return false;
        }
        let drop_clean = self.settings.config.evict.clean == "drop";
        let state = &mut *self.state;
        let Some(mut migration) = state.to_host.pop() else {
            return false;
        };
        let Some(tree) = state.space.tree_mut(migration.tree) else {
            return true;
        };
        // Evictions may have been called off, and pages may have left for another reason.
        migration.pages = if migration.cause == Cause::Eviction {
            migration.pages & tree.staged
        } else {
            migration.pages & tree.device
        };
        if migration.pages.is_empty() {
            if migration.ticket != NO_TICKET {
                self.part_done(migration.ticket, now);
            }
            return true;
        }
        let dirty = migration.pages & tree.dirty;
        let may_drop = drop_clean && migration.cause == Cause::Eviction;
        let kept_there = migration.pages & (tree.duplicated - tree.dirty);
        let moved = if may_drop {
            dirty
        } else {
            migration.pages - kept_there
        };
        tree.device -= migration.pages;
        tree.staged -= migration.pages;
        tree.pinned -= migration.pages;
        tree.leaving |= migration.pages;
        let runs = moved.runs();
        let time: u64 = runs
            .iter()
            .map(|(_, count)| self.settings.transfer(*count, false))
            .sum();
        let stats = &mut self.state.stats;
        let moved_bytes = u64::from(moved.count()) * PAGE;
        let dirty_bytes = u64::from(dirty.count()) * PAGE;
        match migration.cause {
            Cause::Eviction => {
                stats.written_back.add(dirty_bytes);
                stats
                    .clean_back
                    .add(moved_bytes - dirty_bytes.min(moved_bytes));
            }
            _ => stats.host_back.add(moved_bytes),
        }
        stats.to_host_busy.add(time);
        self.state.to_host.busy = Some((migration, now));
        self.state.changes += 1;
        if let Some(neighbours) = &mut self.state.neighbours {
            neighbours.leaving(migration.tree, migration.pages);
        }
        self.state.to_host.free_at = now + time;
        self.shoot_down(migration.tree, migration.pages, now);
        for (first, count) in migration.pages.runs() {
            let first = migration.tree + u64::from(first);
            self.emit(now, Output::Unmapped { first, count });
        }
        for (first, count) in (migration.pages - moved).runs() {
            let first = migration.tree + u64::from(first);
            self.emit(now, Output::Dropped { first, count });
        }
        self.report_dma(migration.tree, moved, now, time, false);
        self.at(now + time, Event::Left);
        true
    }

    /// A transfer to the host is complete: its frames are free.
    pub(super) fn left(&mut self, now: u64) {
        let Some((migration, since)) = self.state.to_host.busy.take() else {
            return;
        };
        self.record(&migration, since, now, Direction::ToHost);
        let state = &mut *self.state;
        state.used -= u64::from(migration.pages.count()).min(state.used);
        if let Some(tree) = state.space.tree_mut(migration.tree) {
            let unused = tree.prefetched & (migration.pages - tree.touched);
            state.stats.prefetch_unused.add(u64::from(unused.count()));
            tree.leaving -= migration.pages;
            tree.dirty -= migration.pages;
            for index in migration.pages.iter() {
                // Nothing can use them now: since when they are away.
                tree.used[index as usize] = now;
            }
            tree.evicted |= migration.pages;
            if migration.cause == Cause::Eviction {
                tree.round_trips = tree.round_trips.saturating_add(1).min(31);
            }
        }
        if let Some(neighbours) = &mut state.neighbours {
            neighbours.left(migration.tree, migration.pages);
        }
        if migration.cause == Cause::HostFault {
            self.note_thrashing(&migration, now);
        }
        if migration.ticket != NO_TICKET {
            self.part_done(migration.ticket, now);
        }
    }

    /// Removes translations of some pages.
    pub(super) fn shoot_down(&mut self, tree: u64, pages: PageSet, now: u64) {
        let runs = pages.runs();
        let operations = match self.settings.shootdown {
            Shootdown::Whole => 1,
            Shootdown::Range => runs.len() as u64,
            Shootdown::Entry => u64::from(pages.count()),
        };
        self.state.stats.shootdowns.add(operations);
        let mut scopes = Vec::new();
        if self.settings.shootdown == Shootdown::Whole {
            scopes.push(Scope::Whole);
        } else {
            // Entry by entry or by range, the same entries go.
            scopes.extend(runs.iter().map(|(first, count)| Scope::Pages {
                first: tree + u64::from(*first),
                count: *count,
            }));
        }
        for scope in scopes {
            if let Some(shared) = &mut self.state.shared {
                shared.shoot_down(scope);
            }
            self.emit(now, Output::ShootDown(scope));
        }
    }

    fn record(&mut self, migration: &Migration, start: u64, end: u64, direction: Direction) {
        if self.state.migration_log.len() >= MOST_RECORDS {
            return;
        }
        for (first, pages) in migration.pages.runs() {
            self.state.migration_log.push(MigrationRecord {
                start,
                end,
                page: migration.tree + u64::from(first),
                pages,
                direction,
                cause: migration.cause,
            });
        }
    }
}
