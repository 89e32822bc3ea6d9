//! Matrix multiply-accumulate of a warp: `D = A × B + C` on fragments. PTX ISA, `mma`.
//!
//! Every lane holds a few elements of each matrix; `Layout` says which. The operands are
//! gathered into whole matrices, multiplied, and the result is spread over the lanes again.
//!
//! Order of operations, since NVIDIA documents none: for 16-bit, 8-bit and TF32 inputs each
//! element of D is the sum over k, ascending, of exact products, in double precision, then C is
//! added and the sum rounded to nearest once. Hardware aligns and cuts off the products of a
//! group instead, so that last bits may differ. FP64 is a chain of fused multiply-adds, k
//! ascending from C, each rounded to nearest. Integers are exact and wrap, or clamp with
//! `.satfinite`.

use super::{
    float16::{Kind, brain_to_float, half_to_float},
    float32, float64,
    small_float::Small,
};
use crate::warp_register::{LANES, WarpRegister};

/// Element types of A and B.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Input {
    /// Half precision.
    F16,
    /// bfloat16.
    Bf16,
    /// Single precision of which ten fraction bits count.
    Tf32,
    /// Double precision.
    F64,
    /// Signed byte.
    S8,
    /// Unsigned byte.
    U8,
    /// Signed nibble.
    S4,
    /// Unsigned nibble.
    U4,
    /// One bit.
    B1,
    /// Eight-bit float.
    E4m3,
    /// Eight-bit float.
    E5m2,
}

impl Input {
    /// Bits of one element in a register.
    #[must_use]
    pub const fn bits(self) -> usize {
        match self {
            Self::F16 | Self::Bf16 => 16,
            Self::Tf32 => 32,
            Self::F64 => 64,
            Self::S8 | Self::U8 | Self::E4m3 | Self::E5m2 => 8,
            Self::S4 | Self::U4 => 4,
            Self::B1 => 1,
        }
    }

    /// By number, as [`Multiply::encode`] writes it.
    #[must_use]
    pub const fn from_index(index: u64) -> Self {
        match index & 15 {
            0 => Self::F16,
            1 => Self::Bf16,
            2 => Self::Tf32,
            3 => Self::F64,
            4 => Self::S8,
            5 => Self::U8,
            6 => Self::S4,
            7 => Self::U4,
            8 => Self::B1,
            9 => Self::E4m3,
            _ => Self::E5m2,
        }
    }

    fn is_integer(self) -> bool {
        matches!(self, Self::S8 | Self::U8 | Self::S4 | Self::U4 | Self::B1)
    }

    /// Value of the element in the low bits of a word.
    fn float(self, bits: u64) -> f64 {
        let single = match self {
            Self::F16 => half_to_float(bits as u16),
            Self::Bf16 => brain_to_float(bits as u16),
            Self::Tf32 => bits as u32 & !0x1fff,
            Self::E4m3 => half_to_float(Small::E4m3.to_half(bits as u8)),
            Self::E5m2 => half_to_float(Small::E5m2.to_half(bits as u8)),
            _ => 0,
        };
        f64::from(f32::from_bits(single))
    }

    fn integer(self, bits: u64) -> i64 {
        match self {
            Self::S8 => i64::from(bits as i8),
            Self::S4 => i64::from((bits << 4) as i8 >> 4),
            _ => bits as i64,
        }
    }
}

/// Element types of C and D.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Accumulator {
    /// Single precision.
    F32,
    /// Half precision, two a register.
    F16,
    /// Signed integer.
    S32,
    /// Double precision.
    F64,
}

impl Accumulator {
    const fn bits(self) -> usize {
        match self {
            Self::F16 => 16,
            Self::F32 | Self::S32 => 32,
            Self::F64 => 64,
        }
    }

    const fn from_index(index: u64) -> Self {
        match index & 3 {
            0 => Self::F32,
            1 => Self::F16,
            2 => Self::S32,
            _ => Self::F64,
        }
    }
}

/// How products of bits are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum BitProduct {
    /// Ones of the exclusive or.
    Xor,
    /// Ones of the and.
    And,
}

/// One matrix instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiply {
    /// Rows of A and D: 8 or 16.
    pub m: usize,
    /// Columns of B and D: 8.
    pub n: usize,
    /// Columns of A, rows of B.
    pub k: usize,
    /// Elements of A.
    pub a: Input,
    /// Elements of B.
    pub b: Input,
    /// Elements of C.
    pub c: Accumulator,
    /// Elements of D.
    pub d: Accumulator,
    /// Integers clamp instead of wrapping.
    pub saturate: bool,
    /// For one-bit elements.
    pub bit_product: BitProduct,
}

