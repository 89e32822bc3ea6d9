//! The GPUs of a run as one device: what the runtime sees as the hardware.
//!
//! Each GPU has an engine of its own. While several of them have kernels, they meet at multiples of a
//! simulated time, the latency of the fastest link between them: nothing that one of them does can be
//! known to another sooner. Between meetings GPUs that share no memory run at once, each on threads
//! of its own; those that do run in turn, in the order of their numbers, so that memory has one
//! order. Neither can be told from the results.
//!
//! A single GPU is asked directly, and nothing here adds to what it does.
//!
//! GPUs of several nodes share nothing between nodes, whatever those of one node do: nodes run at once.
//!
//! Start reading at `Node::advance`.

mod advance;
mod answers;
mod device;
mod hosted;
mod machines;
mod managed;
mod managed_requests;
mod memory;
mod multicast;
mod reports;
#[cfg(test)]
mod tests;

use crate::checkpoint::SharedCheckpoints;
use crate::description::Description;
use crate::host::Inside;
use crate::machine::{Backing, MachineError, worker_threads};
use hosted::Hosted;
use lockstep_gpu::Ranks;
use lockstep_gpu::memory::Aliases;
use lockstep_protocol::layout;
use lockstep_runtime::Device;
use lockstep_runtime::device::KernelResult;
use lockstep_units::{Duration, Time};
use machines::Machines;
use managed::Paging;
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

/// All GPUs of a run, on one node or on several.
pub struct Node {
    machines: Machines,
    /// GPUs of each node.
    each: u32,
    /// How far GPUs run between two meetings.
    meeting: Duration,
    /// The boundary that all of them have reached.
    reached: Time,
    /// Kernels that ended before another one failed, not yet told.
    ended: Vec<KernelResult>,
    /// Worker threads of the run.
    threads: usize,
    /// Nodes on which some memory was ever within the reach of several GPUs.
    shares: BTreeSet<u32>,
    /// GPUs whose kernels may use the memory of another: who, whose.
    peers: BTreeSet<(u32, u32)>,
    /// Memory of the nodes of a cluster.
    hosted: Hosted,
    /// Where managed pages are, if several GPUs page.
    paging: Option<Paging>,
    /// Threads of the host that are inside a call, for GPUs that are built later.
    host: Inside,
    /// Addresses that name memory elsewhere, for what passes by kernels.
    named: Aliases,
    /// Whether there ever was a multicast object.
    multicast: bool,
    /// The ranks that simulate the node together, if there are several.
    ranks: Option<Ranks>,
    /// Where the answers of a single GPU are logged and repeated, if that is asked for.
    checkpoints: Option<SharedCheckpoints>,
}

impl Node {
    /// Refuses what no node can be.
    ///
    /// # Errors
    /// There are too many GPUs or too few, no such links, or state of several is to be saved.
    pub fn check(description: &Description) -> Result<(), MachineError> {
        let (gpus, nodes) = (description.gpus, description.nodes);
        if gpus == 0 || gpus > layout::NEAR_DEVICES {
            return Err(MachineError::Gpus {
                found: gpus,
                most: layout::NEAR_DEVICES,
            });
        }
        let all = description.all_gpus();
        if all == 0 || all > layout::MAXIMUM_DEVICES {
            return Err(MachineError::Nodes {
                nodes,
                gpus,
                most: layout::MAXIMUM_DEVICES,
            });
        }
        if all > 1 && description.execution.reload_seed.is_some() {
            return Err(MachineError::Saving { found: all });
        }
        description.links()?;
        Ok(())
    }

    /// Fresh GPUs whose memory is in the file.
    ///
    /// # Errors
    /// They cannot be built.
    pub fn new(description: &Description, memory: &OwnedFd) -> Result<Self, MachineError> {
        Self::check(description)?;
        // Ranks do everything in one order, so their GPUs run in turn.
        let in_turn = description.ranks.is_some().then_some(0..description.nodes);
        Ok(Self {
            machines: Machines::new(description, Backing::of(memory)?)?,
            each: description.gpus,
            meeting: description.links()?.latency(),
            reached: Time::ZERO,
            ended: Vec::new(),
            threads: worker_threads(description) as usize,
            shares: in_turn.into_iter().flatten().collect(),
            peers: BTreeSet::new(),
            hosted: Hosted::default(),
            paging: Paging::new(description),
            host: Inside::new(),
            named: Aliases::default(),
            multicast: false,
            ranks: description.ranks.clone(),
            checkpoints: None,
        })
    }

    /// Whether there are several nodes.
    fn is_cluster(&self) -> bool {
        self.machines.count() > self.each as usize
    }

    /// The node that a GPU is on.
    fn node_of(&self, gpu: u32) -> u32 {
        gpu / self.each
    }

    /// From now on several GPUs of a node reach the same memory.
    fn begin_sharing(&mut self, node: u32) {
        if self.each > 1 {
            self.shares.insert(node);
        }
    }

    /// Builds a GPU that is not there yet, with the memory of its node.
    fn open_gpu(&mut self, gpu: u32) {
        if !self.machines.open(gpu) {
            return;
        }
        let machine = &mut self.machines[gpu as usize];
        machine.host_is_inside(&self.host);
        self.join_node(gpu);
        self.join_paging(gpu);
    }
}
