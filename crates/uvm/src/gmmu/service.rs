//! The host runtime: what it plans for faults, and when it has served them.
//!
//! `additive` and `serial` plan when a fault is detected, as the seed's GMMU does, so that pages
//! on their way catch later faults. `batch` and `calibrated` plan when the host looks at the fault
//! buffer, as the real driver does: what faults meanwhile has to fault again.

use std::collections::{BTreeMap, BTreeSet};

use super::{Batch, Event, FarFault, Gmmu};
use crate::channel::{Load, NO_TICKET};
use crate::log::Cause;
use crate::page_set::PageSet;
use crate::prefetch::{self, Pages};
use crate::settings::Service;
use crate::split::split;
use crate::{LARGE_PAGES, PAGE};

impl Gmmu {
    /// Plans the faults of one cycle.
    pub(super) fn plan_fresh(&mut self, now: u64) {
        let fresh = std::mem::take(&mut self.state.fresh);
        let loads = self.plan(&fresh, now);
        let latency = self.settings.cycles(self.settings.config.fault.latency);
        if self.settings.service == Service::Additive {
            self.state.stats.additive.add(latency * fresh.len() as u64);
            for load in loads {
                self.enqueue(load);
            }
            return;
        }
        for (page, loads) in self.by_fault(&fresh, loads) {
            let begin = now.max(self.state.server_free);
            let end = begin + latency;
            self.state.server_free = end;
            self.state.stats.service_wait.add(begin - now);
            let job = self.state.next_job;
            self.state.next_job += 1;
            self.state.jobs.insert(job, loads);
            let _ = page;
            self.at(end, Event::Served(job));
        }
    }

    /// Which transfers wait for the service of which fault: those with the page itself, and those
    /// that follow in the same tree.
    fn by_fault(&mut self, fresh: &[u64], loads: Vec<Load>) -> Vec<(u64, Vec<Load>)> {
        let mut jobs: Vec<(u64, Vec<Load>)> =
            fresh.iter().map(|page| (*page, Vec::new())).collect();
        let mut current = 0;
        let mut tree = u64::MAX;
        for load in loads {
            let own = fresh.iter().position(|page| {
                page.checked_sub(load.tree).is_some_and(|index| {
                    index < u64::from(LARGE_PAGES) && load.pages.contains(index as u32)
                })
            });
            let beside = || {
                fresh
                    .iter()
                    .position(|page| page.wrapping_sub(load.tree) < u64::from(LARGE_PAGES))
            };
            if let Some(own) = own {
                current = own;
            } else if load.tree != tree {
                current = beside().unwrap_or(jobs.len() - 1);
            }
            tree = load.tree;
            jobs[current].1.push(load);
        }
        jobs
    }

    pub(super) fn served(&mut self, job: u64, _: u64) {
        for load in self.state.jobs.remove(&job).unwrap_or_default() {
            self.enqueue(load);
        }
    }

    /// Lets a transfer to the device wait for its turn.
    pub(super) fn enqueue(&mut self, load: Load) {
        let channel = &mut self.state.to_device;
        channel.push(load);
        self.state.stats.queue.see(channel.len() as u64);
    }

    /// Decides what to bring for some faults. Everything that is brought counts as incoming from
    /// now on.
    fn plan(&mut self, pages: &[u64], now: u64) -> Vec<Load> {
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
        let mut loads = Vec::new();
        for (first, mut set) in planned {
            let faulted = faults.get(&first).copied().unwrap_or_default();
            for index in (set & self.staged(first)).iter() {
                self.cancel_eviction(first, index);
            }
            let Some(tree) = self.state.space.tree_mut(first) else {
                continue;
            };
            set = (set - (tree.remote - faulted)) - tree.device - tree.incoming;
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
            for transfer in split(set, faulted, policy.split) {
                loads.push(Load {
                    tree: first,
                    pages: PageSet::range(transfer.first, transfer.pages),
                    cause: if transfer.demand {
                        Cause::Fault
                    } else {
                        Cause::Prefetch
                    },
                    planned: now,
                    ticket: NO_TICKET,
                });
            }
        }
        loads
    }

    fn staged(&self, first: u64) -> PageSet {
        let tree = self.state.space.tree(first);
        tree.map_or(PageSet::EMPTY, |tree| tree.staged)
    }

    /// The host looks at the fault buffer.
    pub(super) fn pick_up(&mut self, now: u64) {
        self.state.picking_up = false;
        let most = self.settings.config.fault.batch as usize;
        let mut pages = BTreeSet::new();
        let mut writes = BTreeSet::new();
        let state = &mut *self.state;
        let taken = state.buffer.len().min(most);
        state.stats.batches.increment();
        state.stats.batch_faults.add(taken as u64);
        for pending in state.buffer.drain(..taken) {
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
        let new_blocks = self.new_blocks(&faults);
        let loads = self.plan(&faults, now);
        let cost = self.batch_cost(&faults, &loads, new_blocks);
        self.state.batch = Some(Batch { loads, left: 0 });
        self.at(now + cost, Event::BatchServed);
    }

    /// Trees among those of some pages that nothing ever came to.
    fn new_blocks(&mut self, faults: &[u64]) -> u64 {
        let mut trees = BTreeSet::new();
        for page in faults {
            if let Some((tree, _)) = self.state.space.find(*page)
                && tree.arrived == 0
            {
                trees.insert(tree.first);
            }
        }
        trees.len() as u64
    }

    fn batch_cost(&mut self, faults: &[u64], loads: &[Load], new_blocks: u64) -> u64 {
        let fault = &self.settings.config.fault;
        if self.settings.service == Service::Batch {
            return self.settings.cycles(fault.latency);
        }
        let pages: u64 = loads.iter().map(|load| u64::from(load.pages.count())).sum();
        let mut blocks: BTreeMap<u64, PageSet> = BTreeMap::new();
        for load in loads {
            *blocks.entry(load.tree).or_default() |= load.pages;
        }
        let runs: usize = blocks.values().map(|pages| pages.runs().len()).sum();
        let cost = fault.batch_cost
            + fault.page_cost * faults.len() as u64
            + fault.kib_cost * (pages * PAGE / 1024)
            + fault.run_cost * runs as u64
            + fault.block_cost * blocks.len() as u64
            + fault.new_block_cost * new_blocks;
        self.settings.cycles(cost) + self.state.wake
    }

    /// The host has done its part of a batch: transfers go, and when the last is complete,
    /// everybody asks again.
    pub(super) fn batch_served(&mut self, now: u64) {
        let Some(batch) = &mut self.state.batch else {
            return;
        };
        let loads = std::mem::take(&mut batch.loads);
        batch.left = loads.len() as u32;
        if loads.is_empty() {
            self.end_batch(now);
        }
        for load in loads {
            self.enqueue(load);
        }
    }

    /// A transfer of a batch is complete.
    pub(super) fn batch_arrived(&mut self, now: u64) {
        let Some(batch) = &mut self.state.batch else {
            return;
        };
        batch.left = batch.left.saturating_sub(1);
        if batch.left == 0 && batch.loads.is_empty() {
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
        let all = std::mem::take(&mut self.state.faults);
        for (page, fault) in all {
            let coming = match self.state.space.find(page) {
                Some((tree, index)) => tree.incoming.contains(index),
                None => false,
            };
            if coming {
                // On its way because the program asked for it.
                self.state.faults.insert(page, fault);
            } else {
                self.replay(page, &fault.sharers, now);
            }
        }
    }
}
