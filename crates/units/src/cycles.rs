//! Instants and lengths counted in edges of some clock.

use std::fmt;
use std::ops::{Add, AddAssign, Mul, Sub};

use crate::ParseError;
use crate::quantity::textual;
use crate::text::{Printing, Scale, Unit};

/// An instant: the edge after so many cycles of its clock. Printed as "cycle 30".
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cycle(pub u64);

/// A length, in cycles of its clock: "30 cycles".
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cycles(pub u64);

static SCALE: Scale = Scale {
    what: "a number of cycles",
    example: "30 cycles",
    printing: Printing::Whole,
    units: &[Unit::printed("cycles", 1), Unit::read("cycle", 1)],
};

impl Cycle {
    fn read(text: &str) -> Result<Self, ParseError> {
        let refused = || ParseError::NoNumber {
            text: crate::text::quoted(text),
            what: "a cycle",
            example: "cycle 30",
        };
        let number = text
            .trim()
            .strip_prefix("cycle ")
            .ok_or_else(refused)?
            .trim();
        number.parse().map(Self).map_err(|_| refused())
    }

    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("cycle {}", self.0))
    }

    const fn raw(self) -> u64 {
        self.0
    }

    const fn from_raw(raw: u64) -> Option<Self> {
        Some(Self(raw))
    }
}

textual!(Cycle, "a cycle, such as \"cycle 30\"");

impl Cycles {
    fn read(text: &str) -> Result<Self, ParseError> {
        SCALE.parse(text).map(Self)
    }

    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!(
            "{} {}",
            self.0,
            if self.0 == 1 { "cycle" } else { "cycles" }
        ))
    }

    const fn raw(self) -> u64 {
        self.0
    }

    const fn from_raw(raw: u64) -> Option<Self> {
        Some(Self(raw))
    }
}

textual!(Cycles, "a number of cycles, such as \"30 cycles\"");

impl Add<Cycles> for Cycle {
    type Output = Self;
    fn add(self, length: Cycles) -> Self {
        Self(self.0 + length.0)
    }
}

impl AddAssign<Cycles> for Cycle {
    fn add_assign(&mut self, length: Cycles) {
        self.0 += length.0;
    }
}

impl Sub for Cycle {
    type Output = Cycles;
    fn sub(self, earlier: Self) -> Cycles {
        Cycles(self.0 - earlier.0)
    }
}

impl Add for Cycles {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0 + other.0)
    }
}

impl AddAssign for Cycles {
    fn add_assign(&mut self, other: Self) {
        self.0 += other.0;
    }
}

impl Sub for Cycles {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self(self.0 - other.0)
    }
}

impl Mul<u64> for Cycles {
    type Output = Self;
    fn mul(self, count: u64) -> Self {
        Self(self.0 * count)
    }
}
