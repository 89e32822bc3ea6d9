//! PTX approximations: the instructions that `ptxas` puts around those of the unit, for sm_90.
//!
//! Forms with `.ftz` are the unit's own functions, but for quotients. The others scale subnormal
//! operands, which the unit would take for zero.

use super::{
    super::{float32, float64},
    MAGNITUDE, ONE, SIGN, SMALLEST_NORMAL, cosine_of_turns, exponential, logarithm, reciprocal,
    reciprocal_square_root, reciprocal_square_root_high, sine_of_turns, square_root,
    unit::each,
};

/// 2^24.
const SUBNORMAL_SCALE: u32 = 0x4b80_0000;
/// 2^126: reciprocals of larger numbers are subnormal.
const LARGE: u32 = 0x7e80_0000;
/// 1 ÷ 4.
const LARGE_SCALE: u32 = 0x3e80_0000;

#[inline(always)]
fn is_subnormal(a: u32) -> bool {
    a & MAGNITUDE < SMALLEST_NORMAL
}

/// NaN is not large.
#[inline(always)]
fn is_large(a: u32) -> bool {
    f32::from_bits(a).abs() > f32::from_bits(LARGE)
}

/// Subnormal operands times 2^24.
#[inline(always)]
fn scaled<const L: usize>(a: &[u32; L]) -> [u32; L] {
    each(|n| {
        let product = float32::mul(a[n], SUBNORMAL_SCALE);
        if is_subnormal(a[n]) { product } else { a[n] }
    })
}

/// Results of subnormal operands times `scale`.
#[inline(always)]
fn unscaled<const L: usize>(a: &[u32; L], result: &[u32; L], scale: u32) -> [u32; L] {
    each(|n| {
        let product = float32::mul(result[n], scale);
        if is_subnormal(a[n]) {
            product
        } else {
            result[n]
        }
    })
}

/// `rcp.approx.f32`.
#[must_use]
#[inline(always)]
pub fn reciprocal_full<const L: usize>(a: &[u32; L]) -> [u32; L] {
    let scale: [u32; L] = each(|n| {
        let subnormal = is_subnormal(a[n]);
        let scale = if subnormal { SUBNORMAL_SCALE } else { ONE };
        if is_large(a[n]) { LARGE_SCALE } else { scale }
    });
    let result: [u32; L] = reciprocal(&each(|n| float32::mul(a[n], scale[n])));
    each(|n| float32::mul(result[n], scale[n]))
}

/// `rsqrt.approx.f32`.
#[must_use]
#[inline(always)]
pub fn reciprocal_square_root_full<const L: usize>(a: &[u32; L]) -> [u32; L] {
    unscaled(a, &reciprocal_square_root(&scaled(a)), 0x4580_0000) // 2^12
}

/// `sqrt.approx.f32`.
#[must_use]
#[inline(always)]
pub fn square_root_full<const L: usize>(a: &[u32; L]) -> [u32; L] {
    unscaled(a, &square_root(&scaled(a)), 0x3980_0000) // 2^-12
}

/// `lg2.approx.f32`.
#[must_use]
#[inline(always)]
pub fn logarithm_full<const L: usize>(a: &[u32; L]) -> [u32; L] {
    let result = logarithm(&scaled(a));
    each(|n| {
        let less = float32::add(result[n], 0xc1c0_0000); // -24
        if is_subnormal(a[n]) { less } else { result[n] }
    })
}

/// `ex2.approx.f32`: what could be subnormal is the square of half the power.
#[must_use]
#[inline(always)]
pub fn exponential_full<const L: usize>(a: &[u32; L]) -> [u32; L] {
    let small = |a: u32| f32::from_bits(a) < -126.0;
    let result: [u32; L] = exponential(&each(|n| {
        let half = float32::mul(a[n], 0x3f00_0000);
        if small(a[n]) { half } else { a[n] }
    }));
    each(|n| {
        let product = float32::mul(result[n], result[n]);
        if small(a[n]) { product } else { result[n] }
    })
}

/// Radians to turns, cut off: `FMUL.RZ` by 1 ÷ 2π. A subnormal product, which the unit takes for
/// zero, may be any subnormal of its sign here.
#[inline(always)]
fn turns(a: u32) -> u32 {
    const TURNS_PER_RADIAN: u32 = 0x3e22_f983;
    let (angle, scale) = (f32::from_bits(a), f32::from_bits(TURNS_PER_RADIAN));
    let product = f64::from(angle) * f64::from(scale);
    let nearest = product as f32;
    let above = f64::from(nearest).abs() > product.abs();
    nearest.to_bits() - u32::from(above)
}

