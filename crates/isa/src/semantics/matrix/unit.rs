//! How the tensor cores of each generation add, as data.
//!
//! A unit takes the products of a group and the addend, shifts all of them to the largest exponent
//! among them, cuts off what lies more than `fraction` bits below it (toward zero), adds exactly, and
//! rounds once; the result is the addend of the next group. Hopper's numbers were measured on an H200
//! (`tests/tensor_core/h200.txt`); those of older generations are as published
//! (M. Fasi et al., "Numerical behavior of NVIDIA tensor cores", 2021; X. Li et al., "FTTN", 2024) and
//! not measured here.

use super::shape::{Accumulator, Input};

/// Generations of tensor cores that add differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TensorCore {
    /// Volta and Turing.
    Volta,
    /// Ampere and Ada.
    Ampere,
    /// Hopper, `mma`.
    Hopper,
    /// Hopper, `wgmma`.
    HopperGroup,
}

impl TensorCore {
    pub(super) const fn from_index(index: u64) -> Self {
        match index & 3 {
            0 => Self::Volta,
            1 => Self::Ampere,
            2 => Self::Hopper,
            _ => Self::HopperGroup,
        }
    }

    /// That of `mma` on a GPU, by compute capability × 10.
    #[must_use]
    pub const fn of_architecture(architecture: u32) -> Self {
        match architecture {
            ..80 => Self::Volta,
            80..90 => Self::Ampere,
            _ => Self::Hopper,
        }
    }
}

/// Terms are shifted to this exponent if all are smaller: products of tiny numbers lose bits to it.
/// Measured on an H200, where no other value explains all sums.
pub const LEAST_EXPONENT: i32 = -133;

/// How one unit adds products of floating-point numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Summation {
    /// Products that are added at once.
    pub group: usize,
    /// Bits kept below the largest exponent.
    pub fraction: u32,
    /// Fraction bits of a single-precision result; 23 but for eight-bit inputs.
    pub result: u32,
}

/// The rule for a unit and its element types.
#[must_use]
pub const fn summation(unit: TensorCore, input: Input, _: Accumulator) -> Summation {
    let quarter = matches!(input, Input::E4m3 | Input::E5m2);
    match (unit, input) {
        (TensorCore::Volta, _) => Summation {
            group: 4,
            fraction: 23,
            result: 23,
        },
        (TensorCore::Ampere, Input::Tf32) => Summation {
            group: 4,
            fraction: 24,
            result: 23,
        },
        (TensorCore::Ampere, _) if quarter => Summation {
            group: 16,
            fraction: 13,
            result: 13,
        },
        (TensorCore::Ampere, _) => Summation {
            group: 8,
            fraction: 24,
            result: 23,
        },
        (TensorCore::HopperGroup, _) if quarter => Summation {
            group: 32,
            fraction: 13,
            result: 13,
        },
        (_, Input::Tf32) => Summation {
            group: 8,
            fraction: 25,
            result: 23,
        },
        (_, _) => Summation {
            group: 16,
            fraction: 25,
            result: 23,
        },
    }
}