impl Multiply {
    /// As modifier bits of an instruction.
    #[must_use]
    pub const fn encode(self) -> u64 {
        self.m as u64
            | (self.n as u64) << 8
            | (self.k as u64) << 16
            | (self.a as u64) << 28
            | (self.b as u64) << 32
            | (self.c as u64) << 36
            | (self.d as u64) << 38
            | (self.saturate as u64) << 40
            | (self.bit_product as u64) << 41
    }

    /// From modifier bits.
    #[must_use]
    pub const fn decode(bits: u64) -> Self {
        Self {
            m: (bits & 255) as usize,
            n: (bits >> 8 & 255) as usize,
            k: (bits >> 16 & 4095) as usize,
            a: Input::from_index(bits >> 28),
            b: Input::from_index(bits >> 32),
            c: Accumulator::from_index(bits >> 36),
            d: Accumulator::from_index(bits >> 38),
            saturate: bits >> 40 & 1 == 1,
            bit_product: if bits >> 41 & 1 == 1 {
                BitProduct::And
            } else {
                BitProduct::Xor
            },
        }
    }

    /// Registers (32-bit rows) of the fragment of A.
    #[must_use]
    pub const fn a_registers(self) -> usize {
        self.m * self.k * self.a.bits() / (32 * LANES)
    }

    /// Registers of the fragment of B.
    #[must_use]
    pub const fn b_registers(self) -> usize {
        self.k * self.n * self.b.bits() / (32 * LANES)
    }

    /// Registers of the fragment of C.
    #[must_use]
    pub const fn c_registers(self) -> usize {
        self.m * self.n * self.c.bits() / (32 * LANES)
    }

    /// Registers of the fragment of D.
    #[must_use]
    pub const fn d_registers(self) -> usize {
        self.m * self.n * self.d.bits() / (32 * LANES)
    }

    /// Whether the layout rules below cover this shape.
    #[must_use]
    pub const fn is_known(self) -> bool {
        let word = if self.a.bits() >= 32 {
            1
        } else {
            32 / self.a.bits()
        };
        (self.m == 8 || self.m == 16)
            && self.n == 8
            && self.k > 0
            && self.k.is_multiple_of(4 * word)
            && self.k <= 256
            && self.a.bits() == self.b.bits()
    }
}

/// Where the lanes hold the elements of a matrix.
///
/// Lanes form eight groups of four. A register holds `run` neighbouring elements along k (one if
/// elements are 32 bits or wider); four lanes of a group cover `4 × run` of k, and further
/// registers go on from there, the two halves of m first.
struct Layout {
    run: usize,
}

impl Layout {
    fn new(bits: usize) -> Self {
        Self {
            run: if bits >= 32 { 1 } else { 32 / bits },
        }
    }

    /// (row, column) of element `index` of a lane's fragment of A.
    fn a(&self, m: usize, lane: usize, index: usize) -> (usize, usize) {
        let halves = m / 8;
        let (register, within) = (index / self.run, index % self.run);
        let row = lane / 4 + 8 * (register % halves);
        let column = (register / halves) * 4 * self.run + (lane % 4) * self.run + within;
        (row, column)
    }

    /// (row, column) of element `index` of a lane's fragment of B.
    fn b(&self, lane: usize, index: usize) -> (usize, usize) {
        let (register, within) = (index / self.run, index % self.run);
        (
            register * 4 * self.run + (lane % 4) * self.run + within,
            lane / 4,
        )
    }
}

/// (row, column) of element `index` of a lane's fragment of C or D: pairs along n.
fn accumulator(lane: usize, index: usize) -> (usize, usize) {
    (lane / 4 + 8 * (index / 2), (lane % 4) * 2 + index % 2)
}

/// Element `index` of a lane's registers.
fn element(rows: &[WarpRegister], lane: usize, index: usize, bits: usize) -> u64 {
    if bits == 64 {
        let (low, high) = (rows[2 * index].0[lane], rows[2 * index + 1].0[lane]);
        return u64::from(low) | u64::from(high) << 32;
    }
    let each = 32 / bits;
    let word = u64::from(rows[index / each].0[lane]);
    let field = word >> (bits * (index % each));
    field & ((1u64 << bits) - 1)
}

