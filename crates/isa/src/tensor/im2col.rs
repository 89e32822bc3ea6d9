//! Columns of pixels, as convolutions take them: one pixel after the other within a bounding box, across
//! width, height and depth, then the next image. Every pixel is moved by the same offsets before it is
//! read, which is how a filter looks around it.
//!
//! Channels are the first dimension and images the last. An interleaved tensor begins with the width, and has
//! its slices of channels before the images: a row is the slice of one pixel.

use lockstep_units::{Interleave, TensorMap};

use super::{Row, Start, row, swizzle, tile};

/// Where pixels may begin.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    /// First position of each dimension of an image, width first.
    pub lower: [i32; 3],
    /// Last position, against the last pixel.
    pub upper: [i32; 3],
}

/// Bytes of a column, those outside of the tensor too.
pub(super) fn bytes(map: &TensorMap, channels: u32, pixels: u32) -> u32 {
    row_units(map, channels) * tile::unit(map) * pixels
}

/// Units that lie side by side in a pixel.
fn row_units(map: &TensorMap, channels: u32) -> u32 {
    match map.interleave {
        Interleave::None => channels,
        _ => 1,
    }
}

/// The dimension of the width.
pub(super) fn width(map: &TensorMap) -> usize {
    usize::from(map.interleave == Interleave::None)
}

/// The rows of a column: the channels of one pixel each.
pub(super) fn rows(
    map: &TensorMap,
    bounds: Bounds,
    [channels, pixels]: [u32; 2],
    start: &Start,
    visit: &mut dyn FnMut(Row),
) {
    let rank = map.rank as usize;
    let (width, unit) = (width(map), tile::unit(map));
    let units = row_units(map, channels);
    let pitch = match map.interleave {
        Interleave::None => swizzle::pitch(map.swizzle, units * unit),
        _ => unit,
    };
    let mut at = start.coordinates.map(i64::from);
    for pixel in 0..pixels {
        let mut here = at;
        for corner in 0..rank - 2 {
            here[width + corner] += i64::from(start.offsets[corner]);
        }
        let mut address = map.address;
        let mut outside = false;
        for (dimension, coordinate) in here.into_iter().enumerate().take(rank).skip(1) {
            outside |= coordinate < 0 || coordinate as u64 >= map.dimensions[dimension];
            let stride = map.strides[dimension - 1];
            address = address.wrapping_add((coordinate as u64).wrapping_mul(stride));
        }
        let offset = pixel * pitch;
        visit(row(map, unit, here[0], units, address, offset, outside));
        advance(map, bounds, width, &mut at);
    }
}

/// Goes to the next pixel.
fn advance(map: &TensorMap, bounds: Bounds, width: usize, at: &mut [i64; 5]) {
    let rank = map.rank as usize;
    for corner in 0..rank - 2 {
        let dimension = width + corner;
        at[dimension] += i64::from(map.steps[dimension]);
        let end = map.dimensions[dimension] as i64 + i64::from(bounds.upper[corner]);
        if at[dimension] < end {
            return;
        }
        at[dimension] = i64::from(bounds.lower[corner]);
    }
    at[rank - 1] += i64::from(map.steps[rank - 1]);
}
