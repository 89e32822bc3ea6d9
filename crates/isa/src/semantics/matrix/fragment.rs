//! Where the lanes of a warp hold the elements of a matrix. PTX ISA, "Matrix Fragments".
//!
//! Lanes form eight groups of four. A register holds `run` neighbouring elements along k (one if
//! elements are 32 bits or wider); four lanes of a group cover `4 × run` of k, and further
//! registers go on from there, the two halves of m first. C and D are pairs along n: eight columns
//! after eight columns, in each of them the two halves of m.
//!
//! One-bit elements are moved 32 at a time: a register of them is one element here.

use super::shape::{Accumulator, Input, Multiply};
use crate::warp_register::{LANES, WarpRegister};

/// Bits that are moved as one element.
pub(super) const fn unit_bits(input: Input) -> usize {
    match input {
        Input::B1 => 32,
        other => other.bits(),
    }
}

/// Elements moved at a time: 32 bits of one-bit elements.
pub(super) const fn units(k: usize, input: Input) -> usize {
    match input {
        Input::B1 => k / 32,
        _ => k,
    }
}

/// Calls `place(row, column, bits)` for every element of a fragment of A.
#[inline(always)]
fn each_of_a(
    m: usize,
    bits: usize,
    rows: &[WarpRegister],
    mut place: impl FnMut(usize, usize, u32),
) {
    let (run, halves) = (32 / bits, m / 8);
    let mask = mask(bits);
    for (register, words) in rows.iter().enumerate() {
        let first = (register / halves) * 4 * run;
        let top = 8 * (register % halves);
        for group in 0..8 {
            for member in 0..4 {
                let word = words.0[4 * group + member];
                for index in 0..run {
                    let column = first + member * run + index;
                    place(top + group, column, word >> (bits * index) & mask);
                }
            }
        }
    }
}

const fn mask(bits: usize) -> u32 {
    if bits == 32 {
        u32::MAX
    } else {
        (1 << bits) - 1
    }
}

/// A as bits, row by row, from the fragment of one warp.
pub(super) fn gather_a(shape: Multiply, rows: &[WarpRegister]) -> Vec<u32> {
    let columns = units(shape.stored_k(), shape.a);
    let mut whole = vec![0; shape.m * columns];
    each_of_a(shape.m, unit_bits(shape.a), rows, |row, column, bits| {
        whole[row * columns + column] = bits;
    });
    whole
}

/// B as bits, row by row (k by k), from a fragment of eight columns.
pub(super) fn gather_b(shape: Multiply, rows: &[WarpRegister]) -> Vec<u32> {
    let bits = unit_bits(shape.b);
    let (run, mask) = (32 / bits, mask(bits));
    let mut whole = vec![0; units(shape.k, shape.b) * shape.n];
    for (register, words) in rows.iter().enumerate() {
        for (lane, word) in words.0.iter().enumerate() {
            for index in 0..run {
                let row = (register * 4 + lane % 4) * run + index;
                whole[row * shape.n + lane / 4] = word >> (bits * index) & mask;
            }
        }
    }
    whole
}

/// (row, column) of value `index` of a lane's fragment of C or D.
const fn accumulator(m: usize, lane: usize, index: usize) -> (usize, usize) {
    let halves = m / 8;
    let row = lane / 4 + 8 * (index / 2 % halves);
    (row, index / (2 * halves) * 8 + (lane % 4) * 2 + index % 2)
}

/// Calls `each(register, column in it, place)` for the lanes of every register of C or D: `place` is
/// that of lane 0 in a matrix of whole rows.
fn each_register(shape: Multiply, bits: usize, mut each: impl FnMut(usize, usize, usize)) {
    let (halves, run) = (shape.m / 8, 32 / bits);
    for index in 0..shape.m * shape.n / LANES {
        let (row, column) = accumulator(shape.m, 0, index);
        debug_assert!(row < 8 * halves);
        each(index / run, index % run, row * shape.n + column);
    }
}

/// C as bits, row by row.
pub(super) fn gather_c(shape: Multiply, rows: &[WarpRegister]) -> Vec<u32> {
    let mut whole = vec![0; shape.m * shape.n];
    let half = shape.c == Accumulator::F16;
    each_register(shape, shape.c.bits(), |register, part, place| {
        let words = &rows[register].0;
        for group in 0..8 {
            for member in 0..4 {
                let word = words[4 * group + member];
                let bits = if half {
                    word >> (16 * part) & 0xffff
                } else {
                    word
                };
                whole[place + group * shape.n + 2 * member] = bits;
            }
        }
    });
    whole
}

