//! What the program and the host ask of managed memory of several GPUs: prefetches, accesses of the host, advice.
//!
//! Each is given to the GPUs that have pages of it, and is complete when all of them say so.

use super::Node;
use crate::machine::Machine;
use lockstep_protocol::pages::PAGE;
use lockstep_runtime::Device;
use lockstep_runtime::device::Advice;
use lockstep_units::Time;
use std::collections::BTreeSet;

/// A block, the least that the host finds memory for at a time.
const BLOCK: u64 = 64 << 10;

impl Node {
    /// Moves pages to a GPU or to the host.
    pub(super) fn page_ahead(
        &mut self,
        ticket: u64,
        (address, bytes): (u64, u64),
        to: Option<u32>,
        at: Time,
    ) {
        let workers = match to {
            Some(gpu) => vec![gpu],
            None => self.holders_or_first(address, bytes),
        };
        self.give_part(ticket, &workers, at, |machine| {
            machine.managed_prefetch(ticket, address, bytes, to, at);
        });
    }

    /// The host touches a page.
    pub(super) fn page_back(
        &mut self,
        ticket: u64,
        (address, bytes): (u64, u64),
        write: bool,
        at: Time,
    ) {
        let directory = self.paging.as_ref().and_then(|one| one.directory(address));
        let Some(directory) = directory else {
            return self.give_part(ticket, &[], at, |_| {});
        };
        let untouched = bytes <= PAGE && directory.is_untouched(address);
        let has_copy = bytes <= PAGE && directory.host_has(address);
        let mut workers = directory.holders(address, bytes);
        if untouched {
            workers = self.holders_or_first(address, bytes);
            let block = address - address % BLOCK;
            self.populate_on_others(block, BLOCK, workers.first().copied());
        } else if has_copy && !write {
            workers.clear();
        }
        self.give_part(ticket, &workers, at, |machine| {
            // One that reads moves it too: the host has no copy.
            machine.managed_host_access(ticket, address, bytes, write || !has_copy, at);
        });
    }

    /// The GPUs that have pages of a range, or the first of the node if none does.
    fn holders_or_first(&self, address: u64, bytes: u64) -> Vec<u32> {
        let Some(paging) = &self.paging else {
            return Vec::new();
        };
        let directory = paging.directory(address);
        let holders = directory.map_or_else(Vec::new, |one| one.holders(address, bytes));
        let home = self.home(address) as u32;
        match holders.is_empty() {
            true => vec![home],
            false => holders,
        }
    }

    /// Gives a request to GPUs that were built; it is complete when all are.
    fn give_part(
        &mut self,
        ticket: u64,
        workers: &[u32],
        at: Time,
        mut give: impl FnMut(&mut Machine),
    ) {
        let mut left = BTreeSet::new();
        for gpu in workers {
            if self.machines.get(*gpu as usize).is_some() {
                left.insert(*gpu);
                give(&mut self.machines[*gpu as usize]);
            }
        }
        if let Some(paging) = &mut self.paging {
            paging.parts.insert(ticket, (left, at));
        }
    }

    /// Brings everything back that was written.
    pub(super) fn page_all_back(&mut self, ticket: u64, at: Time) {
        let all: Vec<u32> = self.machines.numbered_mut().map(|(gpu, _)| gpu).collect();
        self.give_part(ticket, &all, at, |machine| {
            machine.managed_flush(ticket, at);
        });
    }

    /// When a request was complete on all GPUs that work on it.
    pub(super) fn paged(&mut self, ticket: u64) -> Option<Time> {
        let (mut left, mut at) = self.paging.as_mut()?.parts.remove(&ticket)?;
        left.retain(|gpu| {
            let done = self.machines[*gpu as usize].managed_done(ticket);
            at = at.max(done.unwrap_or(at));
            done.is_none()
        });
        if left.is_empty() {
            return Some(at);
        }
        if let Some(paging) = &mut self.paging {
            paging.parts.insert(ticket, (left, at));
        }
        None
    }

    /// The host has memory of its own for a range, as all GPUs are to know but one that finds out by
    /// itself.
    pub(super) fn populate_on_others(&mut self, address: u64, bytes: u64, but: Option<u32>) {
        let Some(paging) = &mut self.paging else {
            return;
        };
        let Some(node) = paging.node(address) else {
            return;
        };
        paging.directories[node].populate(address, bytes);
        for (gpu, machine) in self.machines_on(node) {
            if but != Some(gpu) {
                machine.managed_populated(address, bytes);
            }
        }
    }

    /// Takes advice.
    pub(super) fn advise_pages(&mut self, address: u64, bytes: u64, advice: Advice) {
        let Some(paging) = &mut self.paging else {
            return;
        };
        let Some(node) = paging.node(address) else {
            return;
        };
        paging.advice.push((address, bytes, advice));
        if let Advice::ReadMostly(yes) = advice {
            paging.directories[node].set_read_mostly(address, bytes, yes);
        }
        for (_, machine) in self.machines_on(node) {
            machine.managed_advise(address, bytes, advice);
        }
    }
}
