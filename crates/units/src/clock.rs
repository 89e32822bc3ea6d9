//! A clock that walks from edge to edge without dividing.

use serde::{Deserialize, Serialize};

use crate::hertz::SECOND;
use crate::{Cycle, Hertz, Time};

/// A position on the edges of one clock.
///
/// A component that runs every cycle steps from edge to edge; [`Hertz::edge`] would divide 128
/// bits each time. The clock carries the remainder instead, and always agrees with `Hertz::edge`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    frequency: Hertz,
    cycle: Cycle,
    time: Time,
    /// What `time` was rounded down by, in units of 1/frequency femtoseconds.
    remainder: u64,
}

impl Clock {
    /// A clock at its first edge, at time zero.
    pub const fn new(frequency: Hertz) -> Self {
        Self {
            frequency,
            cycle: Cycle(0),
            time: Time(0),
            remainder: 0,
        }
    }

    /// Edges per second.
    pub const fn frequency(&self) -> Hertz {
        self.frequency
    }

    /// The number of the edge it stands at.
    #[inline]
    pub const fn cycle(&self) -> Cycle {
        self.cycle
    }

    /// When that edge falls.
    #[inline]
    pub const fn time(&self) -> Time {
        self.time
    }

    /// Steps to the next edge.
    #[inline]
    pub fn advance(&mut self) {
        let frequency = self.frequency.get();
        self.cycle.0 += 1;
        self.time.0 = self.time.0.saturating_add(SECOND / frequency);
        // Both are below the frequency, which fits; their sum may not fit in 64 bits.
        let (sum, over) = self.remainder.overflowing_add(SECOND % frequency);
        if over || sum >= frequency {
            self.remainder = sum.wrapping_sub(frequency);
            self.time.0 = self.time.0.saturating_add(1);
        } else {
            self.remainder = sum;
        }
    }

    /// Goes to the first edge not before `time`, forwards or backwards.
    pub fn seek(&mut self, time: Time) {
        self.cycle = self.frequency.cycle_at_or_after(time);
        self.time = self.frequency.edge(self.cycle);
        let exact = u128::from(self.cycle.0) * u128::from(SECOND);
        self.remainder = (exact % u128::from(self.frequency.get())) as u64;
    }
}
