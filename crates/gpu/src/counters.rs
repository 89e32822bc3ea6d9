//! What blocks count on their way through an SM, summed up by launch.

use crate::sm::sub_core::stall::REASONS;
use lockstep_isa::instruction::MIXES;
use serde::{Deserialize, Serialize};

/// Sums over the blocks of a launch. All of them are sums, so no order can show.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counters {
    /// Warp instructions executed.
    pub inst_executed: u64,
    /// Warp instructions issued; replays would count again.
    pub inst_issued: u64,
    /// Instructions times lanes at them.
    pub thread_inst_executed: u64,
    /// Instructions times lanes that their guard let execute.
    pub thread_inst_executed_pred_on: u64,
    /// Warps started.
    pub warps_launched: u64,
    /// Blocks ended.
    pub blocks_completed: u64,
    /// Warp instructions by [`Mix`](lockstep_isa::instruction::Mix).
    pub mix: [u64; MIXES],
    /// Sectors of global and local memory that loads, stores and atomics asked for.
    pub global_sectors: u64,
    /// Sectors of loads that were in L1.
    pub l1_sector_hits: u64,
    /// Sectors that slices looked up while the launch ran.
    pub l2_sectors: u64,
    /// Those that were there.
    pub l2_sector_hits: u64,
    /// Those that the launch itself asks for: without what the host and others do meanwhile.
    pub l2_sectors_of_kernel: u64,
    /// Sectors that SMs asked of slices while the launch ran.
    pub l2_sectors_of_sms: u64,
    /// Bytes read from DRAM while the launch ran.
    pub dram_bytes_read: u64,
    /// Bytes written to DRAM while the launch ran.
    pub dram_bytes_written: u64,
    /// Cycles of warps by [`Reason`](crate::sm::sub_core::stall::Reason).
    pub stalls: [u64; REASONS],
    /// Warp instructions that accessed shared memory.
    pub shared_accesses: u64,
    /// Strong accesses performed at slices.
    pub strong_accesses: u64,
    /// Weak accesses that followed a strong one to its slice.
    pub diverted_accesses: u64,
    /// Cycles in which an SM had a warp of the launch, summed over SMs.
    pub active_cycles: u64,
    /// Resident warps, summed over active cycles of all SMs.
    pub warp_cycles: u64,
}

impl Counters {
    /// Adds another sum.
    pub fn add(&mut self, other: &Self) {
        self.inst_executed += other.inst_executed;
        self.inst_issued += other.inst_issued;
        self.thread_inst_executed += other.thread_inst_executed;
        self.thread_inst_executed_pred_on += other.thread_inst_executed_pred_on;
        self.warps_launched += other.warps_launched;
        self.blocks_completed += other.blocks_completed;
        for (sum, more) in self.mix.iter_mut().zip(other.mix) {
            *sum += more;
        }
        self.global_sectors += other.global_sectors;
        self.l1_sector_hits += other.l1_sector_hits;
        self.l2_sectors += other.l2_sectors;
        self.l2_sector_hits += other.l2_sector_hits;
        self.l2_sectors_of_kernel += other.l2_sectors_of_kernel;
        self.l2_sectors_of_sms += other.l2_sectors_of_sms;
        self.dram_bytes_read += other.dram_bytes_read;
        self.dram_bytes_written += other.dram_bytes_written;
        for (sum, more) in self.stalls.iter_mut().zip(other.stalls) {
            *sum += more;
        }
        self.shared_accesses += other.shared_accesses;
        self.strong_accesses += other.strong_accesses;
        self.diverted_accesses += other.diverted_accesses;
        self.active_cycles += other.active_cycles;
        self.warp_cycles += other.warp_cycles;
    }
}
