//! How many blocks of a kernel an SM holds at a time: the CUDA occupancy calculation.
//!
//! Registers are given to warps in units, and to each sub-core apart; shared memory is given to
//! blocks in units, out of the largest carve-out or the one that the kernel prefers; warps and
//! blocks have limits of their own. The smallest answer counts.

use lockstep_config::gpu::SmConfig;

/// Threads of a warp.
pub const WARP: u32 = 32;

/// Resources of one block.
#[derive(Clone, Copy, Debug)]
pub struct BlockShape {
    /// Threads.
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Shared memory in bytes, static and dynamic, without the system's share.
    pub shared: u64,
}

/// Blocks by each limit; the least of them fit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// By warp slots.
    pub by_warps: u32,
    /// By registers.
    pub by_registers: u32,
    /// By shared memory.
    pub by_shared: u32,
    /// By block slots.
    pub by_blocks: u32,
}

impl Occupancy {
    /// Blocks that fit.
    pub fn blocks(&self) -> u32 {
        self.by_warps
            .min(self.by_registers)
            .min(self.by_shared)
            .min(self.by_blocks)
    }
}

/// Blocks of this shape on one SM.
pub fn occupancy(sm: &SmConfig, block: BlockShape) -> Occupancy {
    occupancy_within(sm, block, None)
}

/// Blocks of this shape on one SM that sets aside as much shared memory as the kernel prefers,
/// or as much as one block needs where that is more.
pub fn occupancy_within(sm: &SmConfig, block: BlockShape, carveout: Option<u64>) -> Occupancy {
    let warps = block.threads.div_ceil(WARP).max(1);
    let needed = block.shared + sm.shared_reserved.0;
    let shared_most = sm
        .shared_carveouts
        .iter()
        .map(|size| size.0)
        .find(|size| carveout.is_some_and(|wanted| *size >= wanted.max(needed)))
        .or(sm.shared_carveouts.last().map(|size| size.0))
        .unwrap_or(0);
    Occupancy {
        by_warps: sm.warps / warps,
        by_registers: by_registers(sm, warps, block.registers),
        by_shared: by_shared(sm, shared_most, block.shared),
        by_blocks: sm.blocks,
    }
}

fn by_registers(sm: &SmConfig, warps: u32, registers: u32) -> u32 {
    if registers == 0 {
        return sm.blocks;
    }
    if registers > sm.registers_per_thread {
        return 0;
    }
    let of_warp = (registers * WARP).next_multiple_of(sm.register_allocation_unit);
    let warps_of_sub_core = (sm.registers / sm.sub_cores) / of_warp;
    warps_of_sub_core * sm.sub_cores / warps
}

fn by_shared(sm: &SmConfig, most: u64, shared: u64) -> u32 {
    if shared > sm.shared_per_block_optin.0 {
        return 0;
    }
    let of_block = (shared + sm.shared_reserved.0).next_multiple_of(sm.shared_allocation_unit.0);
    if of_block == 0 {
        return sm.blocks;
    }
    u32::try_from(most / of_block).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn blocks(gpu: &str, threads: u32, registers: u32, shared: u64) -> u32 {
        let config = lockstep_config::load::<&str>(Some(gpu), &[]).unwrap();
        occupancy(
            &config.sm,
            BlockShape {
                threads,
                registers,
                shared,
            },
        )
        .blocks()
    }

    #[test]
    fn each_limit_can_be_the_one() {
        assert_eq!(blocks("h200", 256, 32, 0), 8, "warps");
        assert_eq!(blocks("h200", 32, 16, 0), 32, "block slots");
        assert_eq!(blocks("h200", 256, 64, 0), 4, "registers");
        assert_eq!(blocks("h200", 1024, 64, 0), 1, "registers of whole blocks");
        assert_eq!(
            blocks("h200", 1024, 65, 0),
            0,
            "too many registers for a block"
        );
        assert_eq!(
            blocks("h200", 128, 32, 48 << 10),
            4,
            "shared memory with 1 KiB reserved"
        );
        assert_eq!(
            blocks("h200", 128, 32, 227 << 10),
            1,
            "the most shared memory"
        );
        assert_eq!(blocks("h200", 128, 32, 228 << 10), 0, "more than there is");
        assert_eq!(blocks("v100", 128, 32, 48 << 10), 2, "nothing reserved");
        assert_eq!(blocks("rtx2060", 1024, 32, 0), 1);
    }

    #[test]
    fn registers_are_counted_in_units_and_sub_cores() {
        // 33 registers round up to 40 a thread: 1,280 a warp, 12 warps of a sub-core's 16,384.
        assert_eq!(blocks("h200", 32, 33, 0), 32);
        assert_eq!(blocks("h200", 192, 33, 0), 8);
        // 255 registers: 8,192 a warp, two warps of a sub-core, eight of the SM.
        assert_eq!(blocks("h200", 256, 255, 0), 1);
        assert_eq!(blocks("h200", 257, 255, 0), 0);
    }
}