/// `sin.approx.f32`, with and without `.ftz`.
#[must_use]
#[inline(always)]
pub fn sine<const L: usize>(a: &[u32; L]) -> [u32; L] {
    sine_of_turns(&each(|n| turns(a[n])))
}

/// `cos.approx.f32`, with and without `.ftz`.
#[must_use]
#[inline(always)]
pub fn cosine<const L: usize>(a: &[u32; L]) -> [u32; L] {
    cosine_of_turns(&each(|n| turns(a[n])))
}

/// `a ÷ b` by reciprocal, both scaled as `large` and subnormal divisors ask.
#[inline(always)]
fn quotient<const L: usize>(a: &[u32; L], b: &[u32; L], large: impl Fn(u32) -> bool) -> [u32; L] {
    let scale = |value: u32, b: u32| {
        let quarter = float32::mul(value, LARGE_SCALE);
        let multiple = float32::mul(value, SUBNORMAL_SCALE);
        let value = if large(b) { quarter } else { value };
        if is_subnormal(b) { multiple } else { value }
    };
    let result: [u32; L] = reciprocal(&each(|n| scale(b[n], b[n])));
    each(|n| float32::mul(scale(a[n], b[n]), result[n]))
}

/// `div.approx.f32`.
#[must_use]
#[inline(always)]
pub fn divide<const L: usize>(a: &[u32; L], b: &[u32; L]) -> [u32; L] {
    quotient(a, b, |_| false)
}

/// `div.full.f32`.
#[must_use]
#[inline(always)]
pub fn divide_full<const L: usize>(a: &[u32; L], b: &[u32; L]) -> [u32; L] {
    quotient(a, b, is_large)
}

#[inline(always)]
fn multiply_flushed(a: u32, b: u32) -> u32 {
    float32::flush(float32::mul(float32::flush(a), float32::flush(b)))
}

/// `div.approx.ftz.f32`.
#[must_use]
#[inline(always)]
pub fn divide_flushed<const L: usize>(a: &[u32; L], b: &[u32; L]) -> [u32; L] {
    let result = reciprocal(b);
    each(|n| multiply_flushed(a[n], result[n]))
}

/// `div.full.ftz.f32`.
#[must_use]
#[inline(always)]
pub fn divide_full_flushed<const L: usize>(a: &[u32; L], b: &[u32; L]) -> [u32; L] {
    let scale = |value: u32, b: u32| {
        let quarter = multiply_flushed(value, LARGE_SCALE);
        if is_large(b) { quarter } else { value }
    };
    let result: [u32; L] = reciprocal(&each(|n| scale(b[n], b[n])));
    each(|n| multiply_flushed(scale(a[n], b[n]), result[n]))
}

/// `rsqrt.approx.f64`: the unit's upper word and one step of iteration, with the `fma` of the host
/// or without.
#[must_use]
#[inline(always)]
pub fn reciprocal_square_root64(a: u64, fma: impl Fn(u64, u64, u64) -> u64) -> u64 {
    const INFINITE: u64 = 0x7ff0_0000_0000_0000;
    const SIGN64: u64 = 1 << 63;
    let number = |value: f64| value.to_bits();
    let step = |a: u64| {
        let [high] = reciprocal_square_root_high(&[(a >> 32) as u32]);
        let first = u64::from(high) << 32;
        let square = float64::mul(first, first);
        let error = fma(a, square ^ SIGN64, number(1.0));
        let factor = fma(error, number(0.375), number(0.5));
        fma(factor, float64::mul(first, error), first)
    };
    let high = (a >> 32) as u32;
    if high.wrapping_sub(0x0010_0000) < 0x7fe0_0000 {
        step(a)
    } else if a & !SIGN64 == 0 {
        INFINITE | a
    } else if a & !SIGN64 > INFINITE {
        float64::add(a, a)
    } else if high & SIGN != 0 {
        0xfff8_0000_0000_0000
    } else if a == INFINITE {
        0
    } else {
        let larger = step(float64::mul(a, number(18_014_398_509_481_984.0))); // 2^54
        float64::mul(larger, number(134_217_728.0)) // 2^27
    }
}
