//! Power of two, logarithm and hyperbolic tangent.

use super::{
    super::float32::NAN,
    INFINITY, MAGNITUDE, ONE, SIGN, SMALLEST_NORMAL,
    tables::{exponential, hyperbolic_tangent, logarithm},
    unit::{Segment, each, interpolate, normalize, segments},
};

static EXPONENTIAL: [Segment; 64] = segments(&exponential::EXPONENTIAL, 13, 0, 0x77e2);
static LOGARITHM: [Segment; 64] = segments(&logarithm::LOGARITHM, 12, 1, 0x3345);

/// `a` in fixed point with 23 fraction bits, cut off; negative numbers with a fraction one too low.
#[inline(always)]
fn fixed(a: u32) -> u32 {
    let exponent = a >> 23 & 255;
    let mantissa = a & 0x7f_ffff | 0x80_0000;
    let left = exponent.saturating_sub(127) & 7;
    let right = 127u32.saturating_sub(exponent).min(31);
    let magnitude = mantissa << left >> right;
    if a & SIGN == 0 {
        magnitude
    } else if magnitude & 0x7f_ffff == 0 {
        magnitude.wrapping_neg()
    } else {
        !magnitude
    }
}

/// `2^a`; a subnormal result is zero. SASS `MUFU.EX2`, PTX `ex2.approx.ftz.f32`.
#[must_use]
#[inline(always)]
pub fn exponential<const L: usize>(a: &[u32; L]) -> [u32; L] {
    let argument: [u32; L] = each(|n| fixed(a[n]));
    let index = each(|n| argument[n] >> 17);
    let x = each(|n| argument[n] & 0x1_ffff);
    let value: [i64; L] = interpolate(&EXPONENTIAL, &index, &x);
    each(|n| {
        let magnitude = a[n] & MAGNITUDE;
        let whole = argument[n] & 0xff80_0000;
        let mantissa = (value[n] as u64 >> 15) as u32;
        let result = whole.wrapping_add(126 << 23).wrapping_add(mantissa);
        let small = (result as i32) < SMALLEST_NORMAL as i32;
        let result = if small { 0 } else { result };
        let limit = if a[n] & SIGN == 0 { INFINITY } else { 0 };
        let result = if magnitude >= 134 << 23 {
            limit
        } else {
            result
        };
        if magnitude > INFINITY { NAN } else { result }
    })
}

/// `log2(a)`; subnormals count as zero. SASS `MUFU.LG2`, PTX `lg2.approx.ftz.f32`.
#[must_use]
#[inline(always)]
pub fn logarithm<const L: usize>(a: &[u32; L]) -> [u32; L] {
    let index = each(|n| a[n] >> 17);
    let x = each(|n| a[n] & 0x1_ffff);
    let value: [i64; L] = interpolate(&LOGARITHM, &index, &x);
    each(|n| {
        let exponent = i64::from((a[n] >> 23 & 255) as i32 - 127);
        let sum = (value[n] as u64 >> 2) as i64 + (exponent << 36);
        let negative = sum < 0;
        let magnitude = if negative { !sum } else { sum };
        let sign = if negative { SIGN } else { 0 };
        let result = normalize(magnitude as u64, 36) | sign;
        let result = if a[n] == ONE { 0 } else { result };
        let result = if a[n] == INFINITY { INFINITY } else { result };
        let result = if a[n] > INFINITY { NAN } else { result };
        let zero = a[n] & MAGNITUDE < SMALLEST_NORMAL;
        if zero { INFINITY | SIGN } else { result }
    })
}

/// The exponents that have segments of the hyperbolic tangent: smaller arguments are their own
/// result, larger ones give one.
const FIRST_EXPONENT: u32 = 119;
const LAST_EXPONENT: u32 = 129;
/// For each of them, from the lowest hexadecimal digit, how many bits of the mantissa choose a segment.
const SEGMENT_BITS: u64 = 0x343_2221_1000;

/// Sixteen places for each exponent, used as far as it has segments.
static HYPERBOLIC_TANGENT: [Segment; 256] = {
    let rows = &hyperbolic_tangent::HYPERBOLIC_TANGENT;
    let mut table = [Segment::ZERO; 256];
    let (mut exponent, mut row) = (0, 0);
    while exponent <= LAST_EXPONENT - FIRST_EXPONENT {
        let mut n = 0;
        while n < 1 << (SEGMENT_BITS >> (4 * exponent) & 15) {
            table[16 * exponent as usize + n] = Segment::new(rows[row], 16, 0, 0);
            row += 1;
            n += 1;
        }
        exponent += 1;
    }
    assert!(row == rows.len());
    table
};

/// Hyperbolic tangent. SASS `MUFU.TANH`, PTX `tanh.approx.f32`.
#[must_use]
#[inline(always)]
pub fn hyperbolic_tangent<const L: usize>(a: &[u32; L]) -> [u32; L] {
    let place = |a: u32| (a >> 23 & 255).wrapping_sub(FIRST_EXPONENT) & 15;
    let bits: [u32; L] = each(|n| (SEGMENT_BITS >> (4 * place(a[n]))) as u32 & 7);
    let index = each(|n| place(a[n]) << 4 | (a[n] & 0x7f_ffff) >> (23 - bits[n]));
    // The rest of the mantissa, cut to 17 bits.
    let x = each(|n| (a[n] << bits[n] & 0x7f_ffff) >> 6);
    let value: [i64; L] = interpolate(&HYPERBOLIC_TANGENT, &index, &x);
    each(|n| {
        let magnitude = a[n] & MAGNITUDE;
        let result = normalize(value[n] as u64, 40);
        let result = if magnitude < FIRST_EXPONENT << 23 {
            magnitude
        } else {
            result
        };
        let large = magnitude >= (LAST_EXPONENT + 1) << 23;
        let result = if large { ONE } else { result } | a[n] & SIGN;
        if magnitude > INFINITY { NAN } else { result }
    })
}
