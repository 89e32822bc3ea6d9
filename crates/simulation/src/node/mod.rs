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
//! Start reading at `Node::advance`.

mod advance;
mod answers;
mod device;
mod memory;
mod reports;
#[cfg(test)]
mod tests;

use crate::checkpoint::SharedCheckpoints;
use crate::description::Description;
use crate::machine::{Machine, MachineError, worker_threads};
use lockstep_gpu::Ranks;
use lockstep_protocol::layout;
use lockstep_runtime::device::KernelResult;
use lockstep_units::{Duration, Time};
use std::collections::BTreeSet;
use std::os::fd::OwnedFd;

/// All GPUs of a run.
pub struct Node {
    machines: Vec<Machine>,
    /// How far GPUs run between two meetings.
    meeting: Duration,
    /// The boundary that all of them have reached.
    reached: Time,
    /// Kernels that ended before another one failed, not yet told.
    ended: Vec<KernelResult>,
    /// Worker threads of the run.
    threads: usize,
    /// Whether some memory was ever within the reach of several GPUs.
    shares: bool,
    /// GPUs whose kernels may use the memory of another: who, whose.
    peers: BTreeSet<(u32, u32)>,
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
        let gpus = description.gpus;
        if gpus == 0 || gpus > layout::MAXIMUM_DEVICES {
            return Err(MachineError::Gpus {
                found: gpus,
                most: layout::MAXIMUM_DEVICES,
            });
        }
        if gpus > 1 && description.execution.reload_seed.is_some() {
            return Err(MachineError::Saving { found: gpus });
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
        let gpus = description.gpus;
        let machines = (0..gpus).map(|ordinal| Machine::new(description, memory, ordinal));
        let mut node = Self {
            machines: machines.collect::<Result<_, _>>()?,
            meeting: description.links()?.latency(),
            reached: Time::ZERO,
            ended: Vec::new(),
            threads: worker_threads(description) as usize,
            // Ranks do everything in one order, so their GPUs run in turn.
            shares: description.ranks.is_some(),
            peers: BTreeSet::new(),
            ranks: description.ranks.clone(),
            checkpoints: None,
        };
        node.divide_threads();
        Ok(node)
    }

    /// Gives each GPU its part of the threads: all of them when GPUs run in turn.
    fn divide_threads(&mut self) {
        if self.machines.len() == 1 {
            return;
        }
        let each = match self.shares {
            true => self.threads,
            false => (self.threads / self.machines.len()).max(1),
        };
        for machine in &mut self.machines {
            machine.set_threads(each);
        }
    }

    /// From now on several GPUs reach the same memory.
    fn begin_sharing(&mut self) {
        if !self.shares && self.machines.len() > 1 {
            self.shares = true;
            self.divide_threads();
        }
    }
}
