//! Occupancy: how many blocks of a kernel an SM holds at a time.
//!
//! Registers are given to warps in units, and to each sub-core apart; shared memory is given to
//! blocks in units, out of what the SM sets aside for it; warps and blocks have limits of their own.
//! The smallest answer counts. CUDA's occupancy calls, the checks of a launch and the work
//! distributor all ask here.
//!
//! Start reading at [`SmLimits::occupancy`].

mod carveout;
mod clusters;

pub use clusters::{cluster_groups, largest_cluster, most_clusters};

use lockstep_units::WARP;

use crate::gpu::SmConfig;

/// More shared memory than any SM has; sums with it are still numbers.
const BEYOND_ANY_SM: u64 = 1 << 40;

/// What one SM can hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SmLimits {
    /// Warp slots.
    pub warps: u32,
    /// Block slots.
    pub blocks: u32,
    /// Registers.
    pub registers: u32,
    /// Registers are given to a warp in multiples of this.
    register_unit: u32,
    /// Sub-cores that registers are divided between.
    sub_cores: u32,
    /// Most registers of a thread.
    registers_per_thread: u32,
    /// Bytes of shared memory, at most.
    pub shared: u64,
    /// What can be set aside for it, smallest first.
    carveouts: Vec<u64>,
    /// The largest carve-out that leaves room for more blocks than fit.
    headroom: u64,
    /// Warps of a block from which none leaves room.
    headroom_warps: u32,
    /// Shared memory is given to a block in multiples of this.
    shared_unit: u64,
    /// Shared memory that the system keeps in each block.
    shared_reserved: u64,
    /// Shared memory that a block can have.
    pub shared_per_block: u64,
}

/// What the blocks of a kernel are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockShape {
    /// Threads.
    pub threads: u32,
    /// Registers of a thread.
    pub registers: u32,
    /// Shared memory in bytes, static and dynamic, without the system's share.
    pub shared: u64,
}

/// What one block takes of an SM, in whole units.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockAllocation {
    /// Warp slots.
    pub warps: u32,
    /// Registers.
    pub registers: u32,
    /// Bytes of shared memory, with the system's share.
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
    #[must_use]
    pub fn blocks(&self) -> u32 {
        self.by_warps
            .min(self.by_registers)
            .min(self.by_shared)
            .min(self.by_blocks)
    }
}

impl SmLimits {
    /// From a GPU file.
    #[must_use]
    pub fn new(sm: &SmConfig) -> Self {
        Self {
            warps: sm.warps,
            blocks: sm.blocks,
            registers: sm.registers,
            register_unit: sm.register_allocation_unit.max(1),
            sub_cores: sm.sub_cores.max(1),
            registers_per_thread: sm.registers_per_thread,
            shared: sm.shared_carveouts.last().map_or(0, |size| size.0),
            carveouts: sm.shared_carveouts.iter().map(|size| size.0).collect(),
            headroom: sm.carveout_headroom.0,
            headroom_warps: sm.carveout_headroom_warps,
            shared_unit: sm.shared_allocation_unit.0.max(1),
            shared_reserved: sm.shared_reserved.0,
            shared_per_block: sm.shared_per_block_optin.0,
        }
    }

    /// What a block takes.
    #[must_use]
    pub fn allocation(&self, block: BlockShape) -> BlockAllocation {
        let warps = block.threads.div_ceil(WARP).max(1);
        BlockAllocation {
            warps,
            registers: self.registers_of_warp(block).saturating_mul(warps),
            shared: self.shared_of(block).next_multiple_of(self.shared_unit),
        }
    }

    /// Blocks of this shape on one SM that sets aside so much shared memory.
    #[must_use]
    pub fn occupancy(&self, block: BlockShape, set_aside: u64) -> Occupancy {
        let allocation = self.allocation(block);
        Occupancy {
            by_warps: self.warps / allocation.warps,
            by_registers: self.by_registers(block, allocation.warps),
            by_shared: self.by_shared(block, allocation.shared, set_aside),
            by_blocks: self.blocks,
        }
    }

