//! The section `[sm]` and its parts: one streaming multiprocessor.

use super::{IntervalConfig, LatencyConfig};
use crate::limits::Limit;
use lockstep_units::{Bytes, Cycles};
use serde::{Deserialize, Serialize};

/// One streaming multiprocessor.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct SmConfig {
    /// Sub-cores, each with a scheduler; warp `w` lives on sub-core `w mod sub-cores`.
    pub sub_cores: u32,
    /// Warps resident at a time.
    pub warps: u32,
    /// Blocks resident at a time.
    pub blocks: u32,
    /// 32-bit registers.
    pub registers: u32,
    /// Registers are allocated to a warp in multiples of this many.
    pub register_allocation_unit: u32,
    /// Most registers that a thread can have.
    pub registers_per_thread: u32,
    /// The unified data cache, which L1 and shared memory divide between them.
    pub unified_data_cache: Bytes,
    /// Sizes of shared memory that the division offers, ascending.
    pub shared_carveouts: Vec<Bytes>,
    /// The largest carve-out that the driver takes to leave room for more blocks than fit.
    #[serde(default = "carveout_headroom")]
    pub carveout_headroom: Bytes,
    /// Warps of a block from which it leaves no such room.
    #[serde(default = "carveout_headroom_warps")]
    pub carveout_headroom_warps: u32,
    /// Shared memory of a block without asking for more.
    pub shared_per_block: Bytes,
    /// Shared memory of a block that opted in.
    pub shared_per_block_optin: Bytes,
    /// Shared memory that the system keeps in each block.
    pub shared_reserved: Bytes,
    /// Shared memory is allocated to a block in multiples of this.
    pub shared_allocation_unit: Bytes,
    /// Banks of shared memory, 4 bytes wide each.
    pub shared_banks: u32,
    /// Warp scheduler by name.
    pub scheduler: String,
    /// Warps of the group that the scheduler `two-level` goes round.
    #[serde(default = "four")]
    pub scheduler_group: u32,
    /// Whether sub-cores share one FP64 unit; its interval is then that of the SM.
    #[serde(default)]
    pub fp64_unit_shared: bool,
    /// Instruction fetch.
    pub front_end: FrontEndConfig,
    /// The register file of a sub-core.
    pub register_file: RegisterFileConfig,
    /// Loads and stores on their way from sub-cores through the SM.
    pub lsu: LsuConfig,
    /// From issue to the issue of a dependent instruction, by class.
    pub latency: LatencyConfig,
    /// Cycles that one warp instruction occupies its unit in a sub-core, by class.
    pub interval: IntervalConfig,
}

/// Instruction fetch: a small cache a sub-core, a larger one an SM, a third one behind it (L1.5), and
/// L2. The caches of sub-cores are empty when a kernel comes to an SM.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct FrontEndConfig {
    /// Instruction cache of a sub-core; 0 makes instruction fetch free.
    pub l0: Bytes,
    /// Instruction cache of an SM.
    pub l1: Bytes,
    /// Instruction cache behind that of an SM; 0 for none.
    #[serde(default)]
    pub l15: Bytes,
    /// Bytes of a line of all of them.
    pub line: Bytes,
    /// From a miss in the sub-core's cache to its instruction, if the SM's cache has it.
    pub l1_latency: Cycles,
    /// From a miss in the SM's cache to its instruction, if the cache behind it has it.
    #[serde(default)]
    pub l15_latency: Cycles,
    /// Lines that the stream buffer prefetches behind the last miss.
    pub stream_buffer_lines: u32,
    /// What a line of code adds that is in no cache, L2 included.
    #[serde(default)]
    pub uncached_latency: Cycles,
    /// What a line of code adds that an SM fetches for the first time: some of it is in L2 since it was
    /// loaded, and some is not.
    #[serde(default)]
    pub first_fetch_latency: Cycles,
    /// From the first block of a launch on an SM to the first line of its code, if no launch
    /// brought it before.
    pub cold_fetch_latency: Cycles,
    /// Between two lines of it.
    pub cold_fetch_interval: Cycles,
    /// Most code of a kernel that its launch brings along.
    #[serde(default = "all_code")]
    pub cold_fetch_limit: Bytes,
    /// Constant cache of an SM; 0 makes reading constants free.
    pub constant_cache: Bytes,
    /// Bytes of a line of it.
    pub constant_cache_line: Bytes,
    /// Ways of a set of it.
    #[serde(default = "four")]
    pub constant_cache_ways: u32,
    /// From one address to the next, where the lanes of a warp read constants at different ones.
    #[serde(default)]
    pub constant_replay: Cycles,
    /// Between two addresses that loads by index read, whichever warps they are of.
    #[serde(default)]
    pub constant_interval: Cycles,
    /// Between two of their misses.
    #[serde(default)]
    pub constant_miss_interval: Cycles,
    /// Between two lines of constants that the cache behind those of the SMs passes on, in hundredths of a
    /// cycle: the SMs of a GPC share it.
    #[serde(default)]
    pub gpc_constant_interval: u32,
    /// Bytes of constants that come from L2 together; 0 for a line of the constant cache.
    #[serde(default)]
    pub constant_fetch: Bytes,
    /// What a miss in the constant cache adds.
    pub constant_miss_latency: Cycles,
    /// The same for constants that a launch uses for the first time (a cold miss), other than parameters.
    pub constant_cold_miss_latency: Cycles,
}

