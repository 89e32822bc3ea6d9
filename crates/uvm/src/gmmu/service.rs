//! The host runtime: what it plans for faults, and when it has served them.
//!
//! `additive` and `serial` plan when a fault is detected, as the seed's GMMU does, so that pages
//! on their way catch later faults. `batch` and `calibrated` plan when the host looks at the fault
//! buffer, as the real driver does: what faults meanwhile has to fault again.

use std::collections::{BTreeMap, BTreeSet};

use super::{Batch, Event, FarFault, Gmmu, Pending, Sharer};
use crate::channel::{Migration, NO_CLAIM, NO_TICKET};
use crate::log::Cause;
use crate::page_set::PageSet;
use crate::prefetch::{self, Pages};
use crate::settings::Service;
use crate::split::split;
use crate::{LARGE_PAGES, PAGE};

impl Gmmu {
    /// Plans the faults of one cycle.
    pub(super) fn plan_new_faults(&mut self, now: u64) {
        let fresh = std::mem::take(&mut self.state.new_faults);
        let migrations = self.plan(&fresh, now);
        let latency = self.settings.cycles(self.settings.config.fault.latency);
        if self.settings.service == Service::Additive {
            self.state.stats.additive.add(latency * fresh.len() as u64);
            for migration in migrations {
                self.enqueue(migration);
            }
            return;
        }
        for migrations in self.by_fault(&fresh, migrations) {
            let begin = now.max(self.state.service_free_at);
            let end = begin + latency;
            self.state.service_free_at = end;
            self.state.stats.service_wait.add(begin - now);
            self.serve_later(end, migrations);
        }
    }

    /// Which transfers wait for the service of which fault: those with the page itself, and those
    /// that follow in the same tree.
    fn by_fault(&mut self, fresh: &[u64], migrations: Vec<Migration>) -> Vec<Vec<Migration>> {
        let mut jobs = vec![Vec::new(); fresh.len()];
        let mut current = 0;
        let mut tree = u64::MAX;
        for migration in migrations {
            let own = fresh.iter().position(|page| {
                page.checked_sub(migration.tree).is_some_and(|index| {
                    index < u64::from(LARGE_PAGES) && migration.pages.contains(index as u32)
                })
            });
            let beside = || {
                fresh
                    .iter()
                    .position(|page| page.wrapping_sub(migration.tree) < u64::from(LARGE_PAGES))
            };
            if let Some(own) = own {
                current = own;
            } else if migration.tree != tree {
                current = beside().unwrap_or(jobs.len() - 1);
            }
            tree = migration.tree;
            jobs[current].push(migration);
        }
        jobs
    }

    pub(super) fn served(&mut self, job: u64, _: u64) {
        for migration in self.state.jobs.remove(&job).unwrap_or_default() {
            self.enqueue(migration);
        }
    }

    /// Lets a transfer to the device wait for its turn.
    pub(super) fn enqueue(&mut self, migration: Migration) {
        let state = &mut *self.state;
        let channel = match &mut state.neighbours {
            // It has frames before it is claimed, and a claim before it moves.
            Some(neighbours) => &mut neighbours.waiting,
            None => &mut state.to_device,
        };
        channel.push(migration);
        state.stats.queue.see(channel.len() as u64);
    }

