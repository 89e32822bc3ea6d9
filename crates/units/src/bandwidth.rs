//! Rates at which bytes pass.

use std::num::NonZero;

use crate::hertz::SECOND;
use crate::quantity::rate;
use crate::text::{Printing, Scale, Unit};
use crate::{Bytes, Duration, Hertz};

/// Bytes per second, above zero: "16 GB/s".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bandwidth(NonZero<u64>);

/// Bytes per cycle of some clock, above zero: "64 B/cycle".
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BytesPerCycle(NonZero<u64>);

static PER_SECOND: Scale = Scale {
    what: "a bandwidth",
    example: "16 GB/s",
    printing: Printing::Decimal,
    units: &[
        Unit::printed("B/s", 1),
        Unit::printed("kB/s", 1_000),
        Unit::read("KiB/s", 1 << 10),
        Unit::printed("MB/s", 1_000_000),
        Unit::read("MiB/s", 1 << 20),
        Unit::printed("GB/s", 1_000_000_000),
        Unit::read("GiB/s", 1 << 30),
        Unit::printed("TB/s", 1_000_000_000_000),
        Unit::read("TiB/s", 1 << 40),
        Unit::read("Mbit/s", 125_000),
        Unit::read("Gbit/s", 125_000_000),
    ],
};

static PER_CYCLE: Scale = Scale {
    what: "a bandwidth per cycle",
    example: "64 B/cycle",
    printing: Printing::Whole,
    units: &[Unit::printed("B/cycle", 1)],
};

rate!(
    Bandwidth,
    PER_SECOND,
    "a bandwidth above zero with its unit, such as \"16 GB/s\""
);
rate!(
    BytesPerCycle,
    PER_CYCLE,
    "a bandwidth above zero per cycle, such as \"64 B/cycle\""
);

impl Bandwidth {
    /// A rate in bytes per second; none for zero.
    pub const fn new(per_second: u64) -> Option<Self> {
        Self::from_raw(per_second)
    }

    /// Bytes per second.
    pub const fn get(self) -> u64 {
        self.raw()
    }

    /// How long so many bytes take to pass, rounded up to a femtosecond.
    #[inline]
    pub fn time_for(self, size: Bytes) -> Duration {
        // Messages are small: nearly all products fit in 64 bits, where division is quick.
        let exact = match size.0.checked_mul(SECOND) {
            Some(product) => u128::from(product.div_ceil(self.raw())),
            None => (u128::from(size.0) * u128::from(SECOND)).div_ceil(u128::from(self.raw())),
        };
        Duration(u64::try_from(exact).unwrap_or(u64::MAX))
    }
}

impl BytesPerCycle {
    /// A rate in bytes per cycle; none for zero.
    pub const fn new(per_cycle: u64) -> Option<Self> {
        Self::from_raw(per_cycle)
    }

    /// Bytes per cycle.
    pub const fn get(self) -> u64 {
        self.raw()
    }

    /// The same rate in seconds, at a given clock; the largest there is if it would be more.
    pub const fn at(self, clock: Hertz) -> Bandwidth {
        Bandwidth(self.0.saturating_mul(match NonZero::new(clock.get()) {
            Some(clock) => clock,
            None => NonZero::<u64>::MIN,
        }))
    }
}
