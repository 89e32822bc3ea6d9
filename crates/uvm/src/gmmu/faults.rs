//! Pages that are not there.

use lockstep_units::Bytes;

use super::{Event, FarFault, Gmmu, Output, Pending, Sharer};
use crate::geometry::BLOCK_PAGES;
use crate::zero_copy::Occupancy;

/// Bytes of a sector.
const SECTOR: u64 = 32;

impl Gmmu {
    /// Looks at the page-table entry that was found.
    pub(super) fn check(&mut self, pending: Pending, now: u64) {
        let Some((tree, index)) = self.state.space.find(pending.page) else {
            // Not managed: always there.
            self.translated(pending, now);
            return;
        };
        if tree.device.contains(index) {
            if tree.staged.contains(index) {
                let first = tree.first;
                self.cancel_eviction(first, index);
            }
            if !pending.write || !self.surrender(pending.page, now) {
                self.translated(pending, now);
                return;
            }
        }
        if let Some(until) = self.napping(pending.page, now) {
            let Pending { sm, page, .. } = pending;
            self.emit(now, Output::Nack { sm, page });
            self.at(until, Event::Found(pending));
            return;
        }
        match self.used_elsewhere(pending) {
            Some(Some(_)) => return self.remote_neighbour(pending, now),
            Some(None) => return self.remote(pending, now),
            None => {}
        }
        if !self.is_on_neighbour(pending.page) && self.is_used_remotely(pending, now) {
            self.remote(pending, now);
            return;
        }
        self.fault(pending, now);
    }

    /// Until when the device has to wait for a page that moved to and fro.
    fn napping(&mut self, page: u64, now: u64) -> Option<u64> {
        let until = self.state.napping.get(&page).copied()?;
        if now < until {
            return Some(until);
        }
        self.state.napping.remove(&page);
        None
    }

    /// Whether the page is used where it is.
    fn is_used_remotely(&mut self, pending: Pending, now: u64) -> bool {
        let page = pending.page;
        if self
            .state
            .held_on_host
            .get(&page)
            .is_some_and(|until| now < *until)
        {
            return true;
        }
        self.state.held_on_host.remove(&page);
        let occupancy = self.occupancy();
        let oversubscribed = self.state.oversubscribed;
        let Some((tree, index)) = self.state.space.find(page) else {
            return false;
        };
        if tree.remote.contains(index) {
            return true;
        }
        if tree.incoming.contains(index) || tree.leaving.contains(index) {
            return false;
        }
        let policy = self.settings.zero_copy;
        let threshold = policy.threshold(oversubscribed, occupancy, tree.round_trips);
        if threshold == 0 {
            return false;
        }
        let counter = &mut tree.counters[(index / BLOCK_PAGES) as usize];
        if pending.write || *counter >= threshold {
            let counted = *counter > 0 && !pending.write;
            *counter = 0;
            self.state.stats.counter_migrations.add(u64::from(counted));
            return false;
        }
        *counter = counter.saturating_add(1);
        true
    }

    fn occupancy(&self) -> Occupancy {
        let frames = self.frames();
        let kept = frames * u64::from(self.settings.config.evict.free_buffer) / 100;
        Occupancy {
            taken: kept + self.state.used + self.queued(),
            all: frames + self.leaving(),
        }
    }

    /// Makes an access over the link.
    fn remote(&mut self, pending: Pending, now: u64) {
        let bytes = u64::from(pending.sectors.max(1)) * SECTOR;
        let stats = &mut self.state.stats;
        stats.zero_copy.add(bytes);
        if pending.write {
            stats.remote_writes.increment();
        } else {
            stats.remote_reads.increment();
        }
        let settings = &self.settings;
        // What the link moves for a byte when it has much to move, and a header for each packet.
        let mebibyte = settings.link.time(Bytes(1 << 20), !pending.write).0
            - settings.link.time(Bytes(0), !pending.write).0;
        let moved = bytes + 28 * bytes.div_ceil(256);
        let carried = lockstep_units::Duration(mebibyte / (1 << 20) * moved);
        let channel = if pending.write {
            &self.state.to_host
        } else {
            &self.state.to_device
        };
        let begin = now.max(channel.free_at).max(self.state.remote_free_at);
        let free = begin + settings.cycles(carried);
        let done = free + settings.cycles(settings.config.link.remote_latency);
        self.state.remote_free_at = free;
        let Pending { sm, page, .. } = pending;
        self.at(done, Event::RemoteDone { sm, page });
    }

