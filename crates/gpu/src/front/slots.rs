//! What each SM has left for blocks.

use std::collections::BTreeSet;

use lockstep_config::GpuConfig;
use serde::{Deserialize, Serialize};

use crate::launch::Launch;

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
    pub register_unit: u32,
    /// Sub-cores that registers are divided between.
    pub sub_cores: u32,
    /// Most registers of a thread.
    pub registers_per_thread: u32,
    /// Bytes of shared memory.
    pub shared: u64,
    /// What can be set aside for it, smallest first.
    pub divisions: Vec<u64>,
    /// Shared memory is given to a block in multiples of this.
    pub shared_unit: u64,
    /// Shared memory that the system keeps in each block.
    pub shared_reserved: u64,
    /// Shared memory that a block can have.
    pub shared_per_block: u64,
    /// The largest carve-out that leaves room for more blocks than fit.
    pub headroom: u64,
    /// Warps of a block from which none leaves room.
    pub headroom_warps: u32,
}

impl SmLimits {
    /// From a GPU file.
    #[must_use]
    pub fn new(config: &GpuConfig) -> Self {
        let sm = &config.sm;
        Self {
            warps: sm.warps,
            blocks: sm.blocks,
            registers: sm.registers,
            register_unit: sm.register_allocation_unit,
            sub_cores: sm.sub_cores,
            registers_per_thread: sm.registers_per_thread,
            shared: sm.shared_carveouts.last().map_or(0, |size| size.0),
            divisions: sm.shared_carveouts.iter().map(|size| size.0).collect(),
            shared_unit: sm.shared_allocation_unit.0,
            shared_reserved: sm.shared_reserved.0,
            shared_per_block: sm.shared_per_block_optin.0,
            headroom: sm.carveout_headroom.0,
            headroom_warps: sm.carveout_headroom_warps,
        }
    }
}

/// What one block takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockNeeds {
    /// Warp slots.
    pub warps: u32,
    /// Registers.
    pub registers: u32,
    /// Bytes of shared memory.
    pub shared: u64,
    /// Blocks of the kernel that an SM holds at most: whole warps of whole sub-cores.
    pub most: u32,
    /// The same as far as shared memory is concerned.
    pub most_blocks: u32,
}

impl BlockNeeds {
    /// Of a launch.
    #[must_use]
    pub fn new(launch: &Launch, limits: &SmLimits) -> Self {
        let kernel = launch.kernel();
        let warps = launch.warps().max(1);
        let of_warp = (kernel.registers * 32).next_multiple_of(limits.register_unit.max(1));
        // Where the code's addresses include the system's part, it is in `shared` already.
        let program = u64::from(launch.shared() - kernel.shared_reserved);
        let shared = (program + limits.shared_reserved).next_multiple_of(limits.shared_unit.max(1));
        let by_registers = if kernel.registers == 0 {
            limits.blocks
        } else {
            limits.registers / limits.sub_cores / of_warp * limits.sub_cores / warps
        };
        let within = |set_aside: u64| match set_aside.checked_div(shared) {
            Some(blocks) => u32::try_from(blocks).unwrap_or(u32::MAX),
            None => limits.blocks,
        };
        let mut needs = Self {
            warps,
            registers: of_warp.saturating_mul(warps),
            shared,
            most: (limits.warps / warps)
                .min(limits.blocks)
                .min(by_registers)
                .min(within(limits.shared)),
            most_blocks: within(limits.shared),
        };
        // A division that the kernel prefers bounds its blocks, but one always fits.
        if launch.carveout.is_some() {
            let set_aside = limits.carve_out(&needs, program, launch.carveout);
            needs.most_blocks = needs.most_blocks.min(within(set_aside));
            needs.most = needs.most.min(within(set_aside));
        }
        needs
    }
}

/// What an SM holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SmSlots {
    /// Warp slots in use.
    pub warps: u32,
    blocks: u32,
    registers: u32,
    shared: u64,
    launches: Vec<Held>,
}

