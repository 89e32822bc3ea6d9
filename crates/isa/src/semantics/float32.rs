//! Single precision on one lane, as bits. PTX ISA, "Floating Point Instructions".
//!
//! Rounding to nearest is the host's own (IEEE 754 defines it); other directions come from
//! [`super::soft`]. Every NaN that an operation makes is [`NAN`].

use super::soft::{self, F32, Rounding};

/// The NaN that GPUs give.
pub const NAN: u32 = 0x7fff_ffff;

const SIGN: u32 = 1 << 31;
const INFINITY: u32 = 0x7f80_0000;
const SMALLEST_NORMAL: u32 = 0x0080_0000;

/// Bits of a host float, NaNs made canonical.
#[inline(always)]
#[must_use]
pub fn canonical(value: f32) -> u32 {
    if value.is_nan() { NAN } else { value.to_bits() }
}

/// Subnormals become zero of the same sign. PTX `.ftz`.
#[inline(always)]
#[must_use]
pub const fn flush(a: u32) -> u32 {
    if a & !SIGN < SMALLEST_NORMAL {
        a & SIGN
    } else {
        a
    }
}

/// Clamped to `[0, 1]`; NaN becomes zero. PTX `.sat`.
#[inline(always)]
#[must_use]
pub fn saturate(a: u32) -> u32 {
    let value = f32::from_bits(a);
    // The comparison is false for NaN and minus zero, which both become plus zero.
    let low = if value > 0.0 { a } else { 0 };
    if value > 1.0 { 0x3f80_0000 } else { low }
}

/// `a + b`. PTX `add.f32`.
#[inline(always)]
#[must_use]
pub fn add(a: u32, b: u32) -> u32 {
    canonical(f32::from_bits(a) + f32::from_bits(b))
}

/// `a × b`. PTX `mul.f32`.
#[inline(always)]
#[must_use]
pub fn mul(a: u32, b: u32) -> u32 {
    canonical(f32::from_bits(a) * f32::from_bits(b))
}

/// `a × b + c`, rounded once, on hosts without a fused instruction. PTX `fma.rn.f32`.
///
/// The product is exact in double precision; the sum is rounded to odd there (its lowest bit
/// says whether anything was lost), so that the second rounding sees the truth.
#[inline(always)]
#[must_use]
pub fn fma(a: u32, b: u32, c: u32) -> u32 {
    let product = f64::from(f32::from_bits(a)) * f64::from(f32::from_bits(b));
    canonical(add_to_odd(product, f64::from(f32::from_bits(c))) as f32)
}

/// As [`fma`], on hosts whose `mul_add` is an instruction; callers check that.
#[inline(always)]
#[must_use]
pub fn fma_host(a: u32, b: u32, c: u32) -> u32 {
    canonical(f32::from_bits(a).mul_add(f32::from_bits(b), f32::from_bits(c)))
}

/// `x + y` rounded to odd: the neighbour with lowest bit set, if inexact.
#[inline(always)]
#[must_use]
pub(crate) fn add_to_odd(x: f64, y: f64) -> f64 {
    let sum = x + y;
    let part = sum - x;
    let error = (x - (sum - part)) + (y - part);
    let bits = sum.to_bits();
    // False for an exact sum, and for infinities and NaNs, whose error is NaN.
    let inexact = (error < 0.0) | (error > 0.0);
    let adjust = inexact & (bits & 1 == 0);
    let outward = (error > 0.0) == (sum > 0.0);
    let step = if outward { 1 } else { u64::MAX };
    f64::from_bits(bits.wrapping_add(if adjust { step } else { 0 }))
}

/// `a + b` in any direction.
#[inline]
#[must_use]
pub fn add_rounded(a: u32, b: u32, rounding: Rounding) -> u32 {
    match rounding {
        Rounding::Nearest => add(a, b),
        _ => soft::add(F32, u64::from(a), u64::from(b), rounding) as u32,
    }
}

