//! Managed memory of several GPUs: a directory for each node, which GPUs talk to when they meet.
//!
//! What a GPU wants, gives or sends home between two meetings is told to the directory at the next,
//! in the order of the numbers of GPUs; what that says takes effect on a GPU when it goes on. So
//! where a page is depends on simulated time alone. Pages that go from one GPU to another are put on
//! the links beside the copies of the program, which the timeline of the runtime keeps.
//!
//! Start reading at [`Node::meet`]. A node of one GPU has nothing of this.

use super::Node;
use crate::description::Description;
use crate::machine::Machine;
use lockstep_gpu::Directory;
use lockstep_protocol::pages::PAGE;
use lockstep_runtime::Device;
use lockstep_runtime::device::{Advice, Carry};
use lockstep_units::Time;
use std::collections::{BTreeMap, BTreeSet};

/// A block, the least that the host finds memory for at a time.
const BLOCK: u64 = 64 << 10;

/// A request that GPUs work on: those that have not ended, and when the last of the others did.
type Parts = (BTreeSet<u32>, Time);

/// Managed memory of all nodes.
pub struct Paging {
    /// One for each node.
    directories: Vec<Directory>,
    /// Bytes and node of each allocation.
    allocations: BTreeMap<u64, (u64, u32)>,
    /// What was advised, for GPUs that are built later.
    advice: Vec<(u64, u64, Advice)>,
    parts: BTreeMap<u64, Parts>,
    /// Pages that begin to go from one GPU to another.
    carries: Vec<Carry>,
}

impl Paging {
    /// That of the nodes of a run; nothing if it has one GPU, or no pages that move.
    pub fn new(description: &Description) -> Option<Self> {
        if description.all_gpus() < 2 || !description.pages_between_gpus() {
            return None;
        }
        let uvm = &description.config.uvm;
        let each = description.gpus;
        let directory = |node: u32| {
            let gpus = node * each..(node + 1) * each;
            Directory::new(gpus, uvm.first_touch == "zero-fill", uvm.packing)
        };
        Some(Self {
            directories: (0..description.nodes).map(directory).collect(),
            allocations: BTreeMap::new(),
            advice: Vec::new(),
            parts: BTreeMap::new(),
            carries: Vec::new(),
        })
    }

    /// Whether there is managed memory, so that GPUs have to meet.
    pub fn is_used(&self) -> bool {
        !self.allocations.is_empty()
    }

    /// Whether pages begin to go from one GPU to another.
    pub fn has_carries(&self) -> bool {
        !self.carries.is_empty()
    }

    /// Takes the pages that begin to go from one GPU to another.
    pub fn take_carries(&mut self) -> Vec<Carry> {
        std::mem::take(&mut self.carries)
    }

    /// The directory that knows an address.
    fn directory(&self, address: u64) -> Option<&Directory> {
        let (base, (bytes, node)) = self.allocations.range(..=address).next_back()?;
        let inside = address - base < *bytes;
        self.directories.get(*node as usize).filter(|_| inside)
    }

    /// The node of an address.
    fn node(&self, address: u64) -> Option<usize> {
        let (base, (bytes, node)) = self.allocations.range(..=address).next_back()?;
        (address - base < *bytes).then_some(*node as usize)
    }

    /// Parts of a range that the host does not have.
    pub fn away(&self, address: u64, bytes: u64) -> Vec<(u64, u64)> {
        let directory = self.directory(address);
        directory.map_or_else(Vec::new, |directory| directory.away(address, bytes))
    }
}

impl Node {
    /// GPUs stand still: the directories hear what happened, and say what follows.
    pub(super) fn meet(&mut self) {
        let Some(paging) = &mut self.paging else {
            return;
        };
        for (gpu, machine) in self.machines.numbered_mut() {
            let directory = &mut paging.directories[(gpu / self.each) as usize];
            for news in machine.managed_news() {
                directory.take(gpu, news);
            }
        }
        self.tell_gpus();
    }

