//! Coordinates to texels.
//!
//! A normalized coordinate is cut to 21 fractional bits, or to what the size needs, and multiplied with the size. A position becomes a
//! fixed-point number with eight fractional bits, rounded; the fraction is the weight of the second of two texels.
//! For a point it is cut.

use lockstep_units::{AddressMode, FilterMode, Sampler};

/// Fractional bits of a position in texels.
pub const FRACTION: u32 = 8;
/// Weight of a texel that is alone.
pub const ONE: u32 = 1 << FRACTION;
/// Fractional bits of a normalized coordinate, unless the texture is so large that it needs more.
const NORMALIZED_FRACTION: u32 = 21;
/// Positions beyond this, in texels, are all the same.
const FAR: f64 = (1u64 << 40) as f64;

/// The texels along one dimension: none where there is the border.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    /// The first and the second.
    pub texels: [Option<u32>; 2],
    /// Weight of the second, of [`ONE`].
    pub weight: u32,
}

impl Span {
    /// One texel alone.
    #[must_use]
    pub const fn single(texel: Option<u32>) -> Self {
        Self {
            texels: [texel, texel],
            weight: 0,
        }
    }
}

/// A coordinate in texels.
fn scaled(coordinate: f32, size: u32, mode: AddressMode, unit: Option<f64>) -> f64 {
    if coordinate.is_nan() || coordinate.is_subnormal() {
        return 0.0;
    }
    let mut value = f64::from(coordinate);
    let Some(unit) = unit else {
        return value.clamp(-FAR, FAR);
    };
    if matches!(mode, AddressMode::Wrap | AddressMode::Mirror) {
        // Whatever is too large for a fraction is whole.
        value = if value.is_finite() { value % 2.0 } else { 0.0 };
    }
    let kept = (value * unit).floor() / unit;
    (kept * f64::from(size)).clamp(-FAR, FAR)
}

/// The texel at an index that may lie outside.
#[must_use]
pub fn resolve(index: i64, size: u32, mode: AddressMode) -> Option<u32> {
    let edge = i64::from(size);
    match mode {
        AddressMode::Wrap => Some(index.rem_euclid(edge) as u32),
        AddressMode::Clamp => Some(index.clamp(0, edge - 1) as u32),
        AddressMode::Mirror => {
            let place = index.rem_euclid(2 * edge);
            Some(place.min(2 * edge - 1 - place) as u32)
        }
        AddressMode::Border => (0..edge).contains(&index).then_some(index as u32),
    }
}

/// The texels that a sample takes along a dimension.
#[must_use]
pub fn span(
    coordinate: f32,
    offset: i32,
    size: u32,
    mode: AddressMode,
    filter: FilterMode,
    normalized: bool,
) -> Span {
    let bits = NORMALIZED_FRACTION.max(size.next_power_of_two().trailing_zeros() + FRACTION);
    let unit = normalized.then(|| f64::from(1u32 << bits.min(31)));
    let place = scaled(coordinate, size, mode, unit) + f64::from(offset);
    match filter {
        FilterMode::Point => Span::single(resolve(place.floor() as i64, size, mode)),
        FilterMode::Linear => {
            let fixed = (place * f64::from(ONE) + 0.5).floor() as i64 - i64::from(ONE / 2);
            let first = fixed >> FRACTION;
            let texels = [resolve(first, size, mode), resolve(first + 1, size, mode)];
            // At an edge a texel that is both is taken once.
            let edge = matches!(mode, AddressMode::Clamp | AddressMode::Border);
            let same = edge && texels[0] == texels[1];
            let weight = if same {
                0
            } else {
                (fixed & i64::from(ONE - 1)) as u32
            };
            Span { texels, weight }
        }
    }
}

/// The mode of a dimension. Without normalized coordinates nothing repeats.
#[must_use]
pub fn mode(sampler: &Sampler, dimension: usize) -> AddressMode {
    match sampler.address[dimension] {
        AddressMode::Wrap | AddressMode::Mirror if !sampler.normalized_coordinates => {
            AddressMode::Clamp
        }
        mode => mode,
    }
}

/// The face of a cube that a direction points at, and where on it, from 0 to 1.
#[must_use]
pub fn face(direction: [f32; 3]) -> (u32, [f32; 2]) {
    let [x, y, z] = direction;
    let [ax, ay, az] = direction.map(f32::abs);
    let (face, s, t, major) = if az >= ax && az >= ay {
        if z >= 0.0 {
            (4, x, -y, az)
        } else {
            (5, -x, -y, az)
        }
    } else if ay >= ax {
        if y >= 0.0 {
            (2, x, z, ay)
        } else {
            (3, x, -z, ay)
        }
    } else if x >= 0.0 {
        (0, -z, -y, ax)
    } else {
        (1, z, -y, ax)
    };
    let place = |along: f32| (f64::from(along) / f64::from(major) * 0.5 + 0.5) as f32;
    (face, [place(s), place(t)])
}