    /// Decides what to bring for some faults. Everything that is brought counts as incoming from
    /// now on.
    fn plan(&mut self, pages: &[u64], now: u64) -> Vec<Migration> {
        let mut faults = Pages::new();
        for page in pages {
            if let Some((tree, index)) = self.state.space.find(*page) {
                faults.entry(tree.first).or_default().insert(index);
            }
        }
        let wanted: u32 = faults.values().map(PageSet::count).sum();
        if self.is_short(u64::from(wanted), 0) {
            self.state.oversubscribed = true;
        }
        let policy = if self.state.oversubscribed {
            self.settings.oversubscribed
        } else {
            self.settings.prefetcher
        };
        let event = prefetch::Event {
            faults: &faults,
            ahead: self.settings.config.prefetch.ahead,
        };
        let state = &mut *self.state;
        let planned = (policy.plan)(&mut state.space, event, &mut state.memory);
        let mut migrations = Vec::new();
        for (first, mut set) in planned {
            let faulted = faults.get(&first).copied().unwrap_or_default();
            for index in (set & self.staged(first)).iter() {
                self.cancel_eviction(first, index);
            }
            let far = self.preferred_elsewhere(first);
            let Some(tree) = self.state.space.tree_mut(first) else {
                continue;
            };
            let kept = tree.remote | far;
            set = (set - (kept - faulted)) - tree.device - tree.incoming;
            let fresh = set & tree.untouched;
            tree.incoming |= set;
            tree.arrived = tree.arrived.max(now);
            for index in (set - faulted).iter() {
                let entry = self.state.faults.entry(first + u64::from(index));
                entry.or_insert_with(|| FarFault {
                    detected: now,
                    sharers: Vec::new(),
                    prefetch: true,
                    write: false,
                });
            }
            for (part, fill) in [(set - fresh, false), (fresh, true)] {
                for transfer in split(part, faulted, policy.split) {
                    migrations.push(Migration {
                        tree: first,
                        pages: PageSet::range(transfer.first, transfer.pages),
                        cause: if transfer.demand {
                            Cause::Fault
                        } else {
                            Cause::Prefetch
                        },
                        planned: now,
                        ticket: NO_TICKET,
                        claim: NO_CLAIM,
                        fill,
                    });
                }
            }
        }
        migrations
    }

    fn staged(&self, first: u64) -> PageSet {
        let tree = self.state.space.tree(first);
        tree.map_or(PageSet::EMPTY, |tree| tree.staged)
    }

    /// The host looks at the fault buffer.
    pub(super) fn fetch_faults(&mut self, now: u64) {
        self.state.fetch_scheduled = false;
        let most = self.settings.config.fault.batch as usize;
        let mut pages = BTreeSet::new();
        let mut writes = BTreeSet::new();
        let state = &mut *self.state;
        let all = state.buffer.len();
        // What is written later is thrown away after the batch, like what it has no room for.
        let written = state.buffer.drain(..).filter(|entry| entry.since <= now);
        let mut entries = by_sm(written);
        let flushed = all - entries.len().min(most);
        state.stats.batch_flushed.add(flushed as u64);
        entries.truncate(most);
        let taken = entries.len();
        state.stats.batches.increment();
        state.stats.batch_faults.add(taken as u64);
        for pending in entries {
            state.stats.service_wait.add(now - pending.since.min(now));
            if pending.write {
                writes.insert(pending.page);
            }
            if !pages.insert(pending.page) {
                state.stats.batch_duplicates.increment();
            }
        }
        // What came meanwhile needs no service.
        let faults: Vec<u64> = pages
            .into_iter()
            .filter(|page| match state.space.find(*page) {
                Some((tree, index)) => {
                    !tree.device.contains(index) && !tree.incoming.contains(index)
                }
                None => false,
            })
            .collect();
        state.stats.batch_size.add(faults.len() as u64);
        for page in &faults {
            self.count_fault(*page, writes.contains(page));
        }
        let new_trees = self.new_trees(&faults);
        let migrations = self.plan(&faults, now);
        let left = migrations.len() as u32;
        let end = self.serve_batch(now, taken as u64, &faults, migrations, &new_trees);
        self.state.batch = Some(Batch {
            is_served: false,
            left,
        });
        self.at(end, Event::BatchServed);
    }

    /// Trees among those of some pages that nothing ever came to.
    fn new_trees(&mut self, faults: &[u64]) -> BTreeSet<u64> {
        let mut trees = BTreeSet::new();
        for page in faults {
            if let Some((tree, _)) = self.state.space.find(*page)
                && tree.arrived == 0
            {
                trees.insert(tree.first);
            }
        }
        trees
    }

