//! The words that stand behind dots.

use std::fmt;

/// A word behind a dot, of an opcode or of an operand, as a row or a set of the tables spells it. The
/// tables are the only list of words; those here are the ones that the code itself asks for.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Modifier(&'static str);

impl Modifier {
    /// `X`: with a carry from before.
    pub const X: Self = Self("X");
    /// `MOV`, an `IMAD` that moves.
    pub const MOV: Self = Self("MOV");
    /// `SHL`, an `IMAD` that shifts.
    pub const SHL: Self = Self("SHL");
    /// `IADD`, an `IMAD` that adds.
    pub const IADD: Self = Self("IADD");
    /// `64`: of 64 bits.
    pub const N64: Self = Self("64");
    /// `U32`: of 32 bits without sign.
    pub const U32: Self = Self("U32");
    /// `X4`: an index in units of 4 bytes.
    pub const X4: Self = Self("X4");
    /// `X8`: an index in units of 8 bytes.
    pub const X8: Self = Self("X8");
    /// `X16`: an index in units of 16 bytes.
    pub const X16: Self = Self("X16");

    /// The modifier that is spelled `name`.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// The spelling.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.0
    }
}

impl fmt::Debug for Modifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}
