//! Sine and cosine of angles in turns.

use super::{
    super::float32::NAN,
    INFINITY, MAGNITUDE, SIGN,
    tables::sine,
    unit::{Segment, each, interpolate, normalize, segments},
};

static SINE: [Segment; 64] = segments(&sine::SINE, 11, 0, 0);

/// Quarter turns with 23 fraction bits, cut off; whole turns may stay above.
#[inline(always)]
fn quarters(a: u32) -> u32 {
    let exponent = a >> 23 & 255;
    let mantissa = a & 0x7f_ffff | 0x80_0000;
    let left = exponent.saturating_sub(125).min(25);
    let right = 125u32.saturating_sub(exponent).min(31);
    mantissa << left >> right
}

/// The sine of a turned angle: `turned` quarters are added to its magnitude.
#[inline(always)]
fn circle<const L: usize>(a: &[u32; L], turned: u32) -> [u32; L] {
    let angle: [u32; L] = each(|n| quarters(a[n]).wrapping_add(turned << 23));
    // In every other quarter the sine falls: the fraction counts from its end, one too low.
    let fraction: [u32; L] = each(|n| angle[n] ^ (angle[n] >> 23 & 1).wrapping_neg());
    let index = each(|n| fraction[n] >> 17);
    let x = each(|n| fraction[n] & 0x1_ffff);
    let value: [i64; L] = interpolate(&SINE, &index, &x);
    each(|n| {
        let own = if turned == 0 { a[n] & SIGN } else { 0 };
        let sign = own ^ (angle[n] << 7 & SIGN);
        let result = normalize(value[n] as u64, 37) | sign;
        let endless = a[n] & MAGNITUDE >= INFINITY;
        if endless { NAN } else { result }
    })
}

/// Sine of an angle in turns. SASS `MUFU.SIN`, whose operand comes multiplied by 1 ÷ 2π.
#[must_use]
#[inline(always)]
pub fn sine_of_turns<const L: usize>(a: &[u32; L]) -> [u32; L] {
    circle(a, 0)
}

/// Cosine of an angle in turns. SASS `MUFU.COS`.
#[must_use]
#[inline(always)]
pub fn cosine_of_turns<const L: usize>(a: &[u32; L]) -> [u32; L] {
    circle(a, 1)
}
