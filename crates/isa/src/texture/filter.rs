//! Weighted sums of texels.
//!
//! Weights have eight bits, those of corners too: the weight of a slice is split along x, each part along y, and what
//! is rounded in one part is missing in the other, so that all of them add up to one. Two levels of a mipmap are
//! slices, too. Integers are summed as such, and the sum is rounded to 16 bits. Floats are aligned to the largest of a
//! slice, four bits below its last one are kept, the sum is exact, and halves stay halves. Ties of floats go away from
//! zero, those of integers up. Sums of signed bytes may be wrong in the last of 15 bits.

use lockstep_units::{ChannelKind, TexelFormat};

use super::coordinate::{FRACTION, ONE};

/// What an infinity or a number less its like gives.
const NAN: u32 = 0x7fff_ffff;
/// Bits that are kept below the last one of the largest texel.
const GUARD: i32 = 4;
/// Bits that are kept below the last one of the larger slice.
const SLICE_GUARD: i32 = 10;

/// What sums are made in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// Integers of which `one` is 1.0, with sums of which `largest` is.
    Fixed {
        /// 1.0 of a texel.
        one: i32,
        /// 1.0 of a sum.
        largest: i32,
    },
    /// Half precision.
    Half,
    /// Single precision.
    Single,
}

impl Precision {
    /// That of texels of a format which are read as floats.
    #[must_use]
    pub fn of(format: TexelFormat, srgb: bool) -> Self {
        match (format.kind, format.bits) {
            (ChannelKind::Float, 16) => Self::Half,
            (ChannelKind::Unsigned, 8) if srgb => Self::Half,
            (ChannelKind::Float, _) | (_, 32) => Self::Single,
            (ChannelKind::Unsigned, bits) => Self::Fixed {
                one: (1 << bits) - 1,
                largest: 0xffff,
            },
            (ChannelKind::Signed, bits) => Self::Fixed {
                one: (1 << (bits - 1)) - 1,
                largest: 0x7fff,
            },
        }
    }
}

/// A product of a weight with a fraction of [`ONE`], rounded.
const fn part(weight: u32, fraction: u32) -> u32 {
    (weight * fraction + ONE / 2) >> FRACTION
}

/// Four texels of a slice, x first, with their weights.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slice {
    /// Floats, or integers where sums are made of such.
    pub words: [u32; 4],
    /// Of [`ONE`].
    pub weights: [u32; 4],
}

/// Weights of the four corners of a slice that has a weight itself, x first.
#[must_use]
pub fn corners(weight: u32, x: u32, y: u32) -> [u32; 4] {
    let second = part(weight, x);
    let first = weight - second;
    let far = part(second, y);
    let near = part(first, ONE - y);
    [near, second - far, first - near, far]
}

/// Weights of two slices that have a weight together.
#[must_use]
pub const fn halves(weight: u32, z: u32) -> [u32; 2] {
    let far = part(weight, z);
    [weight - far, far]
}

/// A number times a power of two.
#[derive(Clone, Copy)]
struct Scaled {
    value: i64,
    exponent: i32,
}

impl Scaled {
    /// The exponent of its leading bit.
    fn leading(self) -> i32 {
        self.exponent + 63 - self.value.unsigned_abs().leading_zeros() as i32
    }
}

/// The exponent of the last bit of a float, and all of its bits; subnormals are nothing.
fn parts(word: u32) -> Option<(i64, i32)> {
    let exponent = (word >> 23 & 0xff) as i32;
    if exponent == 0 {
        return None;
    }
    let magnitude = i64::from(word & 0x7f_ffff | 0x80_0000);
    let value = if word >> 31 != 0 {
        -magnitude
    } else {
        magnitude
    };
    Some((value, exponent - 150))
}

