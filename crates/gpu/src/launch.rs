//! A grid on its way through the GPU: a launch with what the hardware adds to it.
//!
//! Start reading at [`LaunchContext`].

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use lockstep_counters::Counters;
use lockstep_isa::lanes::{ConstantBanks, Identity};
use lockstep_isa::{Launch, Module, Verified};
use lockstep_units::{Cycle, Time};
use serde::{Deserialize, Serialize};

use crate::memory::Contents;
use crate::sm::front_end::issue_table::IssueTable;

/// The number of a launch: counted up from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LaunchId(pub u32);

/// Where a launch by a kernel came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LaunchedBy {
    /// The launch whose kernel launched it.
    pub parent: LaunchId,
    /// The launch by the host that it goes back to.
    pub root: LaunchId,
}

/// A launch as SMs see it.
///
/// Every instruction of every SM reads it; aligned so that the count of its users, which changes with every
/// block, lies on other cache lines.
#[derive(Debug)]
#[repr(align(128))]
pub struct LaunchContext {
    /// Its number.
    pub id: LaunchId,
    /// What was launched.
    pub launch: Launch,
    /// The module as it was handed over: the launch has one without what its kernel cannot execute.
    pub module: Arc<Module>,
    /// The kernel that launched it, if not the host.
    pub launched_by: Option<LaunchedBy>,
    /// Constant banks; the work distributor fills them when the kernel starts, because kernels and
    /// copies before it may write what they are taken from.
    pub constants: OnceLock<ConstantBanks>,
    /// What its instructions cost; empty in functional mode without checks.
    pub issue_table: Arc<IssueTable>,
    /// Ways of L1 that its shared memory leaves.
    pub l1_ways: u32,
    /// What its code was found to be.
    pub verified: Arc<Verified>,
}

impl LaunchContext {
    /// What its instructions cost.
    #[must_use]
    #[inline]
    pub fn issue_table(&self) -> &IssueTable {
        &self.issue_table
    }

    /// Whether a register may lead lanes to an instruction.
    #[must_use]
    #[inline]
    pub fn may_jump_to(&self, index: u64) -> bool {
        self.verified.code.holds(&self.module, index)
    }

    /// Takes a copy of the constant banks, if nobody has.
    pub fn fill_constants(&self, contents: &Contents, sms: u32) {
        self.constants.get_or_init(|| {
            let launch = &self.launch;
            let identity = self.identity(sms);
            let window = contents.window();
            let read = |address: u64, bytes: &mut [u8]| {
                let end = address.saturating_add(bytes.len() as u64);
                if window.start <= address && end <= window.end {
                    contents.read(address, bytes);
                }
            };
            let kernel = launch.kernel();
            let mut banks =
                kernel.launch_constants(&launch.module, &identity, &launch.arguments, &read);
            for (bank, offset, bytes) in &launch.constants {
                banks.write(*bank, *offset, bytes);
            }
            banks
        });
    }

    /// The constant banks.
    ///
    /// # Panics
    /// If no block can have been started: the work distributor fills them before.
    #[must_use]
    #[inline(always)]
    pub fn banks(&self) -> &ConstantBanks {
        self.constants
            .get()
            .expect("a started kernel has its constants")
    }

    /// Identity of a warp as far as the launch decides it.
    #[must_use]
    pub fn identity(&self, sms: u32) -> Identity {
        Identity {
            block_size: self.launch.config.block,
            grid_size: self.launch.config.grid,
            sms,
            // Grids of kernels count down, as an H200 has them.
            grid: match self.launched_by {
                None => u64::from(self.id.0) + 1,
                Some(_) => u64::MAX - u64::from(self.id.0),
            },
            dynamic_shared: self.launch.config.dynamic_shared,
            total_shared: self.launch.shared(),
            local_bytes: self.launch.local_bytes(),
            environment: self.launch.environment(),
            cluster_size: self.launch.cluster(),
            explicit_cluster: self.launch.has_explicit_cluster(),
            ..Identity::default()
        }
    }
}

/// Launches that are under way, by number. Changed only between epochs.
#[derive(Clone, Debug, Default)]
pub struct LaunchTable(Arc<RwLock<BTreeMap<u32, Arc<LaunchContext>>>>);

impl LaunchTable {
    /// The launch with a number.
    #[must_use]
    pub fn get(&self, id: u32) -> Option<Arc<LaunchContext>> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        table.get(&id).cloned()
    }

    /// Adds a launch.
    pub fn insert(&self, context: Arc<LaunchContext>) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        table.insert(context.id.0, context);
    }

    /// Removes a launch.
    pub fn remove(&self, id: u32) {
        let mut table = self.0.write().unwrap_or_else(PoisonError::into_inner);
        table.remove(&id);
    }

    /// All launches, ascending.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<LaunchContext>> {
        let table = self.0.read().unwrap_or_else(PoisonError::into_inner);
        table.values().cloned().collect()
    }

    /// Removes all launches.
    pub fn clear(&self) {
        self.0
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .clear();
    }
}

/// What is known of a launch when it is complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KernelRecord {
    /// Its number.
    pub launch: LaunchId,
    /// Mangled name.
    pub kernel: String,
    /// Blocks of the grid.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Registers of a thread.
    pub registers: u32,
    /// Shared memory of a block in bytes, static and dynamic, without the system's part.
    pub shared: u64,
    /// The queue it came from.
    pub queue: u64,
    /// When it reached the head of its queue.
    pub start: Time,
    /// When its blocks had ended and their writes were in.
    pub end: Time,
    /// When the grids that it launched were complete as well.
    pub complete: Time,
    /// SM cycle of `start`.
    pub start_cycle: Cycle,
    /// SM cycle of `end`.
    pub end_cycle: Cycle,
    /// What its blocks counted.
    pub counters: Counters,
    /// By which slices knew its traffic while it ran.
    pub tag: u8,
    /// The kernel that launched it, if not the host.
    pub launched_by: Option<LaunchedBy>,
}

impl KernelRecord {
    /// SM cycles from start to end.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        self.end_cycle.0 - self.start_cycle.0
    }
}
