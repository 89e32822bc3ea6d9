//! Managed memory of several GPUs: a directory for each node, which GPUs talk to when they meet.
//!
//! What a GPU wants, gives or sends home between two meetings is told to the directory at the next,
//! in the order of the numbers of GPUs; what that says takes effect on a GPU when it goes on. So
//! where a page is depends on simulated time alone. Pages that go from one GPU to another are put on
//! the links beside the copies of the program, which the timeline of the runtime keeps.
//!
//! Start reading at [`Node::meet`]; what the program and the host ask for is in `managed_requests.rs`. A node of
//! one GPU has nothing of this.

use super::Node;
use crate::description::Description;
use crate::machine::Machine;
use lockstep_gpu::Directory;
use lockstep_runtime::Device;
use lockstep_runtime::device::{Advice, Carry};
use lockstep_units::Time;
use std::collections::{BTreeMap, BTreeSet};

/// A request that GPUs work on: those that have not ended, and when the last of the others did.
pub type Parts = (BTreeSet<u32>, Time);

/// Managed memory of all nodes.
pub struct Paging {
    /// One for each node.
    pub directories: Vec<Directory>,
    /// Bytes and node of each allocation.
    allocations: BTreeMap<u64, (u64, u32)>,
    /// What was advised, for GPUs that are built later.
    pub advice: Vec<(u64, u64, Advice)>,
    pub parts: BTreeMap<u64, Parts>,
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
    pub fn directory(&self, address: u64) -> Option<&Directory> {
        let (base, (bytes, node)) = self.allocations.range(..=address).next_back()?;
        let inside = address - base < *bytes;
        self.directories.get(*node as usize).filter(|_| inside)
    }

    /// The node of an address.
    pub fn node(&self, address: u64) -> Option<usize> {
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
    pub(super) fn machines_on(&mut self, node: usize) -> impl Iterator<Item = (u32, &mut Machine)> {
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
}
