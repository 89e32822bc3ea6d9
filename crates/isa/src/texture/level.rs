//! Levels of mipmaps.

use lockstep_units::{FilterMode, Sampler, TextureLevel};

use super::coordinate::{FRACTION, ONE};

/// Two levels next to each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Levels {
    /// The larger one.
    pub first: usize,
    /// The other.
    pub second: usize,
    /// Weight of the second, of [`ONE`].
    pub weight: u32,
}

/// The levels that a sample takes.
#[must_use]
pub fn levels(sampler: &Sampler, count: usize, level: f32) -> Levels {
    let last = count - 1;
    // A level and its bias are cut to eight fractional bits, each by itself.
    let cut = |value: f32| (f64::from(value) * f64::from(ONE)).clamp(-1e9, 1e9) as i64;
    let wanted = if level.is_nan() { 0 } else { cut(level) };
    let fixed = (wanted + cut(sampler.bias))
        .min(cut(sampler.highest))
        .max(cut(sampler.lowest))
        .clamp(0, (last << FRACTION) as i64) as usize;
    match sampler.mip_filter {
        FilterMode::Point => {
            let nearest = ((fixed + ONE as usize / 2) / ONE as usize).min(last);
            Levels {
                first: nearest,
                second: nearest,
                weight: 0,
            }
        }
        FilterMode::Linear => {
            let first = fixed / ONE as usize;
            Levels {
                first,
                second: (first + 1).min(last),
                weight: (fixed % ONE as usize) as u32,
            }
        }
    }
}

/// The level whose texels are as far apart as derivatives of normalized coordinates say.
#[must_use]
pub fn from_gradients(gradients: &[f32; 6], largest: &TextureLevel, normalized: bool) -> f32 {
    let sizes = [largest.width, largest.height, largest.depth];
    let length = |from: usize| {
        let mut sum = 0.0f64;
        for (dimension, size) in sizes.iter().enumerate() {
            let scale = if normalized { f64::from(*size) } else { 1.0 };
            let step = f64::from(gradients[from + dimension]) * scale;
            sum += step * step;
        }
        sum.sqrt()
    };
    let longest = length(0).max(length(3));
    if longest > 0.0 {
        longest.log2() as f32
    } else {
        -32.0
    }
}
