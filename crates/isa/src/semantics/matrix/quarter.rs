//! `mma` on eight-bit floats where the unit has none: compilers for Hopper convert to half precision,
//! multiply the lower two of every four stored elements, then the upper two on top of them, and add C
//! to the sum, rounded to nearest.

use super::{
    shape::{Accumulator, Input, Multiply},
    sum,
    unit::TensorCore,
};
use crate::semantics::{float16::Kind, float32, small_float::Small};

/// Whether compilers make this one from half precision.
pub(super) fn is_emulated(shape: Multiply) -> bool {
    shape.unit == TensorCore::Hopper && matches!(shape.a, Input::E4m3 | Input::E5m2)
}

fn half(input: Input, bits: u32) -> u32 {
    let kind = match input {
        Input::E4m3 => Small::E4m3,
        _ => Small::E5m2,
    };
    kind.to_half(bits as u8).into()
}

/// `D = A × B + C` on whole matrices of bits; `cells` is C and becomes D.
pub(super) fn multiply(
    shape: Multiply,
    a: &[u32],
    select: Option<&[u16]>,
    b: &[u32],
    cells: &mut [u32],
) {
    let width = a.len() / shape.m;
    let b: Vec<u32> = b.iter().map(|bits| half(shape.b, *bits)).collect();
    let mut sums = vec![0; cells.len()];
    for upper in [false, true] {
        let chosen = |index: &usize| (index % 4 >= 2) == upper;
        let places: Vec<usize> = (0..a.len()).filter(|at| chosen(&(at % width))).collect();
        let part: Vec<u32> = places.iter().map(|at| half(shape.a, a[*at])).collect();
        let rows: Vec<u16> = places
            .iter()
            .map(|at| select.map_or((at % width) as u16, |select| select[*at]))
            .collect();
        let halves = Multiply {
            a: Input::F16,
            b: Input::F16,
            c: shape.d,
            ..shape
        };
        sum::multiply(halves, &part, Some(&rows), &b, &mut sums);
    }
    for (cell, sum) in cells.iter_mut().zip(sums) {
        *cell = match shape.d {
            Accumulator::F16 => {
                let result = Kind::Half.add(sum as u16, *cell as u16);
                result.into()
            }
            _ => float32::add(sum, *cell),
        };
    }
}
