//! What a matrix instruction multiplies: element types, shape, and how many registers that takes.

use super::unit::TensorCore;
use crate::{semantics::Rounding, warp_register::LANES};

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

    pub(super) const fn is_integer(self) -> bool {
        matches!(self, Self::S8 | Self::U8 | Self::S4 | Self::U4 | Self::B1)
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
    pub(super) const fn bits(self) -> usize {
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

/// One matrix instruction of one warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Multiply {
    /// Rows of A and D: 8 or 16.
    pub m: usize,
    /// Columns of B and D: 8, or a multiple of it for a warp group.
    pub n: usize,
    /// Columns of A, rows of B; those that sparse elements come from.
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
    /// A holds half of its elements, and metadata says which.
    pub sparse: bool,
    /// Which lanes give the metadata.
    pub selector: u8,
    /// Of double precision.
    pub rounding: Rounding,
    /// The unit that adds.
    pub unit: TensorCore,
}

impl Multiply {
    /// A dense product on today's unit, wrapping or rounded to nearest.
    #[must_use]
    pub const fn dense(
        [m, n, k]: [usize; 3],
        [a, b]: [Input; 2],
        c: Accumulator,
        d: Accumulator,
    ) -> Self {
        Self {
            m,
            n,
            k,
            a,
            b,
            c,
            d,
            saturate: false,
            bit_product: BitProduct::Xor,
            sparse: false,
            selector: 0,
            rounding: Rounding::Nearest,
            unit: TensorCore::Hopper,
        }
    }

    /// As modifier bits of an instruction.
    #[must_use]
    pub const fn encode(self) -> u64 {
        self.m as u64
            | (self.n as u64) << 8
            | (self.k as u64) << 17
            | (self.a as u64) << 29
            | (self.b as u64) << 33
            | (self.c as u64) << 37
            | (self.d as u64) << 39
            | (self.saturate as u64) << 41
            | (self.bit_product as u64) << 42
            | (self.sparse as u64) << 43
            | (self.selector as u64 & 3) << 44
            | rounding_index(self.rounding) << 46
            | (self.unit as u64) << 48
    }

    /// From modifier bits.
    #[must_use]
    pub const fn decode(bits: u64) -> Self {
        Self {
            m: (bits & 255) as usize,
            n: (bits >> 8 & 511) as usize,
            k: (bits >> 17 & 4095) as usize,
            a: Input::from_index(bits >> 29),
            b: Input::from_index(bits >> 33),
            c: Accumulator::from_index(bits >> 37),
            d: Accumulator::from_index(bits >> 39),
            saturate: bits >> 41 & 1 == 1,
            bit_product: if bits >> 42 & 1 == 1 {
                BitProduct::And
            } else {
                BitProduct::Xor
            },
            sparse: bits >> 43 & 1 == 1,
            selector: (bits >> 44 & 3) as u8,
            rounding: ROUNDINGS[(bits >> 46 & 3) as usize],
            unit: TensorCore::from_index(bits >> 48),
        }
    }

    /// Columns of A as it lies in registers or memory.
    #[must_use]
    pub const fn stored_k(self) -> usize {
        if self.sparse { self.k / 2 } else { self.k }
    }

    /// Registers (32-bit rows) of the fragment of A.
    #[must_use]
    pub const fn a_registers(self) -> usize {
        self.m * self.stored_k() * self.a.bits() / (32 * LANES)
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

    /// Whether the layout rules cover this shape.
    #[must_use]
    pub const fn is_known(self) -> bool {
        let word = if self.a.bits() >= 32 {
            1
        } else {
            32 / self.a.bits()
        };
        let stored = self.stored_k();
        (self.m == 8 || self.m == 16)
            && self.n > 0
            && self.n.is_multiple_of(8)
            && self.n <= 256
            && stored > 0
            && stored.is_multiple_of(4 * word)
            && self.k <= 256
            && self.a.bits() == self.b.bits()
            && (!self.sparse || self.m == 16 && self.a.bits() >= 4 && self.a.bits() <= 32)
    }
}

const ROUNDINGS: [Rounding; 4] = [
    Rounding::Nearest,
    Rounding::Zero,
    Rounding::Down,
    Rounding::Up,
];

const fn rounding_index(rounding: Rounding) -> u64 {
    match rounding {
        Rounding::Zero => 1,
        Rounding::Down => 2,
        Rounding::Up => 3,
        _ => 0,
    }
}
