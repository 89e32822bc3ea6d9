//! SASS: what NVIDIA's GPUs really run, decoded by tables and printed as nvdisasm prints it.
//!
//! One row of a table under `tables/` describes one opcode in some of its operand forms:
//! spelling, modifiers with their bits, operands with theirs. [`decode()`] reads a 128-bit
//! word by the rows of its architecture; [`Decoded`] displays as the disassembler's text and
//! carries everything that executing the instruction needs.
//!
//! Modelled: sm_70, sm_75, sm_80, sm_86, sm_89, sm_90.
//! Left out: graphics opcodes, and values that no compiler emits and the disassembler calls
//! invalid; they decode to [`UnknownEncoding`].
//!
//! Start reading at [`table`] (the notation of a row), then [`decode()`].

pub mod architecture;
pub mod decode;
pub mod decoded;
pub mod execute;
pub mod float_text;
pub mod modifier;
pub mod opcode;
pub mod print;
pub mod shape;
pub mod special_register;
pub mod table;
pub mod word;

pub use architecture::Architecture;
pub use decode::{UnknownEncoding, decode};
pub use decoded::{
    ConstantAddress, Decoded, Immediate, ImmediateFormat, MemoryAddress, ModifierValue, Operand,
    Value,
};
pub use modifier::Modifier;
pub use opcode::Opcode;
pub use shape::Shape;
pub use word::Word;
