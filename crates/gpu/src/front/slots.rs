//! What each SM has left for blocks.
//!
//! How many blocks an SM holds at most is occupancy (`lockstep_config::occupancy`); here is kept
//! what is in use, launch by launch.
//!
//! Start reading at [`SmSlots::fits`].

use std::collections::BTreeSet;

use lockstep_config::occupancy::{BlockShape, SmLimits};
use lockstep_isa::Launch;
use serde::{Deserialize, Serialize};

/// What one block of a launch takes, and how many of them an SM takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlockNeeds {
    /// Warp slots.
    pub warps: u32,
    /// Registers.
    pub registers: u32,
    /// Bytes of shared memory.
    pub shared: u64,
    /// Occupancy: blocks of the kernel that an SM holds at most.
    pub most: u32,
    /// The same as far as shared memory is concerned.
    pub most_by_shared: u32,
}

/// The blocks of a launch, as occupancy sees them.
pub fn block_shape(launch: &Launch) -> BlockShape {
    BlockShape {
        threads: launch.config.threads(),
        registers: launch.kernel().registers,
        shared: u64::from(launch.own_shared()),
    }
}

impl BlockNeeds {
    /// Of a launch.
    #[must_use]
    pub fn new(launch: &Launch, limits: &SmLimits) -> Self {
        let shape = block_shape(launch);
        let block = limits.allocation(shape);
        let occupancy = limits.most(shape);
        let mut by_shared = occupancy.by_shared;
        // A carve-out that the kernel prefers bounds its blocks, but one always fits.
        if launch.carveout.is_some() {
            let set_aside = limits.carve_out(shape, launch.carveout);
            by_shared = by_shared.min(limits.occupancy(shape, set_aside).by_shared);
        }
        Self {
            warps: block.warps,
            registers: block.registers,
            shared: block.shared,
            most: occupancy.blocks().min(by_shared),
            most_by_shared: by_shared,
        }
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
            && self.of(launch).blocks < needs.most_by_shared
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
        self.drop_if_ended(launch);
    }

    /// A block has ended, and what it sent has arrived.
    pub fn end_block(&mut self, launch: u32, needs: &BlockNeeds) {
        self.blocks -= 1;
        self.shared -= needs.shared;
        self.of_mut(launch).blocks -= 1;
        self.drop_if_ended(launch);
    }

    fn drop_if_ended(&mut self, launch: u32) {
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
    fn a_block_takes_room_until_its_warps_and_then_the_block_have_ended() {
        let config = lockstep_config::load::<&str>(Some("h200"), &[]).unwrap();
        let limits = SmLimits::new(&config.sm);
        let needs = BlockNeeds {
            warps: 32,
            registers: 32 * 1024,
            shared: 1024,
            most: 2,
            most_by_shared: 2,
        };
        let mut slots = SmSlots::default();
        assert!(slots.fits(5, &needs, &limits));
        slots.take(5, &needs);
        slots.take(5, &needs);
        assert!(!slots.fits(5, &needs, &limits));
        slots.release(5, &needs, 1);
        assert!(
            !slots.fits(5, &needs, &limits),
            "its shared memory is in use"
        );
        slots.end_block(5, &needs);
        assert!(slots.fits(5, &needs, &limits));
        slots.release(5, &needs, 1);
        slots.end_block(5, &needs);
        assert_eq!(slots, SmSlots::default());
    }

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