/// The exact sum of the texels of a slice, aligned to the largest.
fn slice_sum(slice: &Slice, half: bool) -> Option<Scaled> {
    let terms = slice.words.iter().zip(slice.weights);
    let known = terms
        .filter(|(_, weight)| *weight > 0)
        .filter_map(|(word, weight)| Some((parts(*word)?, weight)));
    let mut largest = known.clone().map(|((_, exponent), _)| exponent).max()?;
    // Halves have 13 bits less, and their smallest exponent is -14.
    let mut guard = GUARD;
    if half {
        largest = largest.max(-14 - 23);
        guard -= 13;
    }
    let mut sum = 0;
    for ((value, exponent), weight) in known {
        let below = (largest - exponent - guard).clamp(-GUARD, 62);
        let magnitude = if below >= 0 {
            value.abs() >> below
        } else {
            value.abs() << -below
        };
        sum += value.signum() * magnitude * i64::from(weight);
    }
    (sum != 0).then_some(Scaled {
        value: sum,
        exponent: largest - guard - FRACTION as i32,
    })
}

/// The sum of two slices.
fn joined(first: Option<Scaled>, second: Option<Scaled>) -> Option<Scaled> {
    let (Some(first), Some(second)) = (first, second) else {
        return first.or(second);
    };
    let exponent = first.leading().max(second.leading()) - 23 - SLICE_GUARD;
    let aligned = |slice: Scaled| {
        let shift = slice.exponent - exponent;
        if shift >= 0 {
            slice.value << shift.min(30)
        } else {
            slice.value >> (-shift).min(63)
        }
    };
    let value = aligned(first) + aligned(second);
    (value != 0).then_some(Scaled { value, exponent })
}

/// The nearest float with so many bits, ties away from zero.
fn rounded(sum: Option<Scaled>, bits: i32, lowest: i32, highest: i32) -> u32 {
    let Some(sum) = sum else {
        return 0;
    };
    let sign = if sum.value < 0 { 1 << 31 } else { 0 };
    let leading = sum.leading().max(lowest);
    let drop = leading - bits + 1 - sum.exponent;
    let magnitude = sum.value.unsigned_abs();
    let (value, exponent) = if drop > 0 {
        let drop = drop.min(62);
        ((magnitude + (1 << (drop - 1))) >> drop, sum.exponent + drop)
    } else {
        (magnitude, sum.exponent)
    };
    let float = value as f64 * 2f64.powi(exponent);
    if float >= 2f64.powi(highest + 1) {
        return sign | 0x7f80_0000;
    }
    if float < 2f64.powi(-126) {
        return sign;
    }
    sign | (float as f32).to_bits()
}

/// What infinities and what is no number make of a sum, if there are any.
fn special(slices: &[Slice]) -> Option<u32> {
    let mut found = None;
    for (word, weight) in terms(slices) {
        if weight == 0 || word >> 23 & 0xff != 0xff {
            continue;
        }
        let word = if word << 9 != 0 { NAN } else { word };
        found = match found {
            Some(before) if before != word => Some(NAN),
            _ => Some(word),
        };
    }
    found
}

/// All words with their weights.
fn terms(slices: &[Slice]) -> impl Iterator<Item = (u32, u32)> + '_ {
    let each = |slice: &Slice| slice.words.into_iter().zip(slice.weights);
    slices.iter().flat_map(each)
}

/// The sum of weighted texels.
#[must_use]
pub fn sum(precision: Precision, slices: &[Slice]) -> u32 {
    if let Precision::Fixed { one, largest } = precision {
        let total: i64 = terms(slices)
            .map(|(word, weight)| i64::from(word as i32) * i64::from(weight))
            .sum();
        let unit = i64::from(one) << FRACTION;
        let nearest = (2 * total * i64::from(largest) + unit).div_euclid(2 * unit);
        return ((nearest as f64 / f64::from(largest)) as f32).to_bits();
    }
    if let Some(word) = special(slices) {
        return word;
    }
    let half = precision == Precision::Half;
    let mut total = None;
    for slice in slices {
        total = joined(total, slice_sum(slice, half));
    }
    if total.is_none() && terms(slices).all(|(word, weight)| weight == 0 || word >> 31 != 0) {
        // Nothing but negative zeros.
        return 1 << 31;
    }
    match half {
        true => rounded(total, 11, -14, 15),
        false => rounded(total, 24, -126, 127),
    }
}