fn put(rows: &mut [WarpRegister], lane: usize, index: usize, bits: usize, value: u64) {
    if bits == 64 {
        rows[2 * index].0[lane] = value as u32;
        rows[2 * index + 1].0[lane] = (value >> 32) as u32;
        return;
    }
    let each = 32 / bits;
    let shift = bits * (index % each);
    let mask = (((1u64 << bits) - 1) << shift) as u32;
    let word = &mut rows[index / each].0[lane];
    *word = (*word & !mask) | ((value << shift) as u32 & mask);
}

/// Whole operands, row by row; B transposed so that both run along k.
struct Operands<T> {
    a: Vec<T>,
    b: Vec<T>,
    k: usize,
}

impl<T: Copy + Default> Operands<T> {
    fn gather(
        shape: Multiply,
        a: &[WarpRegister],
        b: &[WarpRegister],
        read_a: impl Fn(u64) -> T,
        read_b: impl Fn(u64) -> T,
    ) -> Self {
        let layout = Layout::new(shape.a.bits());
        let mut operands = Self {
            a: vec![T::default(); shape.m * shape.k],
            b: vec![T::default(); shape.n * shape.k],
            k: shape.k,
        };
        for lane in 0..LANES {
            for index in 0..shape.m * shape.k / LANES {
                let (row, column) = layout.a(shape.m, lane, index);
                let bits = element(a, lane, index, shape.a.bits());
                operands.a[row * shape.k + column] = read_a(bits);
            }
            for index in 0..shape.n * shape.k / LANES {
                let (row, column) = layout.b(lane, index);
                let bits = element(b, lane, index, shape.b.bits());
                operands.b[column * shape.k + row] = read_b(bits);
            }
        }
        operands
    }

    fn along_k(&self, row: usize, column: usize) -> impl Iterator<Item = (T, T)> {
        let a = &self.a[row * self.k..(row + 1) * self.k];
        let b = &self.b[column * self.k..(column + 1) * self.k];
        a.iter().copied().zip(b.iter().copied())
    }
}

/// `D = A × B + C`. Fragments are the lanes' registers, first register first.
///
/// # Panics
/// If a fragment has fewer rows than the shape asks for; binders check that once.
#[must_use]
pub fn multiply(
    shape: Multiply,
    a: &[WarpRegister],
    b: &[WarpRegister],
    c: &[WarpRegister],
) -> Vec<WarpRegister> {
    let mut d = vec![WarpRegister::ZERO; shape.d_registers()];
    let mut each = |compute: &dyn Fn(usize, usize, u64) -> u64| {
        for lane in 0..LANES {
            for index in 0..shape.m * shape.n / LANES {
                let (row, column) = accumulator(lane, index);
                let addend = element(c, lane, index, shape.c.bits());
                let result = compute(row, column, addend);
                put(&mut d, lane, index, shape.d.bits(), result);
            }
        }
    };
    if shape.a.is_integer() {
        let values = Operands::gather(shape, a, b, |x| shape.a.integer(x), |x| shape.b.integer(x));
        each(&|row, column, addend| integer_element(shape, &values, row, column, addend));
    } else if shape.a == Input::F64 {
        let values = Operands::gather(shape, a, b, |x| x, |x| x);
        each(&|row, column, addend| {
            values
                .along_k(row, column)
                .fold(addend, |sum, (x, y)| float64::fma(x, y, sum))
        });
    } else {
        let values = Operands::gather(shape, a, b, |x| shape.a.float(x), |x| shape.b.float(x));
        each(&|row, column, addend| float_element(shape, &values, row, column, addend));
    }
    d
}

fn integer_element(
    shape: Multiply,
    values: &Operands<i64>,
    row: usize,
    column: usize,
    addend: u64,
) -> u64 {
    let product = |x: i64, y: i64| match (shape.a, shape.bit_product) {
        (Input::B1, BitProduct::Xor) => x ^ y,
        (Input::B1, BitProduct::And) => x & y,
        _ => x * y,
    };
    let sum: i64 = values
        .along_k(row, column)
        .map(|(x, y)| product(x, y))
        .sum();
    let total = sum + i64::from(addend as i32);
    let result = if shape.saturate {
        total.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32
    } else {
        total as i32
    };
    u64::from(result as u32)
}

