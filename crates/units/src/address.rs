//! Addresses of simulated memory.

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

use crate::quantity::textual;
use crate::{Bytes, ParseError};

/// A simulated address: "0x7f0000000200".
#[derive(Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address(pub u64);

impl Address {
    fn read(text: &str) -> Result<Self, ParseError> {
        let trimmed = text.trim();
        let refused = || ParseError::NoNumber {
            text: crate::text::quoted(text),
            what: "an address of up to 64 bits",
            example: "0x7f0000000200",
        };
        // `from_str_radix` would accept a sign, which no address has.
        let digits = trimmed
            .strip_prefix("0x")
            .filter(|digits| !digits.starts_with('+'));
        let digits = digits.ok_or_else(refused)?.replace('_', "");
        u64::from_str_radix(&digits, 16)
            .map(Self)
            .map_err(|_| refused())
    }

    fn print(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&format!("{:#x}", self.0))
    }

    const fn raw(self) -> u64 {
        self.0
    }

    const fn from_raw(raw: u64) -> Option<Self> {
        Some(Self(raw))
    }

    /// The start of the block of `size` bytes that holds this address; `size` is a power of two.
    #[inline]
    pub const fn align_down(self, size: Bytes) -> Self {
        debug_assert!(size.0.is_power_of_two());
        Self(self.0 & !(size.0 - 1))
    }

    /// How far into its block of `size` bytes this address is; `size` is a power of two.
    #[inline]
    pub const fn offset_in(self, size: Bytes) -> Bytes {
        debug_assert!(size.0.is_power_of_two());
        Bytes(self.0 & (size.0 - 1))
    }

    /// The address `size` further, unless it would pass the end.
    #[inline]
    pub fn checked_add(self, size: Bytes) -> Option<Self> {
        self.0.checked_add(size.0).map(Self)
    }
}

textual!(
    Address,
    "an address in hexadecimal, such as \"0x7f0000000200\""
);

impl Add<Bytes> for Address {
    type Output = Self;
    fn add(self, size: Bytes) -> Self {
        Self(self.0 + size.0)
    }
}

impl AddAssign<Bytes> for Address {
    fn add_assign(&mut self, size: Bytes) {
        self.0 += size.0;
    }
}

impl Sub for Address {
    type Output = Bytes;
    fn sub(self, lower: Self) -> Bytes {
        Bytes(self.0 - lower.0)
    }
}

impl fmt::LowerHex for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::LowerHex::fmt(&self.0, f)
    }
}
