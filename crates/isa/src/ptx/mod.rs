//! PTX spelling bound to shared semantics.
//!
//! An [`Entry`] is a row: the spelling in a notation close to the manual's, what each operand
//! is, the semantics, and what the SM sees. One file a family; [`FAMILIES`] lists them. Memory,
//! control flow, barriers, matrices and video have no row: their operands decide too much, and the
//! front end builds them.
//!
//! Spelling: `.s32` must stand there; `[.sat]` may; `(.s32.u32)` is one of these, `[.s32.u32]`
//! one or none; `@rnd` inside brackets stands for a group of [`GROUPS`].
//!
//! Start reading at `integer.rs`.

mod compare;
mod convert;
mod float;
mod half;
mod integer;
mod logic;
pub mod matrix;
mod pattern;
mod refused;
mod special_function;
pub mod special_register;
pub mod video;
mod warp;

pub use pattern::{GROUPS, Pattern, modifier_bits};
pub use refused::REFUSED;

use crate::{
    instruction::{Latency, Mix, Unit},
    semantics::lane_loops::Semantics,
};

/// One instruction, or a few that differ only in type names.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// What is written before the operands.
    pub spelling: &'static str,
    /// What the operands are, in the order in which they are written.
    pub operands: &'static [Slot],
    /// The function on 32 lanes that executes it.
    pub semantics: Semantics,
    /// What the SM sees.
    pub class: Class,
}

/// What an operand is, and where it goes in an [`crate::Instruction`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// The destination register.
    Write(Type),
    /// The next source.
    Read(Type),
    /// Predicate destination, `p` or `p|q`.
    WritePredicate,
    /// The destination register and, after a bar, a predicate: `d` or `d|p`.
    WriteWithPredicate(Type),
    /// The next predicate read, `p` or `!p`.
    ReadPredicate,
    /// A predicate that may be left out (then true).
    OptionalPredicate,
    /// An immediate byte, put into the modifiers at [`crate::semantics::Modifiers::FREE`].
    Byte,
    /// The carry flag is read into `predicates[0]`; nothing is written for it.
    CarryIn,
    /// The carry flag is `predicate_destinations[0]`; nothing is written for it.
    CarryOut,
}

/// Register types, as far as width and literals need them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Type {
    /// 8 bits, in a 16-bit register or wider.
    B8,
    /// 16-bit integer.
    B16,
    /// 32-bit integer.
    B32,
    /// 64-bit integer.
    B64,
    /// 16-bit float.
    F16,
    /// 32-bit float.
    F32,
    /// 64-bit float.
    F64,
}

impl Type {
    /// Width in bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        match self {
            Self::B8 => 8,
            Self::B16 | Self::F16 => 16,
            Self::B32 | Self::F32 => 32,
            Self::B64 | Self::F64 => 64,
        }
    }

    /// Number of 32-bit words, which is also the number of registers.
    #[must_use]
    pub const fn words(self) -> u16 {
        if self.bits() == 64 { 2 } else { 1 }
    }
}

/// What the SM sees of an instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Class {
    /// Execution unit.
    pub unit: Unit,
    /// Latency class.
    pub latency: Latency,
    /// What profilers count it as.
    pub mix: Mix,
}

/// Classes by the names that the rows use.
pub mod class {
    use super::{Class, Latency, Mix, Unit};

    const fn class(unit: Unit, latency: Latency, mix: Mix) -> Class {
        Class { unit, latency, mix }
    }

    /// Integer and logic.
    pub const INTEGER: Class = class(Unit::Alu, Latency::Integer, Mix::Integer);
    /// Comparisons.
    pub const COMPARE: Class = class(Unit::Alu, Latency::Compare, Mix::Integer);
    /// Comparisons of single precision.
    pub const COMPARE_FLOAT: Class = class(Unit::Alu, Latency::Compare, Mix::Fp32);
    /// 32-bit integer multiplication.
    pub const MULTIPLY: Class = class(Unit::Fma, Latency::Float, Mix::Integer);
    /// 64-bit products.
    pub const WIDE: Class = class(Unit::Fma, Latency::WideMultiply, Mix::Integer);
    /// Single precision.
    pub const FLOAT: Class = class(Unit::Fma, Latency::Float, Mix::Fp32);
    /// Double precision.
    pub const DOUBLE: Class = class(Unit::Double, Latency::Double, Mix::Fp64);
    /// 16-bit floats.
    pub const HALF: Class = class(Unit::Half, Latency::Half, Mix::Fp32);
    /// Special functions.
    pub const SPECIAL: Class = class(Unit::Transcendental, Latency::Transcendental, Mix::Fp32);
    /// Special functions of double precision.
    pub const SPECIAL_DOUBLE: Class =
        class(Unit::Transcendental, Latency::Transcendental, Mix::Fp64);
    /// Conversions.
    pub const CONVERT: Class = class(Unit::Transcendental, Latency::Conversion, Mix::Other);
    /// Bit counts, which share the conversion unit.
    pub const COUNT: Class = class(Unit::Transcendental, Latency::Conversion, Mix::Integer);
    /// Moves.
    pub const MOVE: Class = class(Unit::Alu, Latency::Integer, Mix::Other);
    /// Special registers.
    pub const SPECIAL_REGISTER: Class =
        class(Unit::Miscellaneous, Latency::SpecialRegister, Mix::Other);
    /// Votes.
    pub const VOTE: Class = class(Unit::Alu, Latency::Vote, Mix::Other);
    /// Shuffles.
    pub const SHUFFLE: Class = class(Unit::LoadStore, Latency::Shuffle, Mix::Other);
    /// Warp-wide reductions.
    pub const REDUCE: Class = class(Unit::Alu, Latency::WarpReduce, Mix::Integer);
    /// Matches.
    pub const MATCH: Class = class(Unit::Miscellaneous, Latency::Match, Mix::Other);
}

/// All rows, family by family.
pub const FAMILIES: &[(&str, &[Entry])] = &[
    ("integer", integer::ENTRIES),
    ("logic", logic::ENTRIES),
    ("compare", compare::ENTRIES),
    ("float", float::ENTRIES),
    ("half", half::ENTRIES),
    ("special function", special_function::ENTRIES),
    ("convert", convert::ENTRIES),
    ("warp", warp::ENTRIES),
];

/// What the rows are written with.
mod prelude {
    pub(super) use super::{
        Entry,
        Slot::{
            Byte, CarryIn, CarryOut, OptionalPredicate, Read, ReadPredicate, Write, WritePredicate,
            WriteWithPredicate,
        },
        Type::{B16, B32, B64, F16, F32, F64},
        class,
    };
    pub(super) use crate::{
        Instruction, Lanes, semantics,
        semantics::{Modifiers, lane_loops::*},
    };

    macro_rules! entries {
        ($($(#[$documentation:meta])* $spelling:literal $class:ident [$($slot:expr),*] $semantics:expr;)*) => {
            pub(super) const ENTRIES: &[Entry] = &[$(
                Entry {
                    spelling: $spelling,
                    operands: &[$($slot),*],
                    semantics: $semantics,
                    class: class::$class,
                },
            )*];
        };
    }
    pub(super) use entries;
}
