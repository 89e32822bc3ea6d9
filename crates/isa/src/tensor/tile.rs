//! Boxes.
//!
//! The elements of an interleaved tensor are slices of 16 or 32 bytes of channels. Its dimensions are width,
//! height, depth, slices and images. A command moves one slice, whatever the box says of their dimension.

use lockstep_units::{Interleave, TENSOR_DIMENSIONS, TensorMap};

use super::{Row, Start, row, swizzle};

/// Bytes that lie side by side along the first dimension as one.
pub(super) fn unit(map: &TensorMap) -> u32 {
    match map.interleave {
        Interleave::None => map.element.bytes(),
        Interleave::Bytes16 => 16,
        Interleave::Bytes32 => 32,
    }
}

/// Units that are moved along each dimension. Without interleave the first one has no steps.
fn counts(map: &TensorMap, size: [u32; TENSOR_DIMENSIONS]) -> [u32; TENSOR_DIMENSIONS] {
    let mut counts = [1; TENSOR_DIMENSIONS];
    let rank = map.rank as usize;
    let interleaved = map.interleave != Interleave::None;
    for dimension in 0..rank {
        counts[dimension] = if interleaved && dimension + 2 == rank {
            1
        } else if interleaved || dimension > 0 {
            size[dimension].div_ceil(map.steps[dimension])
        } else {
            size[0]
        };
    }
    counts
}

/// Bytes of a box, those outside of the tensor too.
pub(super) fn bytes(map: &TensorMap, size: [u32; TENSOR_DIMENSIONS]) -> u32 {
    unit(map) * counts(map, size).iter().product::<u32>()
}

/// The rows of a box.
pub(super) fn rows(
    map: &TensorMap,
    size: [u32; TENSOR_DIMENSIONS],
    start: &Start,
    visit: &mut dyn FnMut(Row),
) {
    let counts = counts(map, size);
    let bytes = counts[0] * unit(map);
    let pitch = match map.interleave {
        Interleave::None => swizzle::pitch(map.swizzle, bytes),
        _ => bytes,
    };
    let number: u32 = counts[1..].iter().product();
    let mut at = [0u32; TENSOR_DIMENSIONS];
    for index in 0..number {
        let mut address = map.address;
        let mut outside = false;
        for (dimension, at) in at.iter().enumerate().take(map.rank as usize).skip(1) {
            let step = i64::from(at * map.steps[dimension]);
            let coordinate = i64::from(start.coordinates[dimension]) + step;
            outside |= coordinate < 0 || coordinate as u64 >= map.dimensions[dimension];
            let stride = map.strides[dimension - 1];
            address = address.wrapping_add((coordinate as u64).wrapping_mul(stride));
        }
        let first = i64::from(start.coordinates[0]);
        let offset = index * pitch;
        if map.interleave == Interleave::None || map.steps[0] == 1 {
            visit(row(
                map,
                unit(map),
                first,
                counts[0],
                address,
                offset,
                outside,
            ));
        } else {
            for along in 0..counts[0] {
                let first = first + i64::from(along * map.steps[0]);
                let offset = offset + along * unit(map);
                visit(row(map, unit(map), first, 1, address, offset, outside));
            }
        }
        for dimension in 1..TENSOR_DIMENSIONS {
            at[dimension] += 1;
            if at[dimension] < counts[dimension] {
                break;
            }
            at[dimension] = 0;
        }
    }
}