    /// Blocks of this shape on one SM that sets aside as much shared memory as it can.
    #[must_use]
    pub fn most(&self, block: BlockShape) -> Occupancy {
        self.occupancy(block, self.shared)
    }

    /// Blocks of this shape as CUDA's occupancy calls count them: the SM sets aside as much shared
    /// memory as the kernel prefers, or as much as one block needs where that is more.
    #[must_use]
    pub fn within_preferred(&self, block: BlockShape, carveout: Option<u64>) -> Occupancy {
        let needed = self.shared_of(block);
        let set_aside = carveout.map_or(self.shared, |wanted| self.division(wanted.max(needed)));
        self.occupancy(block, set_aside)
    }

    /// Shared memory of a block with what the system keeps. Programs may ask for any number.
    fn shared_of(&self, block: BlockShape) -> u64 {
        block.shared.min(BEYOND_ANY_SM) + self.shared_reserved
    }

    fn registers_of_warp(&self, block: BlockShape) -> u32 {
        let registers = block.registers.saturating_mul(WARP);
        registers
            .checked_next_multiple_of(self.register_unit)
            .unwrap_or(u32::MAX)
    }

    /// Whole warps of whole sub-cores.
    fn by_registers(&self, block: BlockShape, warps: u32) -> u32 {
        if block.registers == 0 {
            return self.blocks;
        }
        if block.registers > self.registers_per_thread {
            return 0;
        }
        let warps_of_sub_core = self.registers / self.sub_cores / self.registers_of_warp(block);
        warps_of_sub_core * self.sub_cores / warps
    }

    fn by_shared(&self, block: BlockShape, of_block: u64, set_aside: u64) -> u32 {
        if block.shared > self.shared_per_block {
            return 0;
        }
        match set_aside.checked_div(of_block) {
            Some(blocks) => u32::try_from(blocks).unwrap_or(u32::MAX),
            None => self.blocks,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(gpu: &str) -> SmLimits {
        SmLimits::new(&crate::load::<&str>(Some(gpu), &[]).unwrap().sm)
    }

    fn shape(threads: u32, registers: u32, shared: u64) -> BlockShape {
        BlockShape {
            threads,
            registers,
            shared,
        }
    }

    fn blocks(gpu: &str, threads: u32, registers: u32, shared: u64) -> u32 {
        let block = shape(threads, registers, shared);
        limits(gpu).most(block).blocks()
    }

    /// The sum with what the system keeps went beyond 64 bits.
    #[test]
    fn no_block_fits_that_wants_all_memory_there_is() {
        let config = crate::load::<&str>(Some("h200"), &[]).unwrap();
        let limits = SmLimits::new(&config.sm);
        let block = shape(64, 32, u64::MAX);
        assert_eq!(limits.most(block).blocks(), 0);
        assert_eq!(limits.within_preferred(block, None).blocks(), 0);
        assert_eq!(limits.within_preferred(block, Some(1024)).blocks(), 0);
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

    #[test]
    fn registers_beyond_all_bounds_fit_nowhere() {
        assert_eq!(blocks("h200", 32, u32::MAX, 0), 0);
        let taken = limits("h200").allocation(shape(1024, u32::MAX, 0));
        assert_eq!(taken.registers, u32::MAX);
    }

    #[test]
    fn a_preferred_carveout_bounds_blocks_but_one_always_fits() {
        let preferred = |kib: u64, shared: u64| {
            let block = shape(128, 32, shared);
            limits("h200")
                .within_preferred(block, Some(kib << 10))
                .blocks()
        };
        assert_eq!(preferred(100, 48 << 10), 2);
        assert_eq!(preferred(0, 48 << 10), 1);
        assert_eq!(preferred(228, 48 << 10), 4);
    }
}
