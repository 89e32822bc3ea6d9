//! SASS in: fat binaries, cubins, and the programs inside them.
//!
//! [`fatbinary`] finds the images that nvcc packed, [`cubin`] reads one ELF file, [`info`] its
//! attributes, [`image`] links it into a [`Module`](lockstep_isa::Module), whose code is decoded when it
//! is needed.
//!
//! Every byte is untrusted: lengths are checked before they are used, and what a file claims to
//! hold is bounded by what it has.
//!
//! Start reading at [`image::Image::read`].

mod code;
pub mod cubin;
pub mod disassemble;
pub mod error;
pub mod fatbinary;
mod grid_barrier;
pub mod image;
pub mod info;
mod kernel;
pub mod lines;
mod relocated;
pub mod relocation;
mod scan;
pub mod select;
mod source_lines;
mod system_functions;

pub use cubin::Cubin;
pub use disassemble::disassemble;
pub use error::Error;
pub use image::Image;
