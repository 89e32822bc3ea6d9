//! Matrix multiply-accumulate: `D = A × B + C`. PTX ISA, `mma` and `wgmma`.
//!
//! | file | what |
//! |---|---|
//! | `shape.rs` | element types and shapes |
//! | `fragment.rs` | where lanes hold elements |
//! | `sparse.rs` | which elements of a row are stored |
//! | `unit.rs` | how each generation of tensor cores adds, as data |
//! | `sum.rs`, `integer.rs` | the sums |
//! | `quarter.rs` | `mma` of eight-bit floats where compilers make it from half precision |
//! | `descriptor.rs` | where matrices of a warp group lie in shared memory |
//! | `group.rs` | the part of one warp in a product of a warp group |
//!
//! Operands are gathered into whole matrices, multiplied, and the result is spread over the lanes
//! again. FP64 is a chain of fused multiply-adds, k ascending from C. Integers are exact and wrap,
//! or clamp with `.satfinite`.
//!
//! Start reading at [`multiply`].

mod descriptor;
mod fragment;
mod group;
mod integer;
mod quarter;
mod shape;
mod sparse;
mod sum;
mod unit;

pub use descriptor::Descriptor;
pub use group::{GroupOperand, GroupPlace, multiply_group};
pub use shape::{Accumulator, BitProduct, Input, Multiply};
pub use sum::half_dot;
pub use unit::{Summation, TensorCore, summation};

use super::float64;
use crate::warp_register::WarpRegister;

/// `D = A × B + C`. Fragments are the lanes' registers, first register first; `metadata` is that of
/// a sparse A.
///
/// # Panics
/// If a fragment has fewer rows than the shape asks for; binders check that once.
#[must_use]
#[inline(always)]
pub fn multiply(
    shape: Multiply,
    a: &[WarpRegister],
    b: &[WarpRegister],
    c: &[WarpRegister],
    metadata: &WarpRegister,
) -> Vec<WarpRegister> {
    let mut d = vec![WarpRegister::ZERO; shape.d_registers()];
    if shape.a == Input::F64 {
        let (rows, columns) = fragment::gather_doubles(shape, a, b);
        let k = shape.k;
        fragment::map_doubles(shape, c, &mut d, |row, column, addend| {
            let factors = rows[row * k..][..k].iter().zip(&columns[column * k..][..k]);
            factors.fold(addend, |sum, (x, y)| {
                // Which of several operands that are no numbers is handed on: B's, the sum's, A's.
                if float64::is_nan(*y) {
                    y | float64::QUIET
                } else if float64::is_nan(sum) {
                    sum | float64::QUIET
                } else {
                    float64::fma_rounded(*x, *y, sum, shape.rounding)
                }
            })
        });
        return d;
    }
    let left = fragment::gather_a(shape, a);
    let right = fragment::gather_b(shape, b);
    let mut cells = fragment::gather_c(shape, c);
    let select = shape.sparse.then(|| sparse::select(shape, metadata));
    if quarter::is_emulated(shape) {
        quarter::multiply(shape, &left, select.as_deref(), &right, &mut cells);
    } else {
        product(shape, &left, select.as_deref(), &right, &mut cells);
    }
    fragment::scatter_d(shape, &cells, &mut d);
    d
}

/// `D = A × B + C` on whole matrices of bits; `cells` is C and becomes D.
#[inline(always)]
fn product(shape: Multiply, a: &[u32], select: Option<&[u16]>, b: &[u32], cells: &mut [u32]) {
    if shape.a.is_integer() {
        integer::multiply(shape, a, select, b, cells);
    } else {
        sum::multiply(shape, a, select, b, cells);
    }
}

#[cfg(test)]
mod tests {
    use super::fragment::tests::fragments;
    use super::*;
    use crate::semantics::float16::Kind;
    use crate::warp_register::LANES;

    fn shape(m: usize, k: usize, a: Input, d: Accumulator) -> Multiply {
        Multiply::dense([m, 8, k], [a; 2], d, d)
    }

    #[test]
    fn integer_shapes_agree_with_the_textbook() {
        let small = |row: usize, column: usize| ((row * 7 + column * 3) % 8) as u32;
        for (m, k, input) in [
            (8, 16, Input::S8),
            (16, 16, Input::U8),
            (16, 32, Input::S8),
            (8, 32, Input::U4),
            (16, 64, Input::U4),
        ] {
            let shape = shape(m, k, input, Accumulator::S32);
            assert!(shape.is_known());
            assert_eq!(Multiply::decode(shape.encode()), shape);
            let (a, b) = fragments(shape, &small);
            let c = vec![WarpRegister::splat(1); shape.c_registers()];
            let d = multiply(shape, &a, &b, &c, &WarpRegister::ZERO);
            let d = fragment::gather_c(shape, &d);
            for row in 0..m {
                for column in 0..8 {
                    let wanted: u32 = (0..k).map(|i| small(row, i) * small(i, column)).sum();
                    assert_eq!(d[row * 8 + column], wanted + 1);
                }
            }
        }
    }

    #[test]
    fn float_shapes_agree_with_the_textbook() {
        let value = |row: usize, column: usize| ((row * 5 + column) % 7) as f32 - 3.0;
        for (k, input) in [
            (8, Input::F16),
            (16, Input::F16),
            (8, Input::Bf16),
            (16, Input::Bf16),
            (4, Input::Tf32),
            (8, Input::Tf32),
        ] {
            let encode = |row: usize, column: usize| {
                let bits = value(row, column).to_bits();
                match input {
                    Input::F16 => Kind::Half.narrow(bits).into(),
                    Input::Bf16 => Kind::Brain.narrow(bits).into(),
                    _ => bits,
                }
            };
            let shape = shape(16, k, input, Accumulator::F32);
            let (a, b) = fragments(shape, &encode);
            let c = vec![WarpRegister::splat(0.5f32.to_bits()); 4];
            let d = multiply(shape, &a, &b, &c, &WarpRegister::ZERO);
            let d = fragment::gather_c(shape, &d);
            for row in 0..16 {
                for column in 0..8 {
                    let wanted: f32 = (0..k).map(|i| value(row, i) * value(i, column)).sum();
                    assert_eq!(f32::from_bits(d[row * 8 + column]), wanted + 0.5);
                }
            }
        }
    }

    #[test]
    fn double_precision_is_a_chain() {
        let shape = shape(8, 4, Input::F64, Accumulator::F64);
        let mut a = vec![WarpRegister::ZERO; 2];
        let mut b = a.clone();
        for lane in 0..LANES {
            a[1].0[lane] = (((lane / 4 + lane % 4) as f64).to_bits() >> 32) as u32;
            b[1].0[lane] = (((lane % 4 + lane / 4) as f64).to_bits() >> 32) as u32;
        }
        let c = vec![WarpRegister::ZERO; shape.c_registers()];
        let d = multiply(shape, &a, &b, &c, &WarpRegister::ZERO);
        // Lane 6 holds row 1 and columns 4 and 5.
        let wanted: usize = (0..4).map(|i| (1 + i) * (i + 5)).sum();
        let found = u64::from(d[2].0[6]) | u64::from(d[3].0[6]) << 32;
        assert_eq!(f64::from_bits(found), wanted as f64);
    }
}
