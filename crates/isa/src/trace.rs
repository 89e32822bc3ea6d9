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
    /// For each place of each instruction, one after the other: the address of its first lane, and where the
    /// distances of all its lanes from there are.
    places: Vec<(u64, u32)>,
    /// Distances from the first lane, of patterns that a warp repeats again and again.
    patterns: Vec<u64>,
    /// Where the patterns that were added last begin, and how many lanes they have.
    recent: [(u32, u8); RECENT],
}

/// Patterns that an access is compared with.
const RECENT: usize = 8;

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
        let Some(last) = self.instructions.last_mut() else {
            return;
        };
        last.places += 1;
        let lanes = last.lanes;
        let base = lanes_of(lanes).next().map_or(0, |lane| addresses[lane]);
        let mut distances = [0; LANES];
        for (distance, lane) in distances.iter_mut().zip(lanes_of(lanes)) {
            *distance = addresses[lane].wrapping_sub(base);
        }
        let pattern = self.pattern(&distances[..lanes.count_ones() as usize]);
        self.places.push((base, pattern));
    }

    /// Where a pattern begins, which is added unless it is one of the last.
    fn pattern(&mut self, distances: &[u64]) -> u32 {
        let is_it = |(start, lanes): &&(u32, u8)| {
            let start = *start as usize;
            self.patterns.get(start..start + usize::from(*lanes)) == Some(distances)
        };
        if let Some((start, _)) = self.recent.iter().find(is_it) {
            return *start;
        }
        let start = self.patterns.len() as u32;
        self.patterns.extend_from_slice(distances);
        self.recent.rotate_right(1);
        self.recent[0] = (start, distances.len() as u8);
        start
    }

    /// Gives back what it has reserved and does not need.
    pub fn shrink(&mut self) {
        self.instructions.shrink_to_fit();
        self.places.shrink_to_fit();
        self.patterns.shrink_to_fit();
    }
}

/// A way through a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceCursor {
    instruction: usize,
    place: usize,
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
        let Some((base, pattern)) = trace.places.get(self.place + usize::from(place)) else {
            return addresses;
        };
        let distances = trace.patterns.get(*pattern as usize..).unwrap_or_default();
        for (lane, distance) in lanes_of(next.lanes).zip(distances) {
            addresses[lane] = base.wrapping_add(*distance);
        }
        addresses
    }

    /// Goes past it.
    pub fn advance(&mut self, trace: &WarpTrace) {
        if let Some(next) = self.next(trace) {
            self.instruction += 1;
            self.place += usize::from(next.places);
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

    #[test]
    fn places_come_back_whatever_their_patterns() {
        let place = |number: u64| -> [u64; LANES] {
            let stride = (number * number) % 23;
            std::array::from_fn(|lane| 4096 * number + stride * lane as u64)
        };
        let lanes = |number: u64| (0xffff_ffff_u32 << (number % 5)) ^ (number as u32 % 3);
        let mut trace = WarpTrace::default();
        for number in 0..200 {
            trace.push(number as u32, Mask::MAX, lanes(number));
            trace.push_places(&place(number));
        }
        assert!(trace.patterns.len() < 200 * LANES, "patterns are shared");
        trace.shrink();
        let mut cursor = TraceCursor::default();
        for number in 0..200 {
            let got = cursor.addresses(&trace, 0);
            let wanted = place(number);
            for lane in 0..LANES {
                let executed = lanes(number) >> lane & 1 == 1;
                assert_eq!(got[lane], if executed { wanted[lane] } else { 0 });
            }
            cursor.advance(&trace);
        }
    }
}
