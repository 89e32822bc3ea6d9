//! Structured sparsity: which elements of a row the stored half of A is. PTX ISA, "Sparse matrix
//! storage".
//!
//! Of every four neighbouring units two are stored, and two bits of metadata name the place of each.
//! A unit is an element; for 4-bit elements it is a pair of them, and for TF32 half an element, so
//! that one of two is stored. A lane's word speaks for 16 units of the row of its group of four lanes
//! and, in its high half, for those of the row eight below; of elements of 8 bits and fewer, for 32
//! units of one of these rows, the lanes taking turns.

use super::shape::{Input, Multiply};
use crate::warp_register::WarpRegister;

/// For each stored element of A, row by row, its column in the whole row.
pub(super) fn select(shape: Multiply, metadata: &WarpRegister) -> Vec<u16> {
    let stored = shape.stored_k();
    let mut columns = Vec::with_capacity(shape.m * stored);
    let halves = shape.a == Input::Tf32;
    let pairs = shape.a.bits() == 4;
    // Units of a whole row, and lanes of a group that speak for one.
    let units = match (halves, pairs) {
        (true, _) => 2 * shape.k,
        (_, true) => shape.k / 2,
        _ => shape.k,
    };
    let lanes = (units / 16).max(1);
    let first_lane = usize::from(shape.selector) * lanes % 4;
    let narrow = shape.a.bits() <= 8;
    for row in 0..shape.m {
        let nibble = |group: usize| {
            let (lane, shift) = if narrow {
                (row / 8 + group / 8 * 2, 4 * (group % 8))
            } else {
                (group / 4, 16 * (row / 8) + 4 * (group % 4))
            };
            metadata.0[row % 8 * 4 + (first_lane + lane) % 4] >> shift & 15
        };
        for group in 0..units / 4 {
            let (low, high) = (nibble(group) & 3, nibble(group) >> 2);
            let base = 4 * group as u16;
            if halves {
                columns.push((base + low as u16) / 2);
            } else if pairs {
                for place in [low, high] {
                    let first = 2 * (base + place as u16);
                    columns.extend([first, first + 1]);
                }
            } else {
                columns.extend([base + low as u16, base + high as u16]);
            }
        }
    }
    columns
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::semantics::matrix::shape::Accumulator;

    fn sparse(k: usize, input: Input) -> Multiply {
        Multiply {
            sparse: true,
            ..Multiply::dense([16, 8, k], [input; 2], Accumulator::F32, Accumulator::F32)
        }
    }

    #[test]
    fn two_of_four_halves_are_stored() {
        let mut metadata = WarpRegister::ZERO;
        // Lane 0 speaks for rows 0 and 8: 0 and 1; 1 and 2; 2 and 3; 0 and 3.
        metadata.0[0] = 0x4444_0000 | 0b1100_1110_1001_0100;
        let columns = select(sparse(16, Input::F16), &metadata);
        assert_eq!(columns[..8], [0, 1, 5, 6, 10, 11, 12, 15]);
        assert_eq!(columns[8 * 8..9 * 8], [0, 1, 4, 5, 8, 9, 12, 13]);
    }

    #[test]
    fn one_of_two_tf32_is_stored() {
        let mut metadata = WarpRegister::ZERO;
        metadata.0[0] = 0xe44e;
        assert_eq!(select(sparse(8, Input::Tf32), &metadata)[..4], [1, 2, 4, 7]);
    }
}
