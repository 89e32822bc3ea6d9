//! Barriers of a block.
//!
//! Lanes arrive one by one or together; a warp has arrived when all its lanes that are awaited
//! are there, and then counts as 32 threads, as the hardware counts. Of machine code, lanes that
//! cannot run are not awaited. Without a number of threads a barrier waits for every warp of the
//! block that has not ended.

use lockstep_isa::Mask;
use serde::{Deserialize, Serialize};

/// Barriers that a block has.
pub const BARRIERS: usize = 16;

/// Warps that a block can have.
pub const BLOCK_WARPS: usize = 32;

/// One barrier in its current phase.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Barrier {
    /// Lanes of each warp that are here, as far as the warp is not counted yet.
    partial: Vec<Mask>,
    /// Warps that were counted, one bit each.
    counted: u32,
    /// Threads counted, 32 a warp.
    threads: u32,
    /// Threads to wait for; `None`: the whole block.
    expected: Option<u32>,
    /// Lanes whose predicate held.
    population: u32,
    /// Whether all predicates held so far.
    all: bool,
    /// Whether any predicate held so far.
    any: bool,
}

/// What a reduction over a barrier found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reduced {
    /// Threads whose predicate held.
    pub population: u32,
    /// All did.
    pub all: bool,
    /// One did.
    pub any: bool,
}

impl Barrier {
    /// Whether anybody is here.
    #[must_use]
    pub fn is_used(&self) -> bool {
        !self.partial.is_empty()
    }

    /// Threads counted so far and those waited for, for reports.
    #[must_use]
    pub fn progress(&self) -> (u32, Option<u32>) {
        (self.threads, self.expected)
    }

    /// Lanes of a warp arrive, of which those `awaited` make it complete; `holds` are those whose predicate holds.
    pub fn arrive(
        &mut self,
        warp: usize,
        lanes: Mask,
        awaited: Mask,
        expected: Option<u32>,
        holds: Mask,
    ) {
        if self.partial.is_empty() {
            self.partial = vec![0; BLOCK_WARPS];
            self.all = true;
        }
        self.expected = expected;
        self.partial[warp] |= lanes;
        self.population += (holds & lanes).count_ones();
        self.all &= holds & lanes == lanes;
        self.any |= holds & lanes != 0;
        self.count(warp, awaited);
    }

    /// Lanes of a warp have ended: fewer are waited for.
    pub fn ended(&mut self, warp: usize, live: Mask) {
        if self.is_used() {
            self.count(warp, live);
        }
    }

    fn count(&mut self, warp: usize, live: Mask) {
        if self.partial[warp] != 0 && live & !self.partial[warp] == 0 {
            self.partial[warp] = 0;
            self.counted |= 1 << warp;
            self.threads += 32;
        }
    }

    /// If the phase is complete, ends it and gives its reduction. `live` has a bit for each warp
    /// of the block that has not ended.
    pub fn complete(&mut self, live: u32) -> Option<Reduced> {
        let complete = self.is_used()
            && match self.expected {
                Some(threads) => self.threads >= threads,
                None => live & !self.counted == 0 && self.counted != 0,
            };
        complete.then(|| {
            let reduced = Reduced {
                population: self.population,
                all: self.all,
                any: self.any,
            };
            *self = Self::default();
            reduced
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_whole_block_is_waited_for() {
        let mut barrier = Barrier::default();
        barrier.arrive(0, !0, !0, None, 0b11);
        assert_eq!(barrier.complete(0b11), None);
        barrier.arrive(1, 0xf, 0xf, None, 0xf);
        let reduced = barrier.complete(0b11).unwrap();
        assert_eq!(
            (reduced.population, reduced.all, reduced.any),
            (6, false, true)
        );
        assert!(!barrier.is_used());
    }

    #[test]
    fn lanes_may_come_apart_and_ended_ones_are_not_waited_for() {
        let mut barrier = Barrier::default();
        barrier.arrive(0, 0xff, !0, None, 0);
        assert_eq!(barrier.complete(1), None);
        barrier.ended(0, 0xffff);
        assert_eq!(barrier.complete(1), None);
        barrier.ended(0, 0xff);
        assert!(barrier.complete(1).is_some());
    }

    #[test]
    fn an_ended_warp_is_not_waited_for() {
        let mut barrier = Barrier::default();
        barrier.arrive(0, !0, !0, None, 0);
        assert!(barrier.complete(0b11).is_none());
        assert!(barrier.complete(0b01).is_some());
    }

    #[test]
    fn a_count_may_be_reached_by_one_warp_twice() {
        let mut barrier = Barrier::default();
        barrier.arrive(0, !0, !0, Some(64), 0);
        assert!(barrier.complete(0b111).is_none());
        barrier.arrive(0, !0, !0, Some(64), 0);
        assert!(barrier.complete(0b111).is_some());
    }
}
