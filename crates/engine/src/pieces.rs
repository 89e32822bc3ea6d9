//! Partitions that nobody owns: whoever has time runs a piece of their window.
//!
//! When 16 workers have 132 SMs of the same cost, somebody has nine and all wait for it. So the four that are
//! too many go to nobody: their windows are cut into pieces, and workers with less than their share run one
//! between two partitions of their own. A piece begins when the one before it has ended, on whichever worker.

use std::sync::atomic::{AtomicU32, Ordering};

use lockstep_units::Time;

use crate::Window;
use crate::sync::Padded;

/// Pieces of a window, unless delays are tested.
pub(crate) const PIECES: u32 = 4;

/// The owner of a partition that has none.
pub(crate) const NOBODY: u32 = u32::MAX;

/// Set while a worker runs a piece.
const BUSY: u32 = 1;
/// One piece that was run, above that bit.
const ONE: u32 = 2;

/// How far the partitions without owner are, by their place in the plan.
pub(crate) struct Pieces(Box<[Padded<AtomicU32>]>);

impl Pieces {
    /// For at most so many partitions.
    pub(crate) fn new(partitions: usize) -> Self {
        Self((0..partitions).map(|_| Padded::default()).collect())
    }

    /// Makes the first `count` ready for a step, while the workers wait.
    pub(crate) fn reset(&self, count: usize) {
        for state in &self.0[..count] {
            state.0.store(0, Ordering::Relaxed);
        }
    }

    /// Takes the next piece of one of the first `count` partitions, the one that is least far, if somebody
    /// else does not run it: the place of the partition and the number of the piece, of `pieces`.
    pub(crate) fn take(&self, count: usize, pieces: u32) -> Option<(usize, u32)> {
        loop {
            let states = self.0[..count].iter().enumerate();
            let (place, state) = states
                .map(|(place, state)| (place, state.0.load(Ordering::Relaxed)))
                .filter(|(_, state)| state & BUSY == 0 && *state < pieces * ONE)
                .min_by_key(|(_, state)| *state)?;
            let busy = state | BUSY;
            // What the piece before left behind is seen by this one.
            let taken =
                self.0[place]
                    .0
                    .compare_exchange(state, busy, Ordering::Acquire, Ordering::Relaxed);
            if taken.is_ok() {
                return Some((place, state / ONE));
            }
        }
    }

    /// Whoever took this piece has run it; `over` if nothing is left to do in the window.
    pub(crate) fn finish(&self, place: usize, piece: u32, over: bool) {
        let next = if over { !BUSY } else { (piece + 1) * ONE };
        self.0[place].0.store(next, Ordering::Release);
    }
}

/// When a piece of a window ends.
pub(crate) fn end_of(window: Window, piece: u32, pieces: u32) -> Time {
    if piece + 1 == pieces {
        return window.end;
    }
    let length = window.length().0 / u64::from(pieces);
    Time(window.start.0 + length * u64::from(piece + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_taken_in_turn_and_once() {
        let pieces = Pieces::new(3);
        pieces.reset(2);
        assert_eq!(pieces.take(2, 2), Some((0, 0)));
        assert_eq!(pieces.take(2, 2), Some((1, 0)));
        assert_eq!(pieces.take(2, 2), None, "both are being run");
        pieces.finish(1, 0, false);
        assert_eq!(pieces.take(2, 2), Some((1, 1)));
        pieces.finish(1, 1, false);
        pieces.finish(0, 0, true);
        assert_eq!(pieces.take(2, 2), None, "nothing is left");
    }

    #[test]
    fn pieces_cover_the_window() {
        let window = Window {
            start: Time(100),
            end: Time(203),
        };
        let ends: Vec<u64> = (0..4).map(|piece| end_of(window, piece, 4).0).collect();
        assert_eq!(ends, [125, 150, 175, 203]);
    }
}