fn float_element(
    shape: Multiply,
    values: &Operands<f64>,
    row: usize,
    column: usize,
    addend: u64,
) -> u64 {
    let products: f64 = values.along_k(row, column).map(|(x, y)| x * y).sum();
    let addend = match shape.c {
        Accumulator::F16 => half_to_float(addend as u16),
        _ => addend as u32,
    };
    let sum = float32::add_to_odd(products, f64::from(f32::from_bits(addend)));
    match shape.d {
        Accumulator::F16 => {
            u64::from(Kind::Half.narrow_double(sum.to_bits(), super::Rounding::Nearest))
        }
        _ => u64::from(float32::canonical(sum as f32)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(m: usize, k: usize, a: Input, d: Accumulator) -> Multiply {
        Multiply {
            m,
            n: 8,
            k,
            a,
            b: a,
            c: d,
            d,
            saturate: false,
            bit_product: BitProduct::Xor,
        }
    }

    /// Fragments of A and B that hold `f(row, column)`.
    fn fragments(
        shape: Multiply,
        bits: &dyn Fn(usize, usize) -> u64,
    ) -> (Vec<WarpRegister>, Vec<WarpRegister>) {
        let layout = Layout::new(shape.a.bits());
        let mut a = vec![WarpRegister::ZERO; shape.a_registers()];
        let mut b = vec![WarpRegister::ZERO; shape.b_registers()];
        for lane in 0..LANES {
            for index in 0..shape.m * shape.k / LANES {
                let (row, column) = layout.a(shape.m, lane, index);
                put(&mut a, lane, index, shape.a.bits(), bits(row, column));
            }
            for index in 0..shape.n * shape.k / LANES {
                let (row, column) = layout.b(lane, index);
                put(&mut b, lane, index, shape.b.bits(), bits(row, column));
            }
        }
        (a, b)
    }

    #[test]
    fn integer_shapes_agree_with_the_textbook() {
        let small = |row: usize, column: usize| ((row * 7 + column * 3) % 8) as u64;
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
            let d = multiply(shape, &a, &b, &c);
            for lane in 0..LANES {
                for index in 0..m * 8 / LANES {
                    let (row, column) = accumulator(lane, index);
                    let wanted: u64 = (0..k).map(|i| small(row, i) * small(i, column)).sum();
                    assert_eq!(element(&d, lane, index, 32), wanted + 1);
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
                    Input::F16 => u64::from(Kind::Half.narrow(bits)),
                    Input::Bf16 => u64::from(Kind::Brain.narrow(bits)),
                    _ => u64::from(bits),
                }
            };
            let shape = shape(16, k, input, Accumulator::F32);
            let (a, b) = fragments(shape, &encode);
            let d = multiply(
                shape,
                &a,
                &b,
                &vec![WarpRegister::splat(0.5f32.to_bits()); 4],
            );
            for lane in 0..LANES {
                for index in 0..4 {
                    let (row, column) = accumulator(lane, index);
                    let wanted: f32 = (0..k).map(|i| value(row, i) * value(i, column)).sum();
                    assert_eq!(
                        element(&d, lane, index, 32) as u32,
                        (wanted + 0.5).to_bits()
                    );
                }
            }
        }
    }

    #[test]
    fn the_documented_places_of_m16n8k16() {
        // PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type": a4 of lane 5 is
        // row 1 (group), column 2 × 1 + 8; a2 is row 9.
        let layout = Layout::new(16);
        assert_eq!(layout.a(16, 5, 4), (1, 10));
        assert_eq!(layout.a(16, 5, 2), (9, 2));
        assert_eq!(layout.a(16, 5, 7), (9, 11));
        assert_eq!(layout.b(5, 2), (10, 1));
        assert_eq!(accumulator(5, 3), (9, 3));
        // m16n8k8 TF32: a1 of lane 5 is row 9, column 1; a2 row 1, column 5.
        let layout = Layout::new(32);
        assert_eq!(layout.a(16, 5, 1), (9, 1));
        assert_eq!(layout.a(16, 5, 2), (1, 5));
    }

    #[test]
    fn double_precision_is_a_chain() {
        let shape = shape(8, 4, Input::F64, Accumulator::F64);
        let (a, b) = fragments(shape, &|row, column| ((row + column) as f64).to_bits());
        let d = multiply(
            shape,
            &a,
            &b,
            &vec![WarpRegister::ZERO; shape.c_registers()],
        );
        let (row, column) = accumulator(6, 1);
        let wanted: usize = (0..4).map(|i| (row + i) * (i + column)).sum();
        assert_eq!(f64::from_bits(element(&d, 6, 1, 64)), wanted as f64);
    }
}
