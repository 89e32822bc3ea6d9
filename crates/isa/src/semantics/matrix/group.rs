//! The part of one warp in a product of a warp group: 16 of the 64 rows of A and D, and all of B.
//! PTX ISA, `wgmma.mma_async`.

use super::{
    descriptor::Descriptor,
    fragment,
    shape::{Input, Multiply},
    sparse,
};
use crate::warp_register::WarpRegister;

/// Bytes that lie together in every layout.
const PIECE: usize = 16;

/// Rows of A that a warp has.
const ROWS: usize = 16;

/// A or B of a warp group.
#[derive(Clone, Copy, Debug)]
pub struct GroupOperand<'a> {
    /// In the registers of each warp, or in shared memory.
    pub place: GroupPlace<'a>,
    /// Signs are changed.
    pub negate: bool,
    /// The other dimension than k is contiguous in memory.
    pub transpose: bool,
}

/// Where an operand is.
#[derive(Clone, Copy, Debug)]
pub enum GroupPlace<'a> {
    /// The fragment of this warp.
    Registers(&'a [WarpRegister]),
    /// Described by a matrix descriptor.
    Shared(Descriptor),
}

/// `D = A × B + C` for the rows of the warp with number `part` in its group. Gives the address of a
/// byte that shared memory does not have if one is asked for.
///
/// # Errors
/// The address.
#[inline(always)]
pub fn multiply_group(
    shape: Multiply,
    part: usize,
    [a, b]: [GroupOperand<'_>; 2],
    shared: &[u8],
    c: &[WarpRegister],
    metadata: &WarpRegister,
) -> Result<Vec<WarpRegister>, u32> {
    let mut left = match a.place {
        GroupPlace::Registers(rows) => fragment::gather_a(shape, rows),
        GroupPlace::Shared(descriptor) => {
            let width = fragment::units(shape.stored_k(), shape.a);
            let mut whole = vec![0; ROWS * width];
            let rows = part * ROWS..(part + 1) * ROWS;
            let place = Place {
                descriptor,
                input: shape.a,
                transpose: a.transpose,
            };
            place.read(shared, rows, width, |row, k, bits| {
                whole[row * width + k] = bits;
            })?;
            whole
        }
    };
    let mut right = match b.place {
        GroupPlace::Registers(rows) => fragment::gather_b(shape, rows),
        GroupPlace::Shared(descriptor) => {
            let width = fragment::units(shape.k, shape.b);
            let mut whole = vec![0; shape.n * width];
            let place = Place {
                descriptor,
                input: shape.b,
                transpose: b.transpose,
            };
            place.read(shared, 0..shape.n, width, |column, k, bits| {
                whole[k * shape.n + column] = bits;
            })?;
            whole
        }
    };
    for (operand, input, bits) in [(a, shape.a, &mut left), (b, shape.b, &mut right)] {
        if operand.negate {
            let sign = 1 << (input.bits() - 1);
            bits.iter_mut().for_each(|bits| *bits ^= sign);
        }
    }
    let mut cells = fragment::gather_c(shape, c);
    let select = shape.sparse.then(|| sparse::select(shape, metadata));
    super::product(shape, &left, select.as_deref(), &right, &mut cells);
    let mut d = vec![WarpRegister::ZERO; shape.d_registers()];
    fragment::scatter_d(shape, &cells, &mut d);
    Ok(d)
}

/// A matrix in shared memory.
struct Place {
    descriptor: Descriptor,
    input: Input,
    transpose: bool,
}

impl Place {
    /// Calls `put(index, k, bits)` for every element with an index in `outer` (from its start) and
    /// a k below `width`.
    #[inline(always)]
    fn read(
        &self,
        shared: &[u8],
        outer: std::ops::Range<usize>,
        width: usize,
        mut put: impl FnMut(usize, usize, u32),
    ) -> Result<(), u32> {
        let bytes = fragment::unit_bits(self.input) / 8;
        let piece = PIECE / bytes;
        // Elements along the contiguous dimension, and indices across it.
        let (along, across) = if self.transpose {
            (outer.clone(), 0..width)
        } else {
            (0..width, outer.clone())
        };
        for index in across {
            for first in along.clone().step_by(piece) {
                let address =
                    self.descriptor
                        .address((first * bytes) as u32, index as u32, !self.transpose);
                let at = address as usize;
                let Some(source) = shared.get(at..at + PIECE) else {
                    return Err(address);
                };
                for within in 0..piece {
                    let mut word = [0; 4];
                    word[..bytes].copy_from_slice(&source[within * bytes..][..bytes]);
                    let bits = u32::from_le_bytes(word);
                    let moving = first + within;
                    if self.transpose {
                        put(moving - outer.start, index, bits);
                    } else {
                        put(index - outer.start, moving, bits);
                    }
                }
            }
        }
        Ok(())
    }
}
