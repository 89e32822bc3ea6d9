//! A kernel between its first and its last block.

use lockstep_counters::Counters;
use lockstep_units::Time;
use serde::{Deserialize, Serialize};

use super::slots::BlockNeeds;
use crate::message::BlockDone;

/// A kernel that has started.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunningKernel {
    /// Number of the launch.
    pub launch: u32,
    /// The queue it came from.
    pub queue: u64,
    /// How urgent it is; the lower, the more so.
    pub priority: i32,
    /// Whether a graph has it.
    pub of_graph: bool,
    /// By which slices know its traffic.
    pub tag: u8,
    /// What one of its blocks takes.
    pub needs: BlockNeeds,
    /// Blocks of its grid.
    pub blocks: u64,
    /// Blocks of a cluster; they are sent together.
    pub cluster: u32,
    /// Grids before it in its queue have not ended.
    pub waits: bool,
    /// Blocks that have ended or have let the grid that follows begin.
    pub released: u64,
    /// Blocks that were sent to SMs.
    pub sent: u64,
    /// Blocks that have ended.
    pub done: u64,
    /// The SMs of its first blocks, where they are planned.
    pub plan: Vec<u32>,
    /// When it reached the head of its queue.
    pub start: Time,
    /// No block leaves before.
    pub first: Time,
    /// When the kernel is complete, once its last block has ended.
    pub end: Option<Time>,
    /// Slices that have not said yet that its writes are in.
    pub draining: u32,
    /// SMs on which its blocks used memory, as bits.
    pub users: Vec<u64>,
    /// What its blocks counted.
    pub counters: Counters,
}

impl RunningKernel {
    /// Whether it has a block that may leave at this time.
    pub fn has_block(&self, at: Time) -> bool {
        self.sent < self.blocks && self.first <= at
    }

    /// Whether the grid that follows may begin, if it asks for that.
    pub fn lets_dependents_start(&self) -> bool {
        self.released >= self.blocks
    }

    /// A block has ended on an SM.
    pub fn block_done(&mut self, sm: usize, done: &BlockDone) {
        self.done += 1;
        self.released += u64::from(!done.triggered);
        self.counters.add(&done.counters);
        if done.counters.l1_sectors + done.counters.strong_accesses > 0 {
            let word = sm / 64;
            if self.users.len() <= word {
                self.users.resize(word + 1, 0);
            }
            self.users[word] |= 1 << (sm % 64);
        }
    }

    /// SMs on which its blocks used memory.
    pub fn memory_users(&self) -> u32 {
        self.users.iter().map(|word| word.count_ones()).sum()
    }
}
