//! What a warp executed, instruction by instruction: written by an SM that is traced, read by one that
//! replays a trace.
//!
//! A module may carry the traces of its blocks ([`crate::Module::trace`]). Then an SM takes from them
//! which instruction a warp executes next, with which lanes and where they access memory; no values
//! are computed.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::warp_register::{LANES, Mask, lanes_of};

/// Registers that take addresses when a trace is replayed, the last ones of a warp: one for the place in shared memory of
/// a copy, and a pair.
pub const ADDRESS_REGISTERS: u16 = 3;

/// One instruction that a warp executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedInstruction {
    /// Its index in the code.
    pub index: u32,
    /// Lanes that were at it.
    pub active: Mask,
    /// Lanes that executed it.
    pub lanes: Mask,
    /// How many places each of these lanes named: 2 for a copy, the first of them in shared memory.
    pub places: u8,
}

/// Everything that one warp executed, in its order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WarpTrace {
    /// The instructions.
    pub instructions: Vec<TracedInstruction>,
    /// The addresses of lanes that executed, of all instructions one after the other.
    pub addresses: Vec<u64>,
}

impl WarpTrace {
    /// Adds an instruction whose lanes access no memory.
    pub fn push(&mut self, index: u32, active: Mask, lanes: Mask) {
        self.instructions.push(TracedInstruction {
            index,
            active,
            lanes,
            places: 0,
        });
    }

    /// Adds a place for each lane that executed the last instruction.
    pub fn push_places(&mut self, addresses: &[u64; LANES]) {
        if let Some(last) = self.instructions.last_mut() {
            last.places += 1;
            self.addresses
                .extend(lanes_of(last.lanes).map(|lane| addresses[lane]));
        }
    }
}

/// A way through a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceCursor {
    instruction: usize,
    address: usize,
}

impl TraceCursor {
    /// The instruction that comes next; none at the end.
    #[must_use]
    pub fn next(&self, trace: &WarpTrace) -> Option<TracedInstruction> {
        trace.instructions.get(self.instruction).copied()
    }

    /// The addresses of a place that it names; 0 for lanes that do not execute it.
    #[must_use]
    pub fn addresses(&self, trace: &WarpTrace, place: u8) -> [u64; LANES] {
        let mut addresses = [0; LANES];
        let Some(next) = self.next(trace).filter(|next| place < next.places) else {
            return addresses;
        };
        let first = self.address + usize::from(place) * next.lanes.count_ones() as usize;
        let given = trace.addresses.get(first..).unwrap_or_default();
        for (lane, address) in lanes_of(next.lanes).zip(given) {
            addresses[lane] = *address;
        }
        addresses
    }

    /// Goes past it.
    pub fn advance(&mut self, trace: &WarpTrace) {
        if let Some(next) = self.next(trace) {
            self.instruction += 1;
            self.address += usize::from(next.places) * next.lanes.count_ones() as usize;
        }
    }
}

/// Where the traces of the blocks of a kernel come from. Blocks may be asked for in any order, each
/// once, and the answer depends on the number alone.
pub trait TraceSource: fmt::Debug + Send + Sync {
    /// What the warps of a block executed, one for each warp that it has.
    ///
    /// # Errors
    /// A sentence, if the trace cannot be read.
    fn block(&self, block: u64) -> Result<Vec<WarpTrace>, String>;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_finds_what_was_pushed() {
        let mut trace = WarpTrace::default();
        trace.push(3, 0b111, 0b101);
        let shared: [u64; LANES] = std::array::from_fn(|lane| lane as u64);
        trace.push_places(&shared);
        trace.push_places(&shared.map(|address| address + 100));
        trace.push(4, 0b111, 0b111);
        let mut cursor = TraceCursor::default();
        assert_eq!(cursor.next(&trace).map(|next| next.places), Some(2));
        assert_eq!(cursor.addresses(&trace, 0)[..4], [0, 0, 2, 0]);
        assert_eq!(cursor.addresses(&trace, 1)[..4], [100, 0, 102, 0]);
        assert_eq!(cursor.addresses(&trace, 2), [0; LANES]);
        cursor.advance(&trace);
        assert_eq!(cursor.next(&trace).map(|next| next.index), Some(4));
        cursor.advance(&trace);
        assert_eq!(cursor.next(&trace), None);
    }
}
