//! Pure semantics, written once: PTX and SASS tables bind spelling and encoding to them.
//!
//! Semantics are functions on plain words: `fn(u32, u32) -> u32` for one lane, or on the values
//! of 32 lanes where lanes see each other ([`warp`], [`matrix`]). Floats travel as bits, so that
//! no host rule about NaNs shows. Results are the same on every host: nothing here calls a
//! mathematical library, and what the host rounds is only what IEEE 754 defines.
//!
//! [`lane_loops`] lifts a lane function to the registers of a warp.
//!
//! Start reading at [`integer`] for their shape, then [`lane_loops`].

pub mod atomic;
pub mod compare;
pub mod convert;
pub mod float16;
pub mod float32;
pub mod float64;
pub mod integer;
pub mod lane_loops;
pub mod logic;
pub mod matrix;
pub mod mbarrier;
pub mod modifiers;
pub mod multicast;
pub mod small_float;
pub mod soft;
pub mod transcendental;
pub mod video;
pub mod warp;

pub use modifiers::Modifiers;
pub use soft::Rounding;
