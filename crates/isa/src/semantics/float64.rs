//! Double precision on one lane, as bits. PTX ISA, "Floating Point Instructions", `.f64`.
//!
//! A NaN operand comes through, made quiet; of several the second, then the third (H200, measured). An invalid
//! operation gives [`NAN`]. NVIDIA documents canonical NaNs for single precision only.

use super::{
    float32::Property,
    soft::{self, F64, Rounding},
};

/// The NaN of an invalid operation.
pub const NAN: u64 = F64.nan;

const SIGN: u64 = 1 << 63;
pub(crate) const QUIET: u64 = 1 << 51;
const INFINITY: u64 = 0x7ff0_0000_0000_0000;

#[inline(always)]
pub(crate) const fn is_nan(a: u64) -> bool {
    a & !SIGN > INFINITY
}

/// Gives `value`'s bits; if it is NaN, the one NaN of the operands that counts, or [`NAN`].
#[inline(always)]
fn settle(value: f64, operands: [u64; 3]) -> u64 {
    if !value.is_nan() {
        return value.to_bits();
    }
    let [a, b, c] = operands;
    if is_nan(b) {
        b | QUIET
    } else if is_nan(c) {
        c | QUIET
    } else if is_nan(a) {
        a | QUIET
    } else {
        NAN
    }
}

/// `a + b`. PTX `add.f64`.
#[inline(always)]
#[must_use]
pub fn add(a: u64, b: u64) -> u64 {
    settle(f64::from_bits(a) + f64::from_bits(b), [a, b, 0])
}

/// `a × b`. PTX `mul.f64`.
#[inline(always)]
#[must_use]
pub fn mul(a: u64, b: u64) -> u64 {
    settle(f64::from_bits(a) * f64::from_bits(b), [a, b, 0])
}

/// `a × b + c`, rounded once, from integers. PTX `fma.rn.f64`.
#[inline]
#[must_use]
pub fn fma(a: u64, b: u64, c: u64) -> u64 {
    fma_rounded(a, b, c, Rounding::Nearest)
}

/// As [`fma`], on hosts whose `mul_add` is an instruction; callers check that.
#[inline(always)]
#[must_use]
pub fn fma_host(a: u64, b: u64, c: u64) -> u64 {
    let value = f64::from_bits(a).mul_add(f64::from_bits(b), f64::from_bits(c));
    settle(value, [a, b, c])
}

fn settle_soft(bits: u64, operands: [u64; 3]) -> u64 {
    settle(f64::from_bits(bits), operands)
}

/// `a + b` in any direction.
#[must_use]
pub fn add_rounded(a: u64, b: u64, rounding: Rounding) -> u64 {
    match rounding {
        Rounding::Nearest => add(a, b),
        _ => settle_soft(soft::add(F64, a, b, rounding), [a, b, 0]),
    }
}

/// `a × b` in any direction.
#[must_use]
pub fn mul_rounded(a: u64, b: u64, rounding: Rounding) -> u64 {
    match rounding {
        Rounding::Nearest => mul(a, b),
        _ => settle_soft(soft::mul(F64, a, b, rounding), [a, b, 0]),
    }
}

/// `a × b + c` in any direction.
#[must_use]
pub fn fma_rounded(a: u64, b: u64, c: u64, rounding: Rounding) -> u64 {
    settle_soft(soft::fma(F64, a, b, c, rounding), [a, b, c])
}

/// `a ÷ b` in any direction; of two NaNs the dividend comes through. PTX `div.rnd.f64`; `rcp.rnd.f64` with `a` one.
#[must_use]
pub fn div_rounded(a: u64, b: u64, rounding: Rounding) -> u64 {
    match rounding {
        Rounding::Nearest => settle(f64::from_bits(a) / f64::from_bits(b), [b, a, 0]),
        _ => settle_soft(soft::div(F64, a, b, rounding), [b, a, 0]),
    }
}

