//! Sizes of memory.

use std::ops::{Add, AddAssign, Div, Mul, Sub};

use crate::quantity::scaled;
use crate::text::{Printing, Scale, Unit};

/// An amount of memory: "512 KiB".
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

static SCALE: Scale = Scale {
    what: "a size",
    example: "512 KiB",
    printing: Printing::Whole,
    units: &[
        Unit::printed("B", 1),
        Unit::read("kB", 1_000),
        Unit::printed("KiB", 1 << 10),
        Unit::read("MB", 1_000_000),
        Unit::printed("MiB", 1 << 20),
        Unit::read("GB", 1_000_000_000),
        Unit::printed("GiB", 1 << 30),
        Unit::read("TB", 1_000_000_000_000),
        Unit::printed("TiB", 1 << 40),
    ],
};

scaled!(Bytes, SCALE, "a size with its unit, such as \"512 KiB\"");

impl Bytes {
    /// So many kibibytes.
    pub const fn kibi(count: u64) -> Self {
        Self(count << 10)
    }

    /// So many mebibytes.
    pub const fn mebi(count: u64) -> Self {
        Self(count << 20)
    }

    /// So many gibibytes.
    pub const fn gibi(count: u64) -> Self {
        Self(count << 30)
    }
}

impl Add for Bytes {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Bytes {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Bytes {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<u64> for Bytes {
    type Output = Self;
    fn mul(self, count: u64) -> Self {
        Self(self.0 * count)
    }
}

impl Div<Bytes> for Bytes {
    /// How many times the other fits, rounded down.
    type Output = u64;
    fn div(self, other: Self) -> u64 {
        self.0 / other.0
    }
}
