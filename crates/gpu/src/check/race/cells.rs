//! Who touched each word of shared memory last.
//!
//! A word remembers four accesses. One that is ordered before a newer access which covers it is forgotten; if there is
//! no room, so is one of the others, and a race with it is missed.

use serde::{Deserialize, Serialize};

use super::clocks::Clocks;

/// Accesses that a word remembers.
const SLOTS: usize = 4;

/// What an access is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum AccessKind {
    /// None yet.
    #[default]
    Empty,
    /// A load.
    Read,
    /// A store.
    Write,
    /// An atomic or a reduction.
    Atomic,
    /// An atomic that swaps values, as locks do, and loops around a compare-and-swap.
    Exchange,
    /// A copy from global memory (`cp.async`), which is done when its group is.
    Copy,
    /// A write of the bulk engine.
    Bulk,
}

impl AccessKind {
    fn writes(self) -> bool {
        !matches!(self, Self::Empty | Self::Read)
    }
}

/// An access to one word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Access {
    /// Load or store.
    pub kind: AccessKind,
    /// The warp, or the bulk engine.
    pub agent: u8,
    /// Bytes of the word, a bit each.
    pub bytes: u8,
    /// The agent's clock; of a copy, its group.
    pub clock: u32,
    /// Lanes that did so.
    pub lanes: u32,
    /// The instruction.
    pub pc: u32,
    /// What was written.
    pub value: u32,
}

/// Whose access is looked at now.
#[derive(Clone, Copy, Debug)]
pub struct Who {
    /// The warp that executes.
    pub warp: usize,
    /// The lane.
    pub lane: usize,
}

/// The last accesses of a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cell {
    slots: [Access; SLOTS],
}

impl Cell {
    /// Adds an access, and gives an earlier one that nothing orders before it although one of them writes.
    pub fn add(&mut self, new: Access, who: Who, clocks: &Clocks) -> Option<Access> {
        let mut hazard = None;
        let (mut room, mut joined) = (None, false);
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if slot.kind == AccessKind::Empty {
                room.get_or_insert(index);
                continue;
            }
            let before = is_before(slot, &new, who, clocks);
            if hazard.is_none() && !before && conflict(slot, &new) {
                hazard = Some(*slot);
            }
            let same = (slot.kind, slot.agent, slot.bytes, slot.clock)
                == (new.kind, new.agent, new.bytes, new.clock);
            if same {
                slot.lanes |= new.lanes;
                slot.pc = new.pc;
                slot.value = new.value;
                joined = true;
            } else if before
                && slot.bytes & !new.bytes == 0
                && (new.kind.writes() || !slot.kind.writes())
            {
                slot.kind = AccessKind::Empty;
                room.get_or_insert(index);
            }
        }
        if !joined {
            self.slots[room.unwrap_or(new.pc as usize % SLOTS)] = new;
        }
        hazard
    }

    /// Forgets all accesses.
    pub fn clear(&mut self) {
        *self = Self::default();
    }
}

/// Whether an access is known to be ordered before a new one.
fn is_before(old: &Access, new: &Access, who: Who, clocks: &Clocks) -> bool {
    let agent = usize::from(old.agent);
    let mut clock = old.clock;
    if old.kind == AccessKind::Copy {
        match clocks.end_of_copies(agent, old.clock) {
            Some(end) => clock = end,
            // Copies of one thread to one place are made in their order, as far as a word can tell.
            None => return new.kind == AccessKind::Copy && agent == who.warp && own(old, who),
        }
    }
    agent == who.warp && own(old, who) || clocks.is_before(agent, clock, who.warp, who.lane)
}

fn own(old: &Access, who: Who) -> bool {
    old.lanes & !(1 << who.lane) == 0
}

/// Whether the order of two accesses matters.
fn conflict(old: &Access, new: &Access) -> bool {
    if old.bytes & new.bytes == 0 || !old.kind.writes() && !new.kind.writes() {
        return false;
    }
    let atomic = |kind| matches!(kind, AccessKind::Atomic | AccessKind::Exchange);
    // A loop around a compare-and-swap begins with a plain load, which may read anything.
    let tries = (old.kind, new.kind) == (AccessKind::Read, AccessKind::Exchange);
    if tries || atomic(old.kind) && atomic(new.kind) {
        return false;
    }
    // Who comes last does not matter if all write the same.
    let stores = (old.kind, new.kind) == (AccessKind::Write, AccessKind::Write);
    let overlap = byte_mask(old.bytes & new.bytes);
    !(stores && (old.value ^ new.value) & overlap == 0)
}

fn byte_mask(bytes: u8) -> u32 {
    (0..4).fold(0, |mask, byte| {
        mask | (u32::from(bytes >> byte & 1) * 0xff) << (8 * byte)
    })
}
