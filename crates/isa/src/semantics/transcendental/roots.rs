//! Reciprocal and roots, in single precision and for the upper words of doubles.

use super::{
    super::float32::NAN,
    INFINITY, MAGNITUDE, SIGN, SMALLEST_NORMAL,
    tables::{reciprocal, reciprocal_square_root, square_root},
    unit::{Segment, each, interpolate, segments},
};

static RECIPROCAL: [Segment; 128] = segments(&reciprocal::RECIPROCAL, 14, 1, 0x8fce);
static RECIPROCAL_SQUARE_ROOT: [Segment; 128] = segments(
    &reciprocal_square_root::RECIPROCAL_SQUARE_ROOT,
    14,
    2,
    0x7fff,
);
static SQUARE_ROOT: [Segment; 128] = segments(&square_root::SQUARE_ROOT, 15, 0, 0x7fff);

/// `1 ÷ a`; subnormals count as zero. SASS `MUFU.RCP`, PTX `rcp.approx.ftz.f32`.
#[must_use]
#[inline(always)]
pub fn reciprocal<const L: usize>(a: &[u32; L]) -> [u32; L] {
    let index = each(|n| a[n] >> 16);
    let x = each(|n| (a[n] & 0xffff) << 1);
    let value: [i64; L] = interpolate(&RECIPROCAL, &index, &x);
    each(|n| {
        let magnitude = a[n] & MAGNITUDE;
        let mantissa = (value[n] as u64 >> 16) as u32;
        // The leading one of the mantissa adds one to the exponent.
        let result = (252u32 << 23)
            .wrapping_sub(magnitude & INFINITY)
            .wrapping_add(mantissa);
        let small = (result as i32) < SMALLEST_NORMAL as i32;
        let result = if small { 0 } else { result };
        let zero = magnitude < SMALLEST_NORMAL;
        let result = if zero { INFINITY } else { result } | a[n] & SIGN;
        if magnitude > INFINITY { NAN } else { result }
    })
}

/// The exponent's lowest bit and the upper bits of the mantissa: even exponents come first.
#[inline(always)]
fn root_segment(a: u32) -> u32 {
    (a >> 17 & 127) ^ 64
}

/// `1 ÷ √a`; subnormals count as zero. SASS `MUFU.RSQ`, PTX `rsqrt.approx.ftz.f32`.
#[must_use]
#[inline(always)]
pub fn reciprocal_square_root<const L: usize>(a: &[u32; L]) -> [u32; L] {
    let index = each(|n| root_segment(a[n]));
    let x = each(|n| a[n] & 0x1_ffff);
    let value: [i64; L] = interpolate(&RECIPROCAL_SQUARE_ROOT, &index, &x);
    each(|n| {
        let power_of_four = a[n] & 0xff_ffff == 0x80_0000;
        let mantissa = if power_of_four {
            1 << 24
        } else {
            (value[n] as u64 >> 16) as u32
        };
        let exponent = 189 - (((a[n] >> 23 & 255) + 1) >> 1);
        let result = (exponent << 23).wrapping_add(mantissa);
        let result = if a[n] == INFINITY { 0 } else { result };
        let result = if a[n] > INFINITY { NAN } else { result };
        let zero = a[n] & MAGNITUDE < SMALLEST_NORMAL;
        if zero { INFINITY | a[n] & SIGN } else { result }
    })
}

/// `√a`; subnormals count as zero. SASS `MUFU.SQRT`, PTX `sqrt.approx.ftz.f32`.
#[must_use]
#[inline(always)]
pub fn square_root<const L: usize>(a: &[u32; L]) -> [u32; L] {
    let index = each(|n| root_segment(a[n]));
    let x = each(|n| a[n] & 0x1_ffff);
    let value: [i64; L] = interpolate(&SQUARE_ROOT, &index, &x);
    each(|n| {
        let exponent = 62 + (((a[n] >> 23 & 255) + 1) >> 1);
        let result = (exponent << 23).wrapping_add((value[n] as u64 >> 17) as u32);
        let result = if a[n] == INFINITY { INFINITY } else { result };
        let result = if a[n] > INFINITY { NAN } else { result };
        let zero = a[n] & MAGNITUDE < SMALLEST_NORMAL;
        if zero { a[n] & SIGN } else { result }
    })
}

/// Exponent of the upper word of a double, and of infinity.
const INFINITY_HIGH: u32 = 0x7ff0_0000;
/// Upper word of the smallest double that is not subnormal.
const SMALLEST_HIGH: u32 = 0x0010_0000;

/// Upper word of `1 ÷ a` from the upper word of `a`. SASS `MUFU.RCP64H`, PTX `rcp.approx.ftz.f64`.
#[must_use]
#[inline(always)]
pub fn reciprocal_high<const L: usize>(a: &[u32; L]) -> [u32; L] {
    let index = each(|n| a[n] >> 13);
    let x = each(|n| (a[n] & 0x1fff) << 4);
    let value: [i64; L] = interpolate(&RECIPROCAL, &index, &x);
    each(|n| {
        let magnitude = a[n] & MAGNITUDE;
        let mantissa = (value[n] as u64 >> 19) as u32;
        let result = (2044u32 << 20)
            .wrapping_sub(magnitude & INFINITY_HIGH)
            .wrapping_add(mantissa);
        let small = (result as i32) < SMALLEST_HIGH as i32;
        let result = if small { 0 } else { result };
        let zero = magnitude < SMALLEST_HIGH;
        let result = if zero { INFINITY_HIGH } else { result } | a[n] & SIGN;
        if magnitude > INFINITY_HIGH {
            NAN
        } else {
            result
        }
    })
}

/// Upper word of `1 ÷ √a`. SASS `MUFU.RSQ64H`, PTX `rsqrt.approx.ftz.f64`.
#[must_use]
#[inline(always)]
pub fn reciprocal_square_root_high<const L: usize>(a: &[u32; L]) -> [u32; L] {
    let index = each(|n| (a[n] >> 14 & 127) ^ 64);
    let x = each(|n| (a[n] & 0x3fff) << 3);
    let value: [i64; L] = interpolate(&RECIPROCAL_SQUARE_ROOT, &index, &x);
    each(|n| {
        let power_of_four = a[n] & 0x1f_ffff == 0x10_0000;
        let mantissa = if power_of_four {
            1 << 21
        } else {
            (value[n] as u64 >> 19) as u32
        };
        let exponent = 1533 - (((a[n] >> 20 & 2047) + 1) >> 1);
        let result = (exponent << 20).wrapping_add(mantissa);
        let result = if a[n] == INFINITY_HIGH { 0 } else { result };
        let result = if a[n] > INFINITY_HIGH { NAN } else { result };
        let zero = a[n] & MAGNITUDE < SMALLEST_HIGH;
        if zero {
            INFINITY_HIGH | a[n] & SIGN
        } else {
            result
        }
    })
}
