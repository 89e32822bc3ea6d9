//! From decoded SASS to instructions that run.
//!
//! [`bind()`] turns one [`Decoded`](super::Decoded) into an [`Instruction`](crate::Instruction): the rows of [`table`]
//! bind arithmetic to its semantics, [`memory`] and [`flow`] describe accesses and branches.
//!
//! Registers of a warp: uniform registers first (one word a warp, kept in every lane, so that one
//! function serves both datapaths), then `R0`, `R1`, …. Predicates: `P0` to `P6` at 0 to 6, the
//! outcome of a barrier's reduction at 7, `UP0` to `UP6` at 8 to 14.
//!
//! Start reading at [`bind()`].

pub mod bind;
pub mod convert;
mod fixed_latency;
pub mod float;
pub mod flow;
pub mod integer;
pub mod logic;
pub mod matrix;
pub mod memory;
pub mod pack;
pub mod packed_integer;
pub mod table;
mod volta;
pub mod warp;
pub mod warpgroup;

pub use bind::{BindError, Frame, bind};
