//! Sums of products of integers: exact, then wrapped or clamped once.

use super::{
    shape::{BitProduct, Input, Multiply},
    sum::COLUMNS,
};

/// Value of an element.
fn value(input: Input, bits: u32) -> i32 {
    match input {
        Input::S8 => i32::from(bits as i8),
        Input::S4 => i32::from((bits << 4) as i8 >> 4),
        _ => bits as i32,
    }
}

/// `D = A × B + C` on whole matrices. `select` names the row of B for every element of A.
#[inline(always)]
pub(super) fn multiply(
    shape: Multiply,
    a: &[u32],
    select: Option<&[u16]>,
    b: &[u32],
    c: &mut [u32],
) {
    let n = shape.n;
    let width = a.len() / shape.m;
    let bits = shape.a == Input::B1;
    let b: Vec<i32> = b.iter().map(|bits| value(shape.b, *bits)).collect();
    let a: Vec<i32> = a.iter().map(|bits| value(shape.a, *bits)).collect();
    for row in 0..shape.m {
        let factors = &a[row * width..][..width];
        for column in (0..n).step_by(COLUMNS) {
            let mut sums = [0i64; COLUMNS];
            let mut partial = [0i32; COLUMNS];
            for (index, x) in factors.iter().enumerate() {
                let k = select.map_or(index, |select| usize::from(select[row * width + index]));
                let others = &b[k * n + column..][..COLUMNS];
                for (sum, y) in partial.iter_mut().zip(others) {
                    *sum += match (bits, shape.bit_product) {
                        (false, _) => x * y,
                        (true, BitProduct::Xor) => (x ^ y).count_ones() as i32,
                        (true, BitProduct::And) => (x & y).count_ones() as i32,
                    };
                }
            }
            for (sum, part) in sums.iter_mut().zip(partial) {
                *sum = i64::from(part);
            }
            for (cell, sum) in c[row * n + column..][..COLUMNS].iter_mut().zip(sums) {
                let total = sum + i64::from(*cell as i32);
                let result = if shape.saturate {
                    total.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
                } else {
                    total as i32
                };
                *cell = result as u32;
            }
        }
    }
}
