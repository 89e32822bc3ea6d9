//! Instants and lengths of simulated time, in femtoseconds.

use std::ops::{Add, AddAssign, Div, Mul, Sub};

use crate::quantity::scaled;
use crate::text::{Printing, Scale, Unit};

/// An instant of simulated time, in femtoseconds since the simulation began.
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Time(pub u64);

/// A length of simulated time, in femtoseconds: "23840 ps".
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub u64);

const UNITS: &[Unit] = &[
    Unit::printed("fs", 1),
    Unit::printed("ps", 1_000),
    Unit::printed("ns", 1_000_000),
    Unit::printed("us", 1_000_000_000),
    Unit::read("µs", 1_000_000_000),
    Unit::printed("ms", 1_000_000_000_000),
    Unit::printed("s", 1_000_000_000_000_000),
];

static INSTANT: Scale = Scale {
    what: "a time",
    example: "1.5 us",
    printing: Printing::Decimal,
    units: UNITS,
};
static LENGTH: Scale = Scale {
    what: "a duration",
    example: "1.5 us",
    printing: Printing::Decimal,
    units: UNITS,
};

scaled!(Time, INSTANT, "a time with its unit, such as \"1.5 us\"");
scaled!(
    Duration,
    LENGTH,
    "a duration with its unit, such as \"1.5 us\""
);

impl Time {
    /// When the simulation begins.
    pub const ZERO: Self = Self(0);
    /// After every event: what has no time yet.
    pub const NEVER: Self = Self(u64::MAX);

    /// Whole nanoseconds since the beginning, rounded down.
    pub const fn nanoseconds(self) -> u64 {
        self.0 / 1_000_000
    }

    /// How long after `earlier` this is; nothing if it is before.
    pub const fn since(self, earlier: Self) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
}

impl Duration {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// So many picoseconds.
    pub const fn picoseconds(count: u64) -> Self {
        Self(count * 1_000)
    }

    /// So many nanoseconds.
    pub const fn nanoseconds(count: u64) -> Self {
        Self(count * 1_000_000)
    }

    /// So many microseconds.
    pub const fn microseconds(count: u64) -> Self {
        Self(count * 1_000_000_000)
    }
}

/// Time ends at [`Time::NEVER`]: whatever would come later never comes.
impl Add<Duration> for Time {
    type Output = Self;
    fn add(self, length: Duration) -> Self {
        Self(self.0.saturating_add(length.0))
    }
}

impl AddAssign<Duration> for Time {
    fn add_assign(&mut self, length: Duration) {
        *self = *self + length;
    }
}

impl Sub for Time {
    type Output = Duration;
    fn sub(self, earlier: Self) -> Duration {
        Duration(self.0 - earlier.0)
    }
}

impl Sub<Duration> for Time {
    type Output = Self;
    fn sub(self, length: Duration) -> Self {
        Self(self.0 - length.0)
    }
}

impl Add for Duration {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

impl AddAssign for Duration {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sub for Duration {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<u64> for Duration {
    type Output = Self;
    fn mul(self, count: u64) -> Self {
        Self(self.0 * count)
    }
}

impl Div<Duration> for Duration {
    /// How many times the other fits, rounded down.
    type Output = u64;
    fn div(self, other: Self) -> u64 {
        self.0 / other.0
    }
}
