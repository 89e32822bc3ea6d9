//! Results in 16 bits: those of single precision, cut off.

use super::super::float16::{Kind, NAN};

/// A result of the unit in one of the 16-bit formats. `MUFU.EX2.F16`, `MUFU.TANH.BF16` and so on:
/// what does not fit a half is infinite.
#[inline(always)]
#[must_use]
pub fn narrow(kind: Kind, a: u32) -> u16 {
    let sign = (a >> 16 & 0x8000) as u16;
    let magnitude = a & 0x7fff_ffff;
    if magnitude > 0x7f80_0000 {
        return NAN;
    }
    match kind {
        Kind::Brain => (a >> 16) as u16,
        Kind::Half => {
            // Below 2^-14 the mantissa with its leading one is shifted into a subnormal.
            let below = 113u32.saturating_sub(magnitude >> 23).min(31);
            let subnormal = (magnitude & 0x7f_ffff | 0x80_0000) >> 13 >> below;
            let normal = magnitude.wrapping_sub(0x3800_0000) >> 13;
            let value = if below > 0 { subnormal } else { normal };
            let value = if magnitude >= 0x4780_0000 {
                0x7c00
            } else {
                value
            };
            sign | value as u16
        }
    }
}
