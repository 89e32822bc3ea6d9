//! Bits of [`Instruction::modifiers`](crate::Instruction::modifiers) that shared meanings read.
//!
//! One layout for PTX and SASS, so that one function serves both. A field that a function does
//! not name is its binder's to use, from [`Modifiers::FREE`] upward.

use super::{
    compare::{Boolean, Comparison},
    soft::Rounding,
};

/// A view of the modifier word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Modifiers(pub u64);

impl Modifiers {
    /// Subnormal inputs and results become zero (`.ftz`).
    pub const FLUSH: u64 = 1 << 3;
    /// Results are clamped (`.sat`, `.satfinite`).
    pub const SATURATE: u64 = 1 << 4;
    /// Minimum and maximum give NaN if an operand is NaN (`.NaN`).
    pub const NAN: u64 = 1 << 5;
    /// Sign is the exclusive or of the operands' signs, magnitudes compared (`.xorsign.abs`).
    pub const XOR_SIGN: u64 = 1 << 6;
    /// Negative results become zero (`.relu`).
    pub const RELU: u64 = 1 << 7;
    /// Signed integers.
    pub const SIGNED: u64 = 1 << 15;
    /// Counts wrap instead of clamping (`shf.wrap`, `bfe` on 5 bits).
    pub const WRAP: u64 = 1 << 16;
    /// Carry in (`addc`, `.X`).
    pub const CARRY_IN: u64 = 1 << 17;
    /// Operands are taken as magnitudes (`.abs`).
    pub const ABSOLUTE: u64 = 1 << 18;
    /// Results are integers, as floats (`.rni` and its kin).
    pub const WHOLE: u64 = 1 << 19;
    /// First bit that belongs to a binder alone.
    pub const FREE: u32 = 32;

    /// Bits for a rounding direction.
    #[must_use]
    pub const fn rounding_bits(rounding: Rounding) -> u64 {
        rounding as u64
    }

    /// Bits for a comparison.
    #[must_use]
    pub const fn comparison_bits(comparison: Comparison) -> u64 {
        (comparison as u64) << 8
    }

    /// Bits for how a comparison joins a predicate.
    #[must_use]
    pub const fn boolean_bits(boolean: Boolean) -> u64 {
        (boolean as u64) << 13
    }

    /// Rounding direction.
    #[must_use]
    #[inline(always)]
    pub const fn rounding(self) -> Rounding {
        match self.0 & 7 {
            1 => Rounding::Zero,
            2 => Rounding::Down,
            3 => Rounding::Up,
            4 => Rounding::NearestAway,
            _ => Rounding::Nearest,
        }
    }

    /// Comparison.
    #[must_use]
    #[inline(always)]
    pub const fn comparison(self) -> Comparison {
        Comparison::from_index(self.0 >> 8 & 31)
    }

    /// How a comparison joins a predicate.
    #[must_use]
    #[inline(always)]
    pub const fn boolean(self) -> Boolean {
        match self.0 >> 13 & 3 {
            1 => Boolean::Or,
            2 => Boolean::Xor,
            _ => Boolean::And,
        }
    }

    /// Whether a bit is set.
    #[must_use]
    #[inline(always)]
    pub const fn has(self, bit: u64) -> bool {
        self.0 & bit != 0
    }

    /// Subnormals become zero.
    #[must_use]
    #[inline(always)]
    pub const fn flush(self) -> bool {
        self.has(Self::FLUSH)
    }

    /// Results are clamped.
    #[must_use]
    #[inline(always)]
    pub const fn saturate(self) -> bool {
        self.has(Self::SATURATE)
    }
}