/// `a × b` in any direction.
#[inline]
#[must_use]
pub fn mul_rounded(a: u32, b: u32, rounding: Rounding) -> u32 {
    match rounding {
        Rounding::Nearest => mul(a, b),
        _ => soft::mul(F32, u64::from(a), u64::from(b), rounding) as u32,
    }
}

/// `a × b + c` in any direction.
#[inline]
#[must_use]
pub fn fma_rounded(a: u32, b: u32, c: u32, rounding: Rounding) -> u32 {
    match rounding {
        Rounding::Nearest => fma(a, b, c),
        _ => soft::fma(F32, u64::from(a), u64::from(b), u64::from(c), rounding) as u32,
    }
}

/// `a ÷ b` in any direction. PTX `div.rnd.f32`; `rcp.rnd.f32` with `a` one.
#[inline]
#[must_use]
pub fn div_rounded(a: u32, b: u32, rounding: Rounding) -> u32 {
    match rounding {
        Rounding::Nearest => canonical(f32::from_bits(a) / f32::from_bits(b)),
        _ => soft::div(F32, u64::from(a), u64::from(b), rounding) as u32,
    }
}

/// `√a` in any direction. PTX `sqrt.rnd.f32`.
#[inline]
#[must_use]
pub fn sqrt_rounded(a: u32, rounding: Rounding) -> u32 {
    match rounding {
        Rounding::Nearest => canonical(f32::from_bits(a).sqrt()),
        _ => soft::sqrt(F32, u64::from(a), rounding) as u32,
    }
}

/// A key whose signed order is the order of floats, minus zero below plus zero.
#[inline(always)]
const fn key(a: u32) -> i32 {
    (a ^ ((a as i32 >> 31) as u32 >> 1)) as i32
}

#[inline(always)]
const fn is_nan(a: u32) -> bool {
    a & !SIGN > INFINITY
}

/// Chooses by `first`, with NaN as minimum and maximum treat it.
#[inline(always)]
const fn choose(a: u32, b: u32, first: bool, propagate: bool) -> u32 {
    let number = if is_nan(a) {
        b
    } else if is_nan(b) || first {
        a
    } else {
        b
    };
    let nan = if propagate {
        is_nan(a) | is_nan(b)
    } else {
        is_nan(a) & is_nan(b)
    };
    if nan { NAN } else { number }
}

/// The smaller; a NaN loses against a number unless `propagate`. PTX `min.f32`, `min.NaN.f32`.
#[inline(always)]
#[must_use]
pub const fn min(a: u32, b: u32, propagate: bool) -> u32 {
    choose(a, b, key(a) <= key(b), propagate)
}

/// The larger. PTX `max.f32`, `max.NaN.f32`.
#[inline(always)]
#[must_use]
pub const fn max(a: u32, b: u32, propagate: bool) -> u32 {
    choose(a, b, key(a) >= key(b), propagate)
}

/// Gives a minimum or maximum of magnitudes the product's sign. PTX `.xorsign.abs`.
#[inline(always)]
#[must_use]
pub const fn with_xor_sign(magnitude: u32, a: u32, b: u32) -> u32 {
    if is_nan(magnitude) {
        magnitude
    } else {
        magnitude | ((a ^ b) & SIGN)
    }
}

/// Magnitude. PTX `abs.f32`.
#[inline(always)]
#[must_use]
pub const fn abs(a: u32) -> u32 {
    a & !SIGN
}

/// Negated. PTX `neg.f32`.
#[inline(always)]
#[must_use]
pub const fn neg(a: u32) -> u32 {
    a ^ SIGN
}

/// Magnitude of `b`, sign of `a`. PTX `copysign.f32`.
#[inline(always)]
#[must_use]
pub const fn copy_sign(a: u32, b: u32) -> u32 {
    (b & !SIGN) | (a & SIGN)
}

