//! Strong accesses of one SM that their slices have not answered yet.
//!
//! While a sector has one, other accesses of the SM to it follow to the slice. Fences wait until
//! everything sent before them is answered: accesses carry a generation, a fence closes it.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::memory::table::SectorTable;

/// What is under way.
#[derive(Clone, Debug, Default)]
pub struct InFlight {
    sectors: SectorTable,
    /// Unanswered accesses of each generation, the oldest first; the last one is open.
    generations: VecDeque<u64>,
    /// Number of the first generation in the queue.
    base: u64,
}

/// [`InFlight`] as it is saved.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Saved {
    sectors: Vec<(u64, u32)>,
    generations: Vec<u64>,
    base: u64,
}

impl InFlight {
    /// Whether nothing is under way.
    #[must_use]
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.sectors.is_empty()
    }

    /// Whether an access to this sector is under way.
    #[must_use]
    #[inline]
    pub fn holds(&self, sector: u64) -> bool {
        !self.sectors.is_empty() && self.sectors.get(sector).is_some()
    }

    /// An access leaves; its generation comes back with the answer.
    pub fn start(&mut self, sector: u64) -> u64 {
        *self.sectors.entry(sector, 0).0 += 1;
        if self.generations.is_empty() {
            self.generations.push_back(0);
        }
        let last = self.generations.len() - 1;
        self.generations[last] += 1;
        self.base + last as u64
    }

    /// An access was answered.
    ///
    /// # Panics
    /// If it had not left: an answer without a question is a fault of ours.
    pub fn finish(&mut self, sector: u64, generation: u64) {
        let (count, missing) = self.sectors.entry(sector, 0);
        assert!(
            !missing && *count > 0,
            "an answer for sector {sector:#x} that nobody asked for"
        );
        *count -= 1;
        if *count == 0 {
            self.sectors.remove(sector);
        }
        self.generations[(generation - self.base) as usize] -= 1;
        self.retire();
    }

    /// Closes the open generation and gives its number, or `None` if nothing is under way.
    pub fn close(&mut self) -> Option<u64> {
        if self.sectors.is_empty() {
            return None;
        }
        let last = self.generations.len() - 1;
        if self.generations[last] == 0 {
            // Nothing left since the last fence: wait for what that one waits for.
            return Some(self.base + last as u64 - 1);
        }
        self.generations.push_back(0);
        Some(self.base + last as u64)
    }

    /// Whether all accesses up to this generation were answered.
    #[must_use]
    #[inline]
    pub fn drained(&self, generation: u64) -> bool {
        generation < self.base
    }

    fn retire(&mut self) {
        while self.generations.len() > 1 && self.generations[0] == 0 {
            self.generations.pop_front();
            self.base += 1;
        }
    }

    /// For saving.
    #[must_use]
    pub fn saved(&self) -> Saved {
        Saved {
            sectors: self.sectors.sorted(),
            generations: self.generations.iter().copied().collect(),
            base: self.base,
        }
    }

    /// From what was saved.
    #[must_use]
    pub fn from_saved(saved: Saved) -> Self {
        let mut sectors = SectorTable::default();
        for (sector, count) in saved.sectors {
            sectors.entry(sector, count);
        }
        Self {
            sectors,
            generations: saved.generations.into(),
            base: saved.base,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fence_waits_for_what_came_before_and_for_nothing_else() {
        let mut flight = InFlight::default();
        assert_eq!(flight.close(), None);
        let first = flight.start(1);
        let fence = flight.close().unwrap();
        let second = flight.start(2);
        assert!(!flight.drained(fence));
        let later = flight.close().unwrap();
        assert_eq!(flight.close(), Some(later), "nothing left in between");
        flight.finish(2, second);
        assert!(!flight.drained(fence));
        assert!(
            !flight.drained(later),
            "the older access is still under way"
        );
        flight.finish(1, first);
        assert!(flight.drained(fence) && flight.drained(later));
        assert!(flight.is_empty());
    }

    #[test]
    fn sectors_are_counted() {
        let mut flight = InFlight::default();
        let generation = flight.start(7);
        flight.start(7);
        flight.finish(7, generation);
        assert!(flight.holds(7) && !flight.holds(8));
        flight.finish(7, generation);
        assert!(!flight.holds(7));
    }
}
