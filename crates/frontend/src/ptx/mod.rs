//! PTX: text in, modules out.
//!
//! The passes, in order: `token` and `parser` (with `statement`, `variable`, `expression`) make a
//! tree; `lower` turns statements into instructions with the meanings of `isa::ptx`; `flow` cuts
//! them into basic blocks; `recursion` saves what a call could overwrite; `reconvergence` gives
//! divergent branches their reconvergence points, with the help of `divergence`; `flat` lays blocks
//! out; `allocate` allocates registers; `emit` puts functions in their places.
//! [`Image::link`] is that list.
//!
//! Start reading at [`parse`].

mod allocate;
mod calls;
mod divergence;
mod emit;
mod error;
mod expression;
mod flat;
mod flow;
mod image;
mod ir;
mod lower;
mod parser;
mod reconvergence;
mod recursion;
mod statement;
mod syntax;
mod token;
mod variable;

pub use error::{Error, Position};
pub use image::Image;

/// Parses a PTX text. Variables get addresses later, in [`Image::link`].
///
/// # Errors
/// If the text does not follow the grammar, with the place.
pub fn parse(text: &str) -> Result<Image, Error> {
    Image::new(text.to_owned())
}