    /// Tells GPUs what directories say.
    fn tell_gpus(&mut self) {
        let Some(paging) = &mut self.paging else {
            return;
        };
        let nodes = paging.directories.len() as u64;
        for (node, directory) in (0..).zip(&mut paging.directories) {
            let placed = directory.placed();
            if !placed.is_empty() {
                let near = |gpu: u32| u64::from(gpu / self.each) == node;
                for (gpu, machine) in self.machines.numbered_mut() {
                    let others = placed.iter().filter(|one| near(gpu) && one.gpu != gpu);
                    others.for_each(|one| machine.managed_placed(one));
                }
            }
            for (gpu, order) in directory.orders() {
                self.machines[gpu as usize].managed_order(order, self.reached);
            }
            for carry in directory.to_carry() {
                paging.carries.push(Carry {
                    number: carry.number * nodes + node,
                    from: carry.from,
                    to: carry.to,
                    bytes: carry.bytes,
                });
            }
        }
    }

    /// Pages have come from one GPU to another at a time.
    pub(super) fn pages_carried(&mut self, number: u64, at: Time) {
        let Some(paging) = &mut self.paging else {
            return;
        };
        let nodes = paging.directories.len() as u64;
        let directory = &mut paging.directories[(number % nodes) as usize];
        if let Some((gpu, order)) = directory.carried(number / nodes) {
            self.machines[gpu as usize].managed_order(order, at);
        }
        self.tell_gpus();
    }

    /// A GPU has given its kernels up.
    pub(super) fn paging_aborted(&mut self, gpu: u32) {
        self.meet();
        let node = self.node_of(gpu) as usize;
        if let Some(paging) = &mut self.paging {
            paging.directories[node].ask_again(gpu);
            // Its part of requests has ended, and maybe nobody asks for them any more.
            for (ticket, (left, at)) in &mut paging.parts {
                let machine = &mut self.machines[gpu as usize];
                if left.contains(&gpu)
                    && let Some(done) = machine.managed_done(*ticket)
                {
                    left.remove(&gpu);
                    *at = (*at).max(done);
                }
            }
        }
        self.tell_gpus();
    }

    /// The GPUs of a node that were built.
    fn machines_on(&mut self, node: usize) -> impl Iterator<Item = (u32, &mut Machine)> {
        let each = self.each;
        let all = self.machines.numbered_mut();
        all.filter(move |(gpu, _)| (gpu / each) as usize == node)
    }

    /// Managed memory is there, on the node of its home.
    pub(super) fn page(&mut self, address: u64, bytes: u64) {
        let node = self.node_of(self.home(address) as u32);
        if let Some(paging) = &mut self.paging {
            paging.allocations.insert(address, (bytes, node));
            paging.directories[node as usize].map(address, bytes);
        }
        for (_, machine) in self.machines_on(node as usize) {
            machine.managed_map(address, bytes);
        }
    }

    /// Managed memory is gone.
    pub(super) fn unpage(&mut self, address: u64) {
        let Some(paging) = &mut self.paging else {
            return;
        };
        let Some((bytes, node)) = paging.allocations.remove(&address) else {
            return;
        };
        let end = address + bytes;
        paging
            .advice
            .retain(|(from, ..)| !(address..end).contains(from));
        for (_, machine) in self.machines_on(node as usize) {
            machine.managed_unmap(address);
        }
        // What was under way is known before the memory is forgotten.
        self.meet();
        if let Some(paging) = &mut self.paging {
            paging.directories[node as usize].unmap(address, bytes);
        }
        self.tell_gpus();
    }

    /// Tells a GPU that was just built of the managed memory of its node.
    pub(super) fn join_paging(&mut self, gpu: u32) {
        let node = self.node_of(gpu);
        let Some(paging) = &self.paging else {
            return;
        };
        let machine = &mut self.machines[gpu as usize];
        let directory = &paging.directories[node as usize];
        for (address, (bytes, _)) in paging.allocations.iter().filter(|(_, one)| one.1 == node) {
            machine.managed_map(*address, *bytes);
            let mut at = *address;
            let end = (address + bytes, 0);
            for (away, length) in directory.away(*address, *bytes).into_iter().chain([end]) {
                if at < away {
                    machine.managed_populated(at, away - at);
                }
                at = away + length;
            }
        }
        for placed in directory.everything_placed() {
            machine.managed_placed(&placed);
        }
        for (address, bytes, advice) in &paging.advice {
            machine.managed_advise(*address, *bytes, *advice);
        }
    }

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
