//! Comparisons of one lane. PTX ISA, "Comparison and Selection Instructions".

/// Relation between two values. Ordered relations are false when an operand is NaN, the
/// `Unordered` ones true.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Comparison {
    /// Never.
    #[default]
    False,
    /// `a < b`
    Less,
    /// `a = b`
    Equal,
    /// `a ≤ b`
    LessEqual,
    /// `a > b`
    Greater,
    /// `a ≠ b`
    NotEqual,
    /// `a ≥ b`
    GreaterEqual,
    /// Both are numbers.
    Number,
    /// One is not a number.
    NotANumber,
    /// `a < b`, or unordered.
    LessUnordered,
    /// `a = b`, or unordered.
    EqualUnordered,
    /// `a ≤ b`, or unordered.
    LessEqualUnordered,
    /// `a > b`, or unordered.
    GreaterUnordered,
    /// `a ≠ b`, or unordered.
    NotEqualUnordered,
    /// `a ≥ b`, or unordered.
    GreaterEqualUnordered,
    /// Always.
    True,
}

impl Comparison {
    /// By number: bit 0 less, bit 1 equal, bit 2 greater, bit 3 unordered, as SASS encodes it.
    #[must_use]
    pub const fn from_index(index: u64) -> Self {
        match index & 15 {
            0 => Self::False,
            1 => Self::Less,
            2 => Self::Equal,
            3 => Self::LessEqual,
            4 => Self::Greater,
            5 => Self::NotEqual,
            6 => Self::GreaterEqual,
            7 => Self::Number,
            8 => Self::NotANumber,
            9 => Self::LessUnordered,
            10 => Self::EqualUnordered,
            11 => Self::LessEqualUnordered,
            12 => Self::GreaterUnordered,
            13 => Self::NotEqualUnordered,
            14 => Self::GreaterEqualUnordered,
            _ => Self::True,
        }
    }

    /// Whether the relation holds, given how the operands compare.
    #[must_use]
    #[inline(always)]
    pub const fn holds(self, less: bool, equal: bool, greater: bool) -> bool {
        let bits = self as u8;
        let unordered = !(less | equal | greater);
        (bits & 1 != 0) & less
            | (bits & 2 != 0) & equal
            | (bits & 4 != 0) & greater
            | (bits & 8 != 0) & unordered
    }
}

/// How a comparison joins a predicate. PTX `setp.and`, `.or`, `.xor`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum Boolean {
    /// Both.
    #[default]
    And,
    /// Either.
    Or,
    /// One of the two.
    Xor,
}

impl Boolean {
    /// Joins two lane masks.
    #[must_use]
    #[inline(always)]
    pub const fn join(self, a: u32, b: u32) -> u32 {
        match self {
            Self::And => a & b,
            Self::Or => a | b,
            Self::Xor => a ^ b,
        }
    }
}

/// Compares anything ordered, partially or totally.
#[inline(always)]
#[must_use]
pub fn compare<T: PartialOrd + Copy>(comparison: Comparison, a: T, b: T) -> bool {
    comparison.holds(a < b, a == b, a > b)
}

/// Compares signed words. PTX `setp.s32`.
#[inline(always)]
#[must_use]
pub fn compare_signed(comparison: Comparison, a: u32, b: u32) -> bool {
    compare(comparison, a as i32, b as i32)
}

/// Compares floats. PTX `setp.f32`.
#[inline(always)]
#[must_use]
pub fn compare_float32(comparison: Comparison, a: u32, b: u32) -> bool {
    compare(comparison, f32::from_bits(a), f32::from_bits(b))
}

/// Compares doubles. PTX `setp.f64`.
#[inline(always)]
#[must_use]
pub fn compare_float64(comparison: Comparison, a: u64, b: u64) -> bool {
    compare(comparison, f64::from_bits(a), f64::from_bits(b))
}

/// `a` if `c` is not negative, else `b`. PTX `slct.b32.s32`.
#[inline(always)]
#[must_use]
pub const fn select_by_sign(a: u64, b: u64, c: u32) -> u64 {
    if c as i32 >= 0 { a } else { b }
}

/// `a` if `c ≥ 0.0` (minus zero counts), else `b`; NaN gives `b`. PTX `slct.b32.f32`.
#[inline(always)]
#[must_use]
pub fn select_by_float_sign(a: u64, b: u64, c: u32) -> u64 {
    if f32::from_bits(c) >= 0.0 { a } else { b }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unordered_relations_hold_for_nan() {
        let (nan, one) = (f32::NAN.to_bits(), 1f32.to_bits());
        for index in 0..16 {
            let comparison = Comparison::from_index(index);
            assert_eq!(comparison as u64, index);
            assert_eq!(compare_float32(comparison, nan, one), index & 8 != 0);
            assert_eq!(compare_float32(comparison, one, one), index & 2 != 0);
            assert_eq!(compare_signed(comparison, u32::MAX, 1), index & 1 != 0);
            assert_eq!(compare(comparison, u32::MAX, 1), index & 4 != 0);
        }
    }

    #[test]
    fn minus_zero_selects_the_first() {
        assert_eq!(select_by_float_sign(1, 2, 0x8000_0000), 1);
        assert_eq!(select_by_float_sign(1, 2, f32::NAN.to_bits()), 2);
        assert_eq!(select_by_sign(1, 2, u32::MAX), 2);
    }

    #[test]
    fn masks_join() {
        assert_eq!(Boolean::Xor.join(0b1100, 0b1010), 0b0110);
    }
}