/// What a launch holds of an SM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Held {
    launch: u32,
    /// Blocks that have not ended.
    blocks: u32,
    /// Blocks that the warps that have not ended could be.
    rooms: u32,
}

impl SmSlots {
    fn of(&self, launch: u32) -> Held {
        let found = self.launches.iter().find(|held| held.launch == launch);
        found.copied().unwrap_or_default()
    }

    fn of_mut(&mut self, launch: u32) -> &mut Held {
        let found = self.launches.iter().position(|held| held.launch == launch);
        let at = found.unwrap_or_else(|| {
            self.launches.push(Held {
                launch,
                ..Held::default()
            });
            self.launches.len() - 1
        });
        &mut self.launches[at]
    }

    /// Whether another block fits.
    #[must_use]
    #[inline]
    pub fn fits(&self, launch: u32, needs: &BlockNeeds, limits: &SmLimits) -> bool {
        self.warps + needs.warps <= limits.warps
            && self.blocks < limits.blocks
            && self.registers + needs.registers <= limits.registers
            && self.shared + needs.shared <= limits.shared
            && self.of(launch).rooms < needs.most
            && self.of(launch).blocks < needs.most_blocks
    }

    /// A block is sent.
    pub fn take(&mut self, launch: u32, needs: &BlockNeeds) {
        self.warps += needs.warps;
        self.blocks += 1;
        self.registers += needs.registers;
        self.shared += needs.shared;
        let held = self.of_mut(launch);
        held.blocks += 1;
        held.rooms += 1;
    }

    /// As many warps have ended as so many blocks have.
    pub fn release(&mut self, launch: u32, needs: &BlockNeeds, rooms: u32) {
        self.warps -= needs.warps * rooms;
        self.registers -= needs.registers * rooms;
        self.of_mut(launch).rooms -= rooms;
        self.forget(launch);
    }

    /// A block has ended, and what it sent has arrived.
    pub fn end_block(&mut self, launch: u32, needs: &BlockNeeds) {
        self.blocks -= 1;
        self.shared -= needs.shared;
        self.of_mut(launch).blocks -= 1;
        self.forget(launch);
    }

    fn forget(&mut self, launch: u32) {
        let held = self.of(launch);
        if held.blocks == 0 && held.rooms == 0 {
            self.launches.retain(|held| held.launch != launch);
        }
    }
}

/// SMs by how free they are: those with the fewest warps first, by rank among these.
#[derive(Clone, Debug, Default)]
pub struct FreestFirst {
    /// Warps in use, rank, number.
    order: BTreeSet<(u32, u32, u32)>,
}

impl FreestFirst {
    /// Of all SMs.
    #[must_use]
    pub fn new(sms: &[SmSlots], ranks: &[u32]) -> Self {
        let sms = (0..).zip(sms).zip(ranks);
        Self {
            order: sms
                .map(|((number, slots), rank)| (slots.warps, *rank, number))
                .collect(),
        }
    }

    /// One SM has another number of warps in use.
    pub fn change(&mut self, sm: u32, rank: u32, before: u32, after: u32) {
        self.order.remove(&(before, rank, sm));
        self.order.insert((after, rank, sm));
    }

    /// Their numbers, in order.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.order.iter().map(|(_, _, sm)| *sm)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_freest_comes_first_and_then_by_rank() {
        let ranks = [2, 0, 1];
        let mut sms = vec![SmSlots::default(); 3];
        sms[1].warps = 4;
        let mut order = FreestFirst::new(&sms, &ranks);
        assert_eq!(order.iter().collect::<Vec<_>>(), [2, 0, 1]);
        order.change(2, ranks[2], 0, 4);
        assert_eq!(order.iter().collect::<Vec<_>>(), [0, 1, 2]);
        order.change(1, ranks[1], 4, 0);
        assert_eq!(order.iter().collect::<Vec<_>>(), [1, 0, 2]);
    }
}
