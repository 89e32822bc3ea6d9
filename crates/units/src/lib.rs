//! Bytes, cycles, frequencies, times, addresses and launch configurations, seeded randomness: parsed, printed, never mixed.
//!
//! A unit is a type, never a suffix of a name. Each type reads the text that configuration files
//! carry ("512 KiB", "30 cycles", "1.41 GHz") and prints text that reads back to the same value.
//! In human-readable formats (TOML, JSON) the types are those strings; in binary ones they are the
//! bare integer, so that saved state stays compact.
//!
//! An instant and a duration differ: [`Time`] and [`Cycle`] are instants, [`Duration`] and
//! [`Cycles`] are lengths. Time is counted in femtoseconds, which makes every clock edge exact to
//! the femtosecond and leaves room for five hours of simulated time in 64 bits.
//!
//! Start reading at [`Hertz::edge`] for time and at `text.rs` for the notation.

mod address;
mod bandwidth;
mod bytes;
mod clock;
mod cycles;
mod hertz;
mod launch;
mod quantity;
mod random;
mod tensor_map;
mod text;
mod texture;
mod time;

pub use address::Address;
pub use bandwidth::{Bandwidth, BytesPerCycle};
pub use bytes::Bytes;
pub use clock::Clock;
pub use cycles::{Cycle, Cycles};
pub use hertz::Hertz;
pub use launch::{LaunchConfig, WARP};
pub use random::{Random, splitmix64};
pub use tensor_map::{
    Interleave, Swizzle, TENSOR_DIMENSIONS, TENSOR_MAP_BYTES, TensorElement, TensorMap,
    TensorMapError, TensorPart,
};
pub use text::ParseError;
pub use texture::{
    AddressMode, ChannelKind, FilterMode, Sampler, TexelFormat, TextureLevel, TextureObject,
    TextureShape, TextureTable,
};
pub use time::{Duration, Time};
