//! The special function unit, bit by bit: reciprocal, roots, power of two, logarithm, sine, cosine,
//! hyperbolic tangent, and what PTX builds on them.
//!
//! Every function is a table of quadratic polynomials in fixed point (`unit`), with the H200's
//! coefficients (`tables`). Results equal an H200's for all inputs: `tests/special_functions.rs`
//! holds them to checksums recorded there. Other GPUs have the same ones until they are measured
//! (`docs/decisions/0036-special-function-unit.md`).
//!
//! Functions take the lanes of a warp at once and are named as SASS `MUFU` has them; [`ptx`] adds
//! what `ptxas` puts around them. Start reading at `unit::interpolate`.
//!
//! Reference: PTX ISA, `rcp`, `sqrt`, `rsqrt`, `sin`, `cos`, `lg2`, `ex2`, `tanh`; SASS `MUFU`.

mod angles;
mod powers;
pub mod ptx;
mod roots;
mod small;
mod tables;
mod unit;

pub use angles::{cosine_of_turns, sine_of_turns};
pub use powers::{exponential, hyperbolic_tangent, logarithm};
pub use roots::{
    reciprocal, reciprocal_high, reciprocal_square_root, reciprocal_square_root_high, square_root,
};
pub use small::narrow;

const SIGN: u32 = 1 << 31;
const MAGNITUDE: u32 = !SIGN;
const INFINITY: u32 = 0x7f80_0000;
const ONE: u32 = 0x3f80_0000;
const SMALLEST_NORMAL: u32 = 0x0080_0000;

#[cfg(test)]
mod tests;