/// `√a` in any direction. PTX `sqrt.rnd.f64`.
#[must_use]
pub fn sqrt_rounded(a: u64, rounding: Rounding) -> u64 {
    match rounding {
        Rounding::Nearest => settle(f64::from_bits(a).sqrt(), [a, 0, 0]),
        _ => settle_soft(soft::sqrt(F64, a, rounding), [a, 0, 0]),
    }
}

/// A key whose signed order is the order of doubles, minus zero below plus zero.
#[inline(always)]
const fn key(a: u64) -> i64 {
    (a ^ ((a as i64 >> 63) as u64 >> 1)) as i64
}

#[inline(always)]
const fn choose(a: u64, b: u64, first: bool) -> u64 {
    match (is_nan(a), is_nan(b)) {
        (true, true) => b | QUIET,
        (true, false) => b,
        (false, true) => a,
        (false, false) if first => a,
        (false, false) => b,
    }
}

/// The smaller; a NaN loses against a number. PTX `min.f64`.
#[inline(always)]
#[must_use]
pub const fn min(a: u64, b: u64) -> u64 {
    choose(a, b, key(a) <= key(b))
}

/// The larger. PTX `max.f64`.
#[inline(always)]
#[must_use]
pub const fn max(a: u64, b: u64) -> u64 {
    choose(a, b, key(a) >= key(b))
}

/// `a - b` in any direction; a NaN keeps its sign. PTX `sub.f64`.
#[must_use]
pub fn sub_rounded(a: u64, b: u64, rounding: Rounding) -> u64 {
    let b = if is_nan(b) { b } else { neg(b) };
    add_rounded(a, b, rounding)
}

/// Magnitude; a NaN becomes quiet and keeps its sign. PTX `abs.f64`.
#[inline(always)]
#[must_use]
pub const fn magnitude(a: u64) -> u64 {
    if is_nan(a) { a | QUIET } else { abs(a) }
}

/// Negated; a NaN becomes quiet and keeps its sign. PTX `neg.f64`.
#[inline(always)]
#[must_use]
pub const fn negated(a: u64) -> u64 {
    if is_nan(a) { a | QUIET } else { neg(a) }
}

/// Magnitude.
#[inline(always)]
#[must_use]
pub const fn abs(a: u64) -> u64 {
    a & !SIGN
}

/// Sign changed.
#[inline(always)]
#[must_use]
pub const fn neg(a: u64) -> u64 {
    a ^ SIGN
}

/// Magnitude of `b`, sign of `a`. PTX `copysign.f64`.
#[inline(always)]
#[must_use]
pub const fn copy_sign(a: u64, b: u64) -> u64 {
    (b & !SIGN) | (a & SIGN)
}

/// Clamped to `[0, 1]`; NaN becomes zero.
#[inline(always)]
#[must_use]
pub fn saturate(a: u64) -> u64 {
    let value = f64::from_bits(a);
    let low = if value > 0.0 { a } else { 0 };
    if value > 1.0 { 1f64.to_bits() } else { low }
}

/// Whether `a` has a property. PTX `testp`.
#[must_use]
pub fn test(a: u64, property: Property) -> bool {
    let value = f64::from_bits(a);
    property.holds(value, value.is_subnormal())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn worked_examples() {
        let one = 1f64.to_bits();
        assert_eq!(add(INFINITY, INFINITY | SIGN), NAN);
        assert_eq!(add(INFINITY | 5, one), INFINITY | QUIET | 5);
        assert_eq!(min(SIGN, 0), SIGN);
        assert_eq!(max(INFINITY | 1, one), one);
        assert_eq!(
            div_rounded(one, 3f64.to_bits(), Rounding::Up),
            0x3fd5_5555_5555_5556
        );
        assert_eq!(
            sqrt_rounded(2f64.to_bits(), Rounding::Zero),
            0x3ff6_a09e_667f_3bcc
        );
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]
        #[test]
        fn fma_is_the_hosts(a: u64, b: u64, c: u64) {
            prop_assert_eq!(fma(a, b, c), fma_host(a, b, c));
        }
    }
}