/// The register file of a sub-core.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct RegisterFileConfig {
    /// Banks, each with one read port; 0 for ports without conflicts.
    pub banks: u32,
    /// Cycles in which an instruction can read its operands without holding up the next.
    pub read_window: Cycles,
}

/// The load/store unit (LSU) and the MIO queues before it.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct LsuConfig {
    /// Entries of the MIO queue: memory instructions that a sub-core has issued and the LSU has not yet
    /// taken.
    pub mio_queue: u32,
    /// From issue of a load until its address registers may be written (write after read).
    pub load_war_latency: Cycles,
    /// From issue of a store until its registers may be written (write after read).
    pub store_war_latency: Cycles,
    /// What every further 32-bit word of a lane adds to a load from L1.
    pub l1_word_latency: Cycles,
    /// What a load of 128 bits a lane adds to a load from shared memory.
    pub shared_vector_latency: Cycles,
    /// Cycles for which a fence occupies the LSU, besides what is in it.
    pub fence_interval: Cycles,
    /// How many eighths of the wavefronts of the instruction before it a fence waits for.
    #[serde(default = "seven")]
    pub fence_wait_eighths: u32,
    /// Cycles that one lane of a shared-memory atomic waits for another that wants the same word; twice
    /// that if it compares before it writes.
    pub shared_atomic_conflict: Cycles,
    /// Wavefronts of a compare-and-swap on shared memory where other atomics take one.
    #[serde(default = "two")]
    pub shared_cas_wavefronts: u32,
}

fn four() -> u32 {
    4
}

fn all_code() -> Bytes {
    Bytes(1 << 24)
}

fn seven() -> u32 {
    7
}

fn two() -> u32 {
    2
}

fn carveout_headroom() -> Bytes {
    Bytes(132 << 10)
}

fn carveout_headroom_warps() -> u32 {
    32
}

impl SmConfig {
    pub(super) fn limits(&self) -> Vec<Limit> {
        let front_end = &self.front_end;
        vec![
            Limit::new("sm.sub-cores", self.sub_cores).from(1).to(64),
            Limit::new("sm.warps", self.warps).from(1).to(64),
            Limit::new("sm.blocks", self.blocks).from(1).to(64),
            Limit::new("sm.registers", self.registers).from(1),
            Limit::new("sm.register-allocation-unit", self.register_allocation_unit).from(1),
            Limit::new("sm.registers-per-thread", self.registers_per_thread).to(255),
            Limit::new("sm.unified-data-cache", self.unified_data_cache.0).to(1 << 24),
            Limit::new("sm.shared-allocation-unit", self.shared_allocation_unit.0).from(1),
            Limit::new("sm.shared-banks", self.shared_banks)
                .from(1)
                .to(32)
                .power_of_two(),
            Limit::new("sm.lsu.mio-queue", self.lsu.mio_queue)
                .from(1)
                .to(64),
            Limit::new(
                "sm.lsu.shared-cas-wavefronts",
                self.lsu.shared_cas_wavefronts,
            )
            .from(1)
            .to(64),
            Limit::new("sm.register-file.banks", self.register_file.banks).to(4),
            Limit::new(
                "sm.front-end.stream-buffer-lines",
                front_end.stream_buffer_lines,
            )
            .to(64),
            Limit::new("sm.front-end.l0", front_end.l0.0).to(1 << 24),
            Limit::new("sm.front-end.l1", front_end.l1.0).to(1 << 24),
            Limit::new("sm.front-end.l15", front_end.l15.0).to(1 << 24),
            Limit::new("sm.front-end.line", front_end.line.0)
                .from(1)
                .power_of_two(),
            Limit::new("sm.front-end.constant-cache", front_end.constant_cache.0).to(1 << 24),
            Limit::new(
                "sm.front-end.constant-cache-line",
                front_end.constant_cache_line.0,
            )
            .from(1)
            .power_of_two(),
            Limit::new(
                "sm.front-end.gpc-constant-interval",
                front_end.gpc_constant_interval,
            )
            .to(100_000),
            Limit::new("sm.front-end.constant-fetch", front_end.constant_fetch.0).to(1 << 16),
            Limit::new(
                "sm.front-end.constant-cache-ways",
                front_end.constant_cache_ways,
            )
            .from(1)
            .to(1024),
        ]
    }
}
