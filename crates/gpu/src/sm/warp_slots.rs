//! Which warp slots of an SM are used, and which of their warps can execute: one bit a slot.

use serde::{Deserialize, Serialize};

/// Sets of warp slots.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarpSlots {
    /// Slots with a warp.
    pub resident: u64,
    /// Warps that could execute: lanes that run, nothing to wait for.
    pub ready: u64,
    /// Warps that wait for a fence, the heap or their sleep.
    pub held: u64,
    /// Warps whose values must come back before they go on.
    pub waiting: u64,
}

impl WarpSlots {
    /// A slot for a warp of a new block. Warps are dealt to the sub-cores, from slot `first` on;
    /// slot `n` belongs to sub-core `n` modulo their number.
    ///
    /// # Panics
    /// If all slots are used: the work distributor counts them.
    #[must_use]
    pub fn free_slot(&self, first: u32, number: u32, warps: u32, sub_cores: u32) -> u32 {
        let own = ((first + number) % sub_cores..warps).step_by(sub_cores as usize);
        let free = |slot: &u32| self.resident >> slot & 1 == 0;
        let slot = own.chain(0..warps).find(free);
        slot.expect("the work distributor counts warp slots")
    }

    /// Whether a warp that has lanes to run may execute.
    #[must_use]
    #[inline]
    pub fn may_run(&self, slot: u8) -> bool {
        let bit = 1u64 << slot;
        self.resident & bit != 0 && (self.held | self.waiting) & bit == 0
    }

    /// Whether a warp is ready.
    #[must_use]
    #[inline(always)]
    pub fn is_ready(&self, slot: u8) -> bool {
        self.ready >> slot & 1 != 0
    }

    /// A warp is ready.
    #[inline(always)]
    pub fn set_ready(&mut self, slot: u8) {
        self.ready |= 1 << slot;
    }

    /// A warp is not ready.
    #[inline(always)]
    pub fn clear_ready(&mut self, slot: u8) {
        self.ready &= !(1 << slot);
    }

    /// A warp waits for a fence, the heap or its sleep.
    pub fn hold(&mut self, slot: u8) {
        self.held |= 1 << slot;
    }

    /// A warp has ended: its slot is free.
    pub fn leave(&mut self, slot: u8) {
        self.resident &= !(1 << slot);
        self.clear_ready(slot);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warps_are_dealt_to_sub_cores_and_fill_what_is_left() {
        let mut slots = WarpSlots::default();
        for number in 0..4 {
            let slot = slots.free_slot(0, number, 8, 4);
            slots.resident |= 1 << slot;
        }
        assert_eq!(slots.resident, 0b1111);
        slots.resident = 0b0101_0101;
        // Sub-core 2 is full, so its warp goes to the lowest free slot.
        assert_eq!(slots.free_slot(1, 1, 8, 4), 1);
    }

    #[test]
    fn a_warp_that_is_held_or_waits_may_not_run() {
        let mut slots = WarpSlots {
            resident: 0b11,
            ..WarpSlots::default()
        };
        assert!(slots.may_run(0) && !slots.may_run(2));
        slots.hold(0);
        slots.waiting = 0b10;
        assert!(!slots.may_run(0) && !slots.may_run(1));
    }
}