    fn fault(&mut self, pending: Pending, now: u64) {
        let Pending {
            sm,
            page,
            write,
            warp,
            since: asked,
            ..
        } = pending;
        let sharer = Sharer { sm, warp, asked };
        let batched = self.settings.is_batched();
        let most = self.settings.config.fault.mshrs as usize;
        let state = &mut *self.state;
        if let Some(known) = state.faults.get_mut(&page) {
            if known.prefetch {
                state.stats.fault_pending.increment();
            } else {
                state.stats.fault_merged.increment();
            }
            known.write |= write;
            if !known.sharers.iter().any(|other| other.sm == sm) {
                known.sharers.push(sharer);
            }
        } else if most > 0 && state.faults.len() >= most {
            self.state.waiting_for_mshr.push_back(pending);
            return;
        } else {
            state.faults.insert(
                page,
                FarFault {
                    detected: now,
                    sharers: vec![sharer],
                    prefetch: false,
                    write,
                },
            );
            if !batched {
                self.count_fault(page, write);
                if self.state.new_faults.is_empty() {
                    self.at(now, Event::Plan);
                }
                self.state.new_faults.push(page);
            }
        }
        self.emit(now, Output::Nack { sm, page });
        if batched {
            self.buffer(pending, now);
        }
    }

    /// More accesses of an SM wait for a page that faulted: they have entries of their own.
    pub(super) fn duplicate_fault(&mut self, pending: Pending, now: u64) {
        if !self.settings.is_batched() {
            return;
        }
        let coming = match self.state.space.find(pending.page) {
            Some((tree, index)) => tree.incoming.contains(index),
            None => true,
        };
        if let Some(known) = self.state.faults.get_mut(&pending.page)
            && !coming
        {
            known.write |= pending.write;
            self.state.stats.fault_merged.increment();
            self.buffer(pending, now);
        }
    }

    /// Lets faults in that found no MSHR, as far as there are some now.
    pub(super) fn admit_waiting_faults(&mut self, now: u64) {
        let most = self.settings.config.fault.mshrs as usize;
        while self.state.faults.len() < most
            && let Some(pending) = self.state.waiting_for_mshr.pop_front()
        {
            self.check(pending, now);
        }
    }

    pub(super) fn count_fault(&mut self, page: u64, write: bool) {
        let state = &mut *self.state;
        state.stats.far_faults.increment();
        state.stats.write_faults.add(u64::from(write));
        if let Some((tree, index)) = state.space.find(page) {
            state
                .stats
                .refaults
                .add(u64::from(tree.evicted.contains(index)));
        }
    }

    /// Puts a fault into the buffer that the host runtime reads, once for each access of the
    /// instruction: the hardware does not put them together. What an SM may say between two replays is
    /// limited; who waits without having said so asks again with the others.
    fn buffer(&mut self, pending: Pending, now: u64) {
        let config = &self.settings.config.fault;
        if !self.state.fetch_scheduled && self.state.batch.is_none() {
            self.state.fetch_scheduled = true;
            self.state.wake = self.wake_cost(now);
            // What faults while the host wakes up is in the buffer when it looks.
            let mut at = now + self.state.wake + self.settings.cycles(config.pickup);
            if self.state.wake == 0
                && let Some(ended) = self.state.batch_ended
            {
                at = at.max(ended + self.settings.cycles(config.poll_interval));
            }
            self.at(at, Event::FetchFaults);
        }
        let config = &self.settings.config.fault;
        let mut entries = 1;
        if config.per_sm > 0
            && let Some(said) = self.state.entries_by_sm.get_mut(pending.sm as usize)
        {
            // A host that has to be woken leaves time for more.
            let most = match self.state.wake {
                0 => config.per_sm,
                _ => config.per_sm_asleep.max(config.per_sm),
            };
            entries = pending.accesses.max(1).min(most - (*said).min(most));
            *said += entries;
        }
        if entries == 0 {
            self.state.stats.held_back.increment();
        }
        let interval = self.settings.cycles(config.entry_interval);
        for _ in 0..entries {
            if self.state.buffer.len() >= config.buffer as usize {
                self.state.stats.dropped.increment();
                continue;
            }
            let written = now.max(self.state.buffer_free_at);
            self.state.buffer_free_at = written + interval;
            self.state.buffer.push_back(Pending {
                since: written,
                ..pending
            });
        }
    }

    /// What the host takes to wake up when the first fault of a batch comes.
    fn wake_cost(&self, now: u64) -> u64 {
        let settings = &self.settings;
        let config = &settings.config.fault;
        let idle = self.state.batch_ended.map(|ended| now - ended.min(now));
        let longer = |than| idle.is_none_or(|idle| idle > settings.cycles(than));
        let mut cost = 0;
        if longer(config.poll_duration) {
            cost += settings.cycles(config.wake_cost);
        }
        if longer(config.cold_after) {
            cost += settings.cycles(config.cold_cost);
        }
        cost
    }

    /// Tells an SM that waits for a page to ask again, one page a cycle.
    pub(super) fn replay(&mut self, page: u64, sm: u32, now: u64) {
        let at = match self.state.replay_free_at.get_mut(sm as usize) {
            Some(free) => {
                let at = now.max(*free);
                *free = at + 1;
                at
            }
            None => now,
        };
        self.emit(at, Output::Replay { sm, page });
    }
}
