//! A grid on its way through the GPU.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

use lockstep_counters::Counters;
use lockstep_isa::lanes::{ConstantBanks, Identity};
use lockstep_isa::{Kernel, Module};
use lockstep_units::{Cycle, Time};
use serde::{Deserialize, Serialize};

use crate::memory::Contents;
use crate::sm::front_end::issue_table::IssueTable;

/// The number of a launch: counted up from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct LaunchId(pub u32);

/// A kernel and what it is launched with.
#[derive(Clone, Debug)]
pub struct Launch {
    /// The code.
    pub module: Arc<Module>,
    /// What [`Gpu::load`](crate::Gpu::load) asks for to find the module again.
    pub module_id: u64,
    /// Which kernel of the module.
    pub kernel: usize,
    /// Blocks of the grid.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Bytes of shared memory on top of what the kernel declares.
    pub dynamic_shared: u32,
    /// Shared memory that the kernel wants an SM to set aside, if it says so.
    pub carveout: Option<u64>,
    /// Bytes of stack that a thread gets if the kernel calls functions.
    pub stack: u32,
    /// The arguments as they lie from the parameter base.
    pub arguments: Vec<u8>,
    /// Launches of one queue run one after the other.
    pub queue: u32,
    /// `%envreg0` to `%envreg3`.
    pub environment: [u32; 4],
    /// Bytes of constant banks that differ from the module's: bank, offset, bytes.
    pub constants: Vec<(u8, u32, Vec<u8>)>,
    /// When it may begin; now if that has passed.
    pub at: Time,
}

impl Launch {
    /// A launch of the first kernel with this name, on queue 0. `None` if there is none.
    #[must_use]
    pub fn new(
        module: &Arc<Module>,
        kernel: &str,
        grid: [u32; 3],
        block: [u32; 3],
    ) -> Option<Self> {
        let kernel = module.kernels.iter().position(|k| k.name == kernel)?;
        Some(Self {
            module: module.clone(),
            module_id: 0,
            kernel,
            grid,
            block,
            dynamic_shared: 0,
            carveout: None,
            stack: DEFAULT_STACK,
            arguments: Vec::new(),
            queue: 0,
            environment: [0; 4],
            constants: Vec::new(),
            at: Time::ZERO,
        })
    }

    /// The kernel.
    #[must_use]
    pub fn kernel(&self) -> &Kernel {
        &self.module.kernels[self.kernel]
    }

    /// Instructions of the kernel itself, without functions that it calls.
    #[must_use]
    pub fn code(&self) -> Range<u32> {
        let entry = self.kernel().entry;
        let functions = &self.module.functions;
        let after = functions.partition_point(|(start, _)| *start <= entry);
        let end = functions.get(after).map(|(start, _)| *start);
        entry..end.unwrap_or(self.module.code.len() as u32).max(entry)
    }

    /// Threads of a block.
    #[must_use]
    pub fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Warps of a block.
    #[must_use]
    pub fn warps(&self) -> u32 {
        self.threads().div_ceil(32)
    }

    /// Blocks of the grid.
    #[must_use]
    pub fn blocks(&self) -> u64 {
        self.grid.iter().map(|size| u64::from(*size)).product()
    }

    /// Local memory of a thread, stack included.
    #[must_use]
    pub fn local_bytes(&self) -> u32 {
        let kernel = self.kernel();
        let stack = if kernel.calls { self.stack } else { 0 };
        kernel
            .local_bytes
            .saturating_add(stack)
            .next_multiple_of(16)
    }

    /// Shared memory of a block: the system's part, static and dynamic.
    #[must_use]
    pub fn shared(&self) -> u32 {
        let kernel = self.kernel();
        (kernel.shared_reserved + kernel.shared_bytes).next_multiple_of(16) + self.dynamic_shared
    }
}

/// Bytes of stack of a thread where nobody asked for more or less, as CUDA has it.
pub const DEFAULT_STACK: u32 = 1 << 10;

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
    /// Constant banks; the dispatcher fills them when the kernel starts, because kernels and
    /// copies before it may write what they are taken from.
    pub constants: OnceLock<ConstantBanks>,
    /// What its instructions cost; empty in functional mode without checks.
    pub issue_table: Arc<IssueTable>,
    /// Ways of L1 that its shared memory leaves.
    pub l1_ways: u32,
}

impl LaunchContext {
    /// What its instructions cost.
    #[must_use]
    #[inline]
    pub fn issue_table(&self) -> &IssueTable {
        &self.issue_table
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
                let bank = usize::from(*bank);
                if banks.banks.len() <= bank {
                    banks.banks.resize(bank + 1, Vec::new());
                }
                let end = *offset as usize + bytes.len();
                if banks.banks[bank].len() < end {
                    banks.banks[bank].resize(end, 0);
                }
                banks.banks[bank][*offset as usize..end].copy_from_slice(bytes);
            }
            banks
        });
    }

    /// The constant banks.
    ///
    /// # Panics
    /// If no block can have been started: the dispatcher fills them before.
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
            block_size: self.launch.block,
            grid_size: self.launch.grid,
            sms,
            grid: u64::from(self.id.0) + 1,
            dynamic_shared: self.launch.dynamic_shared,
            total_shared: self.launch.shared(),
            local_bytes: self.launch.local_bytes(),
            environment: self.launch.environment,
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

    /// Forgets a launch.
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

    /// Forgets all launches.
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
    /// The queue it came from.
    pub queue: u32,
    /// When it reached the head of its queue.
    pub start: Time,
    /// When it was complete.
    pub end: Time,
    /// SM cycle of `start`.
    pub start_cycle: Cycle,
    /// SM cycle of `end`.
    pub end_cycle: Cycle,
    /// What its blocks counted.
    pub counters: Counters,
    /// By which slices knew its traffic while it ran.
    pub tag: u8,
}

impl KernelRecord {
    /// SM cycles from start to end.
    #[must_use]
    pub fn cycles(&self) -> u64 {
        self.end_cycle.0 - self.start_cycle.0
    }
}
