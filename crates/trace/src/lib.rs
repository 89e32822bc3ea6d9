//! Traces of Accel-Sim: what every warp of a kernel executed, and which memory it touched.
//!
//! A trace is a folder: `kernelslist.g` names kernels and copies in their order ([`list`]), and each
//! kernel has a file of text with a header ([`header`]) and, block by block and warp by warp, a line for
//! each instruction ([`mod@line`], [`address`]). Versions 1 to 5 of the format are read, plain or compressed
//! ([`input`]); the last is written.
//!
//! Read and written here is the public format; nothing of any tracer or simulator is in this crate.
//!
//! Start reading at [`KernelTrace`].

pub mod address;
pub mod bind;
pub mod error;
mod group;
pub mod header;
pub mod input;
pub mod line;
pub mod list;
pub mod program;
pub mod reader;
pub mod scan;
pub mod source;
pub mod spelling;
pub mod writer;

pub use error::TraceError;
pub use header::KernelHeader;
pub use line::InstructionLine;
pub use list::{Command, read_list};
pub use program::{TracedProgram, module_of};
pub use reader::{Event, KernelTrace};
pub use scan::{Scan, scan};
pub use source::PageMap;
pub use spelling::read_spelling;
pub use writer::TraceWriter;
