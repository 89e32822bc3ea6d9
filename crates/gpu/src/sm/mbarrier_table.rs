//! The barriers (`mbarrier`) of one block, apart from the memory that they are in.
//!
//! On an H200 loads from a barrier find what was stored there before, and stores do not change it: the unit
//! that works on barriers keeps them for itself until they are invalidated.

use lockstep_isa::semantics::mbarrier::{self, Change};
use serde::{Deserialize, Serialize};

/// Bytes of a barrier.
pub const BYTES: usize = 8;

/// States by place, in the order in which they were set up.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MbarrierTable {
    barriers: Vec<(u32, u64)>,
}

impl MbarrierTable {
    /// The state at a place, which must be in `memory`. One that nobody has set up is what memory says.
    pub fn state(&mut self, place: u32, memory: &[u8]) -> &mut u64 {
        let known = self.barriers.iter().position(|(at, _)| *at == place);
        let index = known.unwrap_or_else(|| {
            let mut bytes = [0; BYTES];
            let at = place as usize;
            bytes.copy_from_slice(&memory[at..at + BYTES]);
            self.barriers.push((place, u64::from_le_bytes(bytes)));
            self.barriers.len() - 1
        });
        &mut self.barriers[index].1
    }

    /// Whether somebody has set up a barrier there.
    #[must_use]
    pub fn is_known(&self, place: u32) -> bool {
        self.barriers.iter().any(|(at, _)| *at == place)
    }

    /// The place is no barrier any more: memory has what its state was.
    pub fn write_back(&mut self, place: u32, memory: &mut [u8]) {
        self.barriers.retain(|(at, state)| {
            if *at == place {
                let at = place as usize;
                memory[at..at + BYTES].copy_from_slice(&state.to_le_bytes());
            }
            *at != place
        });
    }

    /// All states, with their places.
    pub fn states(&self) -> impl Iterator<Item = (u32, u64)> {
        self.barriers.iter().copied()
    }

    /// Changes a barrier. Gives its state before, and whether a phase has ended; `None` if more arrive than
    /// were pending.
    pub fn change(&mut self, place: u32, change: Change, memory: &[u8]) -> Option<(u64, bool)> {
        let state = self.state(place, memory);
        let old = *state;
        let (new, ended) = mbarrier::change(old, change)?;
        *state = new;
        Some((old, ended))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_barrier_is_apart_from_its_memory() {
        let mut table = MbarrierTable::default();
        let mut memory = [0; 32];
        *table.state(16, &memory) = mbarrier::initial(2);
        let one = Change {
            arrivals: 1,
            ..Change::default()
        };
        assert!(!table.change(16, one, &memory).unwrap().1);
        assert!(table.change(16, one, &memory).unwrap().1);
        assert_eq!(memory, [0; 32]);
        table.write_back(16, &mut memory);
        let left = mbarrier::initial(2) ^ 1 << 63;
        assert_eq!(memory[16..24], left.to_le_bytes());
    }
}
