//! The present, as the parts of an SM tell it.

use lockstep_units::{Clock, Time};

/// The present, as an SM tells it.
#[derive(Clone, Copy, Debug)]
pub struct Now {
    /// SM cycle.
    pub cycle: u64,
    /// When its edge falls.
    pub time: Time,
    /// Cycles since the start of the epoch.
    pub since: u16,
}

impl Now {
    /// The present of a clock, in an epoch that began in a cycle.
    #[inline]
    #[must_use]
    pub fn of(clock: &Clock, epoch: u64) -> Self {
        let cycle = clock.cycle().0;
        Self {
            cycle,
            time: clock.time(),
            since: (cycle - epoch) as u16,
        }
    }
}

/// A cycle that is not known yet.
pub const PENDING: u64 = u64::MAX;
