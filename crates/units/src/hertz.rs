//! Frequencies, and where the edges of a clock fall.

use std::num::NonZero;

use crate::quantity::rate;
use crate::text::{Printing, Scale, Unit};
use crate::{Cycle, Cycles, Duration, Time};

/// The frequency of a clock, above zero: "1.41 GHz".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hertz(NonZero<u64>);

static SCALE: Scale = Scale {
    what: "a frequency",
    example: "1.41 GHz",
    printing: Printing::Decimal,
    units: &[
        Unit::printed("Hz", 1),
        Unit::printed("kHz", 1_000),
        Unit::printed("MHz", 1_000_000),
        Unit::printed("GHz", 1_000_000_000),
    ],
};

rate!(
    Hertz,
    SCALE,
    "a frequency above zero with its unit, such as \"1.41 GHz\""
);

/// Femtoseconds in a second.
pub(crate) const SECOND: u64 = 1_000_000_000_000_000;

impl Hertz {
    /// A frequency in cycles per second; none for zero.
    pub const fn new(per_second: u64) -> Option<Self> {
        Self::from_raw(per_second)
    }

    /// So many million cycles per second.
    ///
    /// # Panics
    /// For zero: the caller writes a constant.
    pub const fn mega(count: u64) -> Self {
        Self::new(count * 1_000_000).expect("a clock ticks: its frequency is above zero")
    }

    /// Cycles per second.
    pub const fn get(self) -> u64 {
        self.raw()
    }

    /// When the edge after `cycle` cycles falls, rounded down to a femtosecond.
    ///
    /// Computed from the count and never accumulated, so the edges of a clock do not drift.
    /// Edges past the end of time fall at [`Time::NEVER`].
    pub fn edge(self, cycle: Cycle) -> Time {
        let exact = u128::from(cycle.0) * u128::from(SECOND) / u128::from(self.raw());
        Time(u64::try_from(exact).unwrap_or(u64::MAX))
    }

    /// The first cycle whose edge is not before `time`: the inverse of [`Hertz::edge`].
    pub fn cycle_at_or_after(self, time: Time) -> Cycle {
        let exact = (u128::from(time.0) * u128::from(self.raw())).div_ceil(u128::from(SECOND));
        Cycle(u64::try_from(exact).unwrap_or(u64::MAX))
    }

    /// How long so many cycles last, rounded up to a femtosecond: for latencies, which may not be
    /// shorter than asked for.
    pub fn duration(self, cycles: Cycles) -> Duration {
        let exact = (u128::from(cycles.0) * u128::from(SECOND)).div_ceil(u128::from(self.raw()));
        Duration(u64::try_from(exact).unwrap_or(u64::MAX))
    }

    /// How many whole cycles fit in a length of time.
    pub fn whole_cycles(self, length: Duration) -> Cycles {
        let exact = u128::from(length.0) * u128::from(self.raw()) / u128::from(SECOND);
        Cycles(u64::try_from(exact).unwrap_or(u64::MAX))
    }
}