/// Spreads D over the registers of a warp, which are zero.
pub(super) fn scatter_d(shape: Multiply, whole: &[u32], rows: &mut [WarpRegister]) {
    each_register(shape, shape.d.bits(), |register, part, place| {
        let words = &mut rows[register].0;
        for group in 0..8 {
            for member in 0..4 {
                let bits = whole[place + group * shape.n + 2 * member];
                words[4 * group + member] |= bits << (16 * part);
            }
        }
    });
}

/// The double in two registers of a lane.
fn double(rows: &[WarpRegister], lane: usize, index: usize) -> u64 {
    let (low, high) = (rows[2 * index].0[lane], rows[2 * index + 1].0[lane]);
    u64::from(low) | u64::from(high) << 32
}

/// A and B of double precision, both with k running fastest.
pub(super) fn gather_doubles(
    shape: Multiply,
    a: &[WarpRegister],
    b: &[WarpRegister],
) -> (Vec<u64>, Vec<u64>) {
    let halves = shape.m / 8;
    let mut of_a = vec![0; shape.m * shape.k];
    let mut of_b = vec![0; shape.n * shape.k];
    for lane in 0..LANES {
        for index in 0..shape.m * shape.k / LANES {
            let row = lane / 4 + 8 * (index % halves);
            of_a[row * shape.k + index / halves * 4 + lane % 4] = double(a, lane, index);
        }
        for index in 0..shape.n * shape.k / LANES {
            of_b[lane / 4 * shape.k + index * 4 + lane % 4] = double(b, lane, index);
        }
    }
    (of_a, of_b)
}

/// Makes each double of D from the one of C: `compute(row, column, c)`.
pub(super) fn map_doubles(
    shape: Multiply,
    c: &[WarpRegister],
    d: &mut [WarpRegister],
    mut compute: impl FnMut(usize, usize, u64) -> u64,
) {
    for lane in 0..LANES {
        for index in 0..shape.m * shape.n / LANES {
            let (row, column) = accumulator(shape.m, lane, index);
            let value = compute(row, column, double(c, lane, index));
            d[2 * index].0[lane] = value as u32;
            d[2 * index + 1].0[lane] = (value >> 32) as u32;
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::semantics::matrix::shape::Multiply;

    /// Fragments of A and B that hold `bits(row, column)`.
    pub(crate) fn fragments(
        shape: Multiply,
        bits: &dyn Fn(usize, usize) -> u32,
    ) -> (Vec<WarpRegister>, Vec<WarpRegister>) {
        let width = unit_bits(shape.a);
        let mut a = vec![WarpRegister::ZERO; shape.a_registers()];
        let mut b = vec![WarpRegister::ZERO; shape.b_registers()];
        let (run, halves) = (32 / width, shape.m / 8);
        for lane in 0..LANES {
            for (register, row_of) in a.iter_mut().enumerate() {
                for index in 0..run {
                    let row = 8 * (register % halves) + lane / 4;
                    let column = (register / halves * 4 + lane % 4) * run + index;
                    row_of.0[lane] |= bits(row, column) << (width * index);
                }
            }
            for (register, row_of) in b.iter_mut().enumerate() {
                for index in 0..run {
                    let row = (register * 4 + lane % 4) * run + index;
                    row_of.0[lane] |= bits(row, lane / 4) << (width * index);
                }
            }
        }
        (a, b)
    }

    #[test]
    fn the_documented_places_of_m16n8k16() {
        // PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type": a4 of lane 5 is
        // row 1 (group), column 2 × 1 + 8; a2 is row 9.
        let mut rows = vec![WarpRegister::ZERO; 4];
        for (register, row) in rows.iter_mut().enumerate() {
            row.0[5] = ((2 * register as u32 + 1) << 16) | (2 * register as u32);
        }
        let mut found = [(0, 0); 8];
        each_of_a(16, 16, &rows, |row, column, bits| {
            if row % 8 == 1 && (2..4).contains(&(column % 8)) {
                found[bits as usize] = (row, column);
            }
        });
        assert_eq!(found[4], (1, 10));
        assert_eq!(found[2], (9, 2));
        assert_eq!(found[7], (9, 11));
        assert_eq!(accumulator(16, 5, 3), (9, 3));
        assert_eq!(accumulator(16, 5, 6), (9, 10), "of the next eight columns");
        assert_eq!(accumulator(8, 5, 1), (1, 3));
    }
}