/// Classes that `testp` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Property {
    /// Neither infinite nor NaN.
    Finite,
    /// Infinite.
    Infinite,
    /// Not NaN.
    Number,
    /// NaN.
    NotANumber,
    /// Neither infinite, NaN nor subnormal; zero counts as normal.
    Normal,
    /// Subnormal.
    Subnormal,
}

impl Property {
    /// Whether a host number has it.
    #[must_use]
    pub fn holds(self, value: f64, subnormal: bool) -> bool {
        match self {
            Self::Finite => value.is_finite(),
            Self::Infinite => value.is_infinite(),
            Self::Number => !value.is_nan(),
            Self::NotANumber => value.is_nan(),
            Self::Normal => value.is_finite() && !subnormal,
            Self::Subnormal => subnormal,
        }
    }
}

/// Whether `a` has a property. PTX `testp`.
#[must_use]
pub fn test(a: u32, property: Property) -> bool {
    let value = f32::from_bits(a);
    property.holds(f64::from(value), value.is_subnormal())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: u32 = 0x3f80_0000;

    #[test]
    fn worked_examples() {
        assert_eq!(add(INFINITY, INFINITY | SIGN), NAN);
        assert_eq!(add(0xffc0_1234, ONE), NAN);
        assert_eq!(flush(SIGN | 5), SIGN);
        assert_eq!(saturate(NAN), 0);
        assert_eq!(saturate(SIGN), 0);
        assert_eq!(saturate(0x4000_0000), ONE);
        assert_eq!(min(SIGN, 0, false), SIGN);
        assert_eq!(max(SIGN, 0, false), 0);
        assert_eq!(min(NAN, ONE, false), ONE);
        assert_eq!(min(NAN, ONE, true), NAN);
        assert_eq!(max(0xffc0_0000, 0xffff_ffff, false), NAN);
        assert_eq!(with_xor_sign(ONE, SIGN, 0), ONE | SIGN);
        assert_eq!(copy_sign(SIGN, ONE), ONE | SIGN);
        assert!(test(0, Property::Normal));
        assert!(test(1, Property::Subnormal));
        // 1 + 2^-24: halfway, to even is one, up is the next number.
        assert_eq!(add_rounded(ONE, 0x3380_0000, Rounding::Nearest), ONE);
        assert_eq!(add_rounded(ONE, 0x3380_0000, Rounding::Up), ONE + 1);
    }

    #[test]
    fn fma_rounds_once() {
        // (1 + 2^-12)² = 1 + 2^-11 + 2^-24: a tie that the addend breaks far below double's reach.
        let a = 0x3f80_0800;
        let tiny = 0x0d80_0000; // 2^-100
        assert_eq!(fma(a, a, 0), 0x3f80_1000);
        assert_eq!(fma(a, a, tiny), 0x3f80_1001);
        assert_eq!(fma(a, a, tiny | SIGN), 0x3f80_1000);
    }

    fn word() -> impl Strategy<Value = u32> {
        prop_oneof![
            any::<u32>(),
            (
                0u32..2,
                prop_oneof![0u32..3, 90u32..160, 250u32..256],
                0u32..8,
                0u32..22
            )
                .prop_map(|(s, e, f, k)| s << 31 | e << 23 | (f << k) & 0x7f_ffff),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]
        #[test]
        fn fma_agrees_with_integers(a in word(), b in word(), c in word()) {
            let exact = soft::fma(F32, a.into(), b.into(), c.into(), Rounding::Nearest) as u32;
            prop_assert_eq!(fma(a, b, c), exact);
            prop_assert_eq!(fma_host(a, b, c), exact);
        }

        #[test]
        fn extremes_agree_with_comparison(a in word(), b in word()) {
            let (x, y) = (f32::from_bits(a), f32::from_bits(b));
            if !x.is_nan() && !y.is_nan() && x != y {
                prop_assert_eq!(f32::from_bits(min(a, b, false)), if x < y { x } else { y });
                prop_assert_eq!(f32::from_bits(max(a, b, false)), if x > y { x } else { y });
            }
        }
    }
}