    /// Lets the host do its part of a batch and says when it ends. It works on one tree after the
    /// other; what it is done with moves while it works on the next.
    fn serve_batch(
        &mut self,
        now: u64,
        entries: u64,
        faults: &[u64],
        migrations: Vec<Migration>,
        new_trees: &BTreeSet<u64>,
    ) -> u64 {
        let settings = self.settings.clone();
        let fault = &settings.config.fault;
        if settings.service == Service::Batch {
            let end = now + settings.cycles(fault.latency);
            self.serve_later(end, migrations);
            return end;
        }
        let mut trees: BTreeMap<u64, (u64, Vec<Migration>)> = BTreeMap::new();
        for page in faults {
            if let Some((tree, _)) = self.state.space.find(*page) {
                trees.entry(tree.first).or_default().0 += 1;
            }
        }
        for migration in migrations {
            trees.entry(migration.tree).or_default().1.push(migration);
        }
        let start = fault.batch_cost + fault.entry_cost * entries;
        let mut at = now + settings.cycles(start);
        for (first, (faults, migrations)) in trees {
            let (mut moved, mut filled) = (PageSet::EMPTY, PageSet::EMPTY);
            for migration in &migrations {
                *(if migration.fill {
                    &mut filled
                } else {
                    &mut moved
                }) |= migration.pages;
            }
            let kib = |pages: PageSet| u64::from(pages.count()) * PAGE / 1024;
            let block = if moved.is_empty() && !filled.is_empty() {
                fault.fill_block_cost
            } else {
                fault.block_cost
            };
            let runs = moved.runs().len() as u64;
            self.state.stats.batch_regions.increment();
            self.state.stats.batch_runs.add(runs);
            let mut cost = block
                + fault.page_cost * faults
                + fault.kib_cost * kib(moved)
                + fault.run_cost * runs
                + fault.fill_kib_cost * kib(filled);
            if new_trees.contains(&first) {
                cost += fault.new_block_cost;
            }
            at += settings.cycles(cost);
            self.serve_later(at, migrations);
        }
        at
    }

    fn serve_later(&mut self, at: u64, migrations: Vec<Migration>) {
        let job = self.state.next_job;
        self.state.next_job += 1;
        self.state.jobs.insert(job, migrations);
        self.at(at, Event::Served(job));
    }

    /// The host has done its part of a batch: when the last transfer is complete, everybody asks
    /// again.
    pub(super) fn batch_served(&mut self, now: u64) {
        let Some(batch) = &mut self.state.batch else {
            return;
        };
        batch.is_served = true;
        if batch.left == 0 {
            self.end_batch(now);
        }
    }

    /// A transfer of a batch is complete.
    pub(super) fn batch_arrived(&mut self, now: u64) {
        let Some(batch) = &mut self.state.batch else {
            return;
        };
        batch.left = batch.left.saturating_sub(1);
        if batch.left == 0 && batch.is_served {
            self.end_batch(now);
        }
    }

    /// What is left in the buffer is thrown away, and everybody asks again.
    fn end_batch(&mut self, now: u64) {
        self.state.batch = None;
        self.state.batch_ended = Some(now);
        let flushed = self.state.buffer.len() as u64;
        self.state.stats.batch_flushed.add(flushed);
        self.state.buffer.clear();
        self.state.buffer_free_at = now;
        self.state.entries_by_sm.fill(0);
        let all = std::mem::take(&mut self.state.faults);
        let mut asking: BTreeMap<u32, Vec<(Sharer, u64)>> = BTreeMap::new();
        for (page, fault) in all {
            let coming = match self.state.space.find(page) {
                Some((tree, index)) => tree.incoming.contains(index),
                None => false,
            };
            if coming {
                // On its way because the program asked for it.
                self.state.faults.insert(page, fault);
                continue;
            }
            for sharer in fault.sharers {
                asking.entry(sharer.sm).or_default().push((sharer, page));
            }
        }
        for (sm, mut pages) in asking {
            // Who asked first asks again first. Where an instruction waits for several pages, with
            // which of them an SM begins again cannot be reported: real ones begin anywhere.
            pages.sort_by_key(|(sharer, _)| sharer.asked);
            if pages.windows(2).any(|two| two[0].0.warp == two[1].0.warp) {
                let first = self.state.memory.random.below(pages.len() as u64);
                pages.rotate_left(first as usize);
            }
            for (_, page) in pages {
                self.replay(page, sm, now);
            }
        }
    }
}

/// The entries of the fault buffer in the order in which they come: what one SM has to say comes
/// together, and the SM that said something first comes first.
fn by_sm(entries: impl Iterator<Item = Pending>) -> Vec<Pending> {
    let mut order = Vec::new();
    let mut said: BTreeMap<u32, Vec<Pending>> = BTreeMap::new();
    for pending in entries {
        let own = said.entry(pending.sm).or_default();
        if own.is_empty() {
            order.push(pending.sm);
        }
        own.push(pending);
    }
    order
        .into_iter()
        .flat_map(|sm| said.remove(&sm).unwrap_or_default())
        .collect()
}
