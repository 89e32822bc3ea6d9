//! Boxes of tensors: which bytes of global memory a command of the TMA engine touches, and where they lie in
//! shared memory. PTX ISA, "Tensors".
//!
//! A tile in shared memory is rows of the first dimension, one after the other; a row is side by side in
//! both memories. [`rows`] walks them, [`swizzle::place`] says where a byte of the tile lies, [`fill`] what
//! elements outside of the tensor read as.
//!
//! Start reading at [`rows`].

pub mod fill;
mod im2col;
pub mod reduction;
pub mod swizzle;
mod tile;

use std::ops::Range;

use lockstep_units::{Interleave, TENSOR_DIMENSIONS, TensorMap, TensorPart};

/// Where in its tensor a command begins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Start {
    /// Coordinates, the first dimension first.
    pub coordinates: [i32; TENSOR_DIMENSIONS],
    /// What is added to the coordinates of each pixel of a column, width first.
    pub offsets: [u32; 3],
}

/// Elements of a tile that lie side by side in both memories.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// First byte in the tile, before swizzling.
    pub offset: u32,
    /// Bytes in the tile.
    pub bytes: u32,
    /// Where byte 0 lies in global memory; it may lie outside of the tensor.
    pub address: u64,
    /// Bytes of the row that are inside of the tensor.
    pub inside: Range<u32>,
}

impl Row {
    /// Bytes of the row that a store or a reduction writes: pieces of 16 bytes of which any is inside of the
    /// tensor are written whole, as an H200 does.
    #[must_use]
    pub fn stored(&self) -> Range<u32> {
        self.inside.start
            ..self
                .inside
                .end
                .next_multiple_of(swizzle::PIECE)
                .min(self.bytes)
    }
}

/// Bytes that a command moves, those outside of the tensor too: what an mbarrier counts.
#[must_use]
pub fn bytes(map: &TensorMap) -> u32 {
    match map.part {
        TensorPart::Tile { size } => tile::bytes(map, size),
        TensorPart::Im2col {
            channels, pixels, ..
        } => im2col::bytes(map, channels, pixels),
    }
}

/// Calls `visit` with each row of the tile, in the order of shared memory.
pub fn rows(map: &TensorMap, start: &Start, visit: &mut dyn FnMut(Row)) {
    match map.part {
        TensorPart::Tile { size } => tile::rows(map, size, start, visit),
        TensorPart::Im2col {
            lower,
            upper,
            channels,
            pixels,
        } => {
            let bounds = im2col::Bounds { lower, upper };
            im2col::rows(map, bounds, [channels, pixels], start, visit);
        }
    }
}

/// Which way a command goes: what it may begin at differs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// From the tensor.
    Load,
    /// To the tensor.
    Store,
}

/// Why the engine refuses a command, as an illegal instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The row does not begin at a multiple of 16 bytes.
    #[error("coordinate {0} of the first dimension is not at a multiple of 16 bytes")]
    Alignment(i32),
    /// A store begins before the tensor.
    #[error("coordinate {0} of a store lies before its tensor")]
    Negative(i32),
    /// A column begins outside of its bounding box.
    #[error("coordinate {0} lies outside of the bounding box of its pixels")]
    OutsideBox(i32),
    /// A column that is stored has a bounding box of its own.
    #[error("pixels that are stored have no bounding box, and the tensor map has one")]
    StoreCorners,
    /// A row that is no multiple of 16 bytes.
    #[error("a row of its tile has {0} bytes, which is no multiple of 16")]
    RowBytes(u32),
}

/// Whether the engine takes a command: an H200 answers others with an illegal instruction.
///
/// # Errors
/// What is wrong with it.
pub fn check(map: &TensorMap, start: &Start, direction: Direction) -> Result<(), Refusal> {
    let coordinates = &start.coordinates[..map.rank as usize];
    let size = map.element.bytes() as i32;
    if map.interleave == Interleave::None {
        let first = match map.part {
            TensorPart::Tile { size } => size[0],
            TensorPart::Im2col { channels, .. } => channels,
        };
        if !(first * map.element.bytes()).is_multiple_of(16) {
            return Err(Refusal::RowBytes(first * map.element.bytes()));
        }
        if coordinates[0].wrapping_mul(size) % 16 != 0 {
            return Err(Refusal::Alignment(coordinates[0]));
        }
    }
    if direction == Direction::Store
        && let Some(before) = coordinates.iter().find(|coordinate| **coordinate < 0)
    {
        return Err(Refusal::Negative(*before));
    }
    let TensorPart::Im2col { lower, upper, .. } = map.part else {
        return Ok(());
    };
    if direction == Direction::Store && (lower, upper) != ([0; 3], [0; 3]) {
        return Err(Refusal::StoreCorners);
    }
    let first = im2col::width(map);
    for corner in 0..map.rank as usize - 2 {
        let at = i64::from(coordinates[first + corner]);
        let end = map.dimensions[first + corner] as i64 + i64::from(upper[corner]);
        let outside = at < i64::from(lower[corner]) || at >= end;
        if outside {
            return Err(Refusal::OutsideBox(coordinates[first + corner]));
        }
    }
    Ok(())
}

/// A row of units along the first dimension, at coordinate `first` of it and with `base` the address of its
/// unit 0. Nothing is inside if another coordinate is outside of the tensor.
fn row(
    map: &TensorMap,
    unit: u32,
    first: i64,
    count: u32,
    base: u64,
    offset: u32,
    outside: bool,
) -> Row {
    let inside = if outside {
        0..0
    } else {
        let dimension = map.dimensions[0] as i64;
        let begin = (-first).clamp(0, i64::from(count));
        let end = (dimension - first).clamp(begin, i64::from(count));
        begin as u32 * unit..end as u32 * unit
    };
    Row {
        offset,
        bytes: count * unit,
        address: base.wrapping_add((first * i64::from(unit)) as u64),
        inside,
    }
}
