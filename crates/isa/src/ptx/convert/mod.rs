//! Conversions. PTX ISA, `cvt`.
//!
//! Rows are made from lists of types: every integer to every integer, and between integers and
//! floats. An 8-bit type lives in a 16-bit register or wider, extended by its sign.

mod lanes;

use super::{Type, prelude::*};
use crate::semantics::{
    convert::{self as op, Integer},
    float16::Kind,
    small_float::Small,
};
use lanes::*;

macro_rules! row {
    ($spelling:expr, $class:ident, $to:expr, $from:expr, $semantics:expr) => {
        Entry {
            spelling: $spelling,
            operands: &[Write($to), Read($from)],
            semantics: $semantics,
            class: class::$class,
        }
    };
}

const fn integer(bits: u32, signed: bool) -> Integer {
    Integer { bits, signed }
}

const U8: Integer = integer(8, false);
const S8: Integer = integer(8, true);
const U2: Integer = integer(2, false);
const S2: Integer = integer(2, true);
const U4: Integer = integer(4, false);
const S4: Integer = integer(4, true);
const U16: Integer = integer(16, false);
const S16: Integer = integer(16, true);
const U32: Integer = integer(32, false);
const S32: Integer = integer(32, true);
const U64: Integer = integer(64, false);
const S64: Integer = integer(64, true);
const I8: Type = Type::B8;
const HALF: Kind = Kind::Half;
const BRAIN: Kind = Kind::Brain;

/// All conversions of one integer type: from every integer, to and from every float.
macro_rules! integers {
    ($($name:literal $number:ident $register:ident;)*) => {
        &[$(
            // Integer to integer, whatever the source.
            row!(concat!("cvt[.sat].", $name, ".u8"), INTEGER, $register, I8, semantics!(whole; (U8, $number))),
            row!(concat!("cvt[.sat].", $name, ".s8"), INTEGER, $register, I8, semantics!(whole; (S8, $number))),
            row!(concat!("cvt[.sat].", $name, ".u16"), INTEGER, $register, B16, semantics!(whole; (U16, $number))),
            row!(concat!("cvt[.sat].", $name, ".s16"), INTEGER, $register, B16, semantics!(whole; (S16, $number))),
            row!(concat!("cvt[.sat].", $name, ".u32"), INTEGER, $register, B32, semantics!(whole; (U32, $number))),
            row!(concat!("cvt[.sat].", $name, ".s32"), INTEGER, $register, B32, semantics!(whole; (S32, $number))),
            row!(concat!("cvt[.sat].", $name, ".u64"), INTEGER, $register, B64, semantics!(whole; (U64, $number))),
            row!(concat!("cvt[.sat].", $name, ".s64"), INTEGER, $register, B64, semantics!(whole; (S64, $number))),
            // Integer to float.
            row!(concat!("cvt(@rnd)[.ftz][.sat].f32.", $name), CONVERT, F32, $register, semantics!(to_single; $number)),
            row!(concat!("cvt(@rnd)[.sat].f64.", $name), CONVERT, F64, $register, semantics!(to_double; $number)),
            row!(concat!("cvt(@rnd)[.sat].f16.", $name), CONVERT, F16, $register, semantics!(to_half; ($number, HALF))),
            row!(concat!("cvt(@rnd).bf16.", $name), CONVERT, F16, $register, semantics!(to_half; ($number, BRAIN))),
            // Float to integer.
            row!(concat!("cvt(@whole)[.ftz][.sat].", $name, ".f32"), CONVERT, $register, F32, semantics!(from_single; $number)),
            row!(concat!("cvt(@whole)[.sat].", $name, ".f64"), CONVERT, $register, F64, semantics!(from_double; $number)),
            row!(concat!("cvt(@whole)[.ftz][.sat].", $name, ".f16"), CONVERT, $register, F16, semantics!(from_half; ($number, HALF))),
            row!(concat!("cvt(@whole)[.sat].", $name, ".bf16"), CONVERT, $register, F16, semantics!(from_half; ($number, BRAIN))),
        )*]
    };
}

const INTEGERS: &[Entry] = integers! {
    "u8" U8 I8;
    "s8" S8 I8;
    "u16" U16 B16;
    "s16" S16 B16;
    "u32" U32 B32;
    "s32" S32 B32;
    "u64" U64 B64;
    "s64" S64 B64;
};

const FLOATS: &[Entry] = &[
    row!("cvt.f32.f32", MOVE, F32, F32, semantics!(unary; |a| a)),
    row!(
        "cvt[.ftz][.sat].f32.f32",
        CONVERT,
        F32,
        F32,
        semantics!(float_unary; canonical)
    ),
    row!(
        "cvt(@whole)[.ftz][.sat].f32.f32",
        CONVERT,
        F32,
        F32,
        semantics!(whole_single)
    ),
    row!(
        "cvt[.sat].f64.f64",
        CONVERT,
        F64,
        F64,
        semantics!(double; |a, _| a)
    ),
    row!(
        "cvt(@whole)[.sat].f64.f64",
        CONVERT,
        F64,
        F64,
        semantics!(double; op::float64_to_whole)
    ),
    row!(
        "cvt[.ftz][.sat].f64.f32",
        CONVERT,
        F64,
        F32,
        semantics!(single_to_double)
    ),
    row!(
        "cvt(@rnd)[.ftz][.sat].f32.f64",
        CONVERT,
        F32,
        F64,
        semantics!(double_to_single)
    ),
    row!(
        "cvt[.ftz][.sat].f32.f16",
        CONVERT,
        F32,
        F16,
        semantics!(half_to_single; HALF)
    ),
    row!(
        "cvt[@rnd].f32.bf16",
        MOVE,
        F32,
        F16,
        semantics!(unary; |a| a << 16)
    ),
    row!(
        "cvt[@rnd][.ftz].f32.bf16",
        CONVERT,
        F32,
        F16,
        semantics!(half_to_single; BRAIN)
    ),
    row!(
        "cvt[.sat].f64.f16",
        CONVERT,
        F64,
        F16,
        semantics!(half_to_double; HALF)
    ),
    row!(
        "cvt[@rnd].f64.bf16",
        CONVERT,
        F64,
        F16,
        semantics!(half_to_double; BRAIN)
    ),
    row!(
        "cvt(@rnd)[.ftz][.sat.relu].f16.f32",
        CONVERT,
        F16,
        F32,
        semantics!(single_to_half; (HALF, false))
    ),
    row!(
        "cvt(@rnd)[.ftz][.relu][.satfinite].bf16.f32",
        CONVERT,
        F16,
        F32,
        semantics!(single_to_half; (BRAIN, true))
    ),
    row!(
        "cvt(@rnd)[.relu][.satfinite].f16.f32",
        CONVERT,
        F16,
        F32,
        semantics!(single_to_half; (HALF, true))
    ),
    row!(
        "cvt(@rnd)[.sat].f16.f64",
        CONVERT,
        F16,
        F64,
        semantics!(double_to_half; HALF)
    ),
    row!(
        "cvt(@rnd).bf16.f64",
        CONVERT,
        F16,
        F64,
        semantics!(double_to_half; BRAIN)
    ),
    row!(
        "cvt[.ftz][.sat].f16.f16",
        CONVERT,
        F16,
        F16,
        semantics!(whole_half; HALF)
    ),
    row!(
        "cvt(@whole)[.ftz][.sat].f16.f16",
        CONVERT,
        F16,
        F16,
        semantics!(whole_half; HALF)
    ),
    row!(
        "cvt[@whole].bf16.bf16",
        CONVERT,
        F16,
        F16,
        semantics!(whole_half; BRAIN)
    ),
    row!(
        "cvt[@rnd].bf16.f16",
        CONVERT,
        F16,
        F16,
        semantics!(cross; (HALF, BRAIN))
    ),
    row!(
        "cvt[@rnd].f16.bf16",
        CONVERT,
        F16,
        F16,
        semantics!(cross; (BRAIN, HALF))
    ),
    row!(
        "cvt(.rna.rn.rz)[.relu][.satfinite].tf32.f32",
        CONVERT,
        B32,
        F32,
        semantics!(tf32)
    ),
];

/// Two single precision numbers into one packed register: the first is the upper half.
const PACKS: &[Entry] = &[
    pack_row(
        "cvt(@rnd)[.relu][.satfinite].f16x2.f32",
        &[Write(B32), Read(F32), Read(F32)],
        semantics!(pack_halves; HALF),
    ),
    pack_row(
        "cvt(@rnd)[.relu][.satfinite].bf16x2.f32",
        &[Write(B32), Read(F32), Read(F32)],
        semantics!(pack_halves; BRAIN),
    ),
    pack_row(
        "cvt.rn.satfinite[.relu].e4m3x2.f32",
        &[Write(B16), Read(F32), Read(F32)],
        semantics!(pack_small; Small::E4m3),
    ),
    pack_row(
        "cvt.rn.satfinite[.relu].e5m2x2.f32",
        &[Write(B16), Read(F32), Read(F32)],
        semantics!(pack_small; Small::E5m2),
    ),
    pack_row(
        "cvt.rn.satfinite[.relu].e4m3x2.f16x2",
        &[Write(B16), Read(B32)],
        semantics!(shrink; Small::E4m3),
    ),
    pack_row(
        "cvt.rn.satfinite[.relu].e5m2x2.f16x2",
        &[Write(B16), Read(B32)],
        semantics!(shrink; Small::E5m2),
    ),
    pack_row(
        "cvt.rn[.relu].f16x2.e4m3x2",
        &[Write(B32), Read(B16)],
        semantics!(grow; Small::E4m3),
    ),
    pack_row(
        "cvt.rn[.relu].f16x2.e5m2x2",
        &[Write(B32), Read(B16)],
        semantics!(grow; Small::E5m2),
    ),
    // `cvt.pack` joins two integers, clamped to 16 bits, and shifts `c` up where there is one.
    pack_row(
        "cvt.pack.sat.u16.s32",
        &[Write(B32), Read(B32), Read(B32)],
        semantics!(pack_integers; U16),
    ),
    pack_row(
        "cvt.pack.sat.s16.s32",
        &[Write(B32), Read(B32), Read(B32)],
        semantics!(pack_integers; S16),
    ),
    pack_row(
        "cvt.pack.sat.u8.s32.b32",
        &[Write(B32), Read(B32), Read(B32), Read(B32)],
        semantics!(pack_integers; U8),
    ),
    pack_row(
        "cvt.pack.sat.s8.s32.b32",
        &[Write(B32), Read(B32), Read(B32), Read(B32)],
        semantics!(pack_integers; S8),
    ),
    pack_row(
        "cvt.pack.sat.u4.s32.b32",
        &[Write(B32), Read(B32), Read(B32), Read(B32)],
        semantics!(pack_integers; U4),
    ),
    pack_row(
        "cvt.pack.sat.s4.s32.b32",
        &[Write(B32), Read(B32), Read(B32), Read(B32)],
        semantics!(pack_integers; S4),
    ),
    pack_row(
        "cvt.pack.sat.u2.s32.b32",
        &[Write(B32), Read(B32), Read(B32), Read(B32)],
        semantics!(pack_integers; U2),
    ),
    pack_row(
        "cvt.pack.sat.s2.s32.b32",
        &[Write(B32), Read(B32), Read(B32), Read(B32)],
        semantics!(pack_integers; S2),
    ),
];

const fn pack_row(
    spelling: &'static str,
    operands: &'static [super::Slot],
    semantics: Semantics,
) -> Entry {
    Entry {
        spelling,
        operands,
        semantics,
        class: class::CONVERT,
    }
}

/// The three lists as one.
pub(super) const ENTRIES: &[Entry] = &concat_entries();

const COUNT: usize = INTEGERS.len() + FLOATS.len() + PACKS.len();

const fn concat_entries() -> [Entry; COUNT] {
    let mut all = [FLOATS[0]; COUNT];
    let mut next = 0;
    let lists = [INTEGERS, FLOATS, PACKS];
    let mut list = 0;
    while list < lists.len() {
        let mut index = 0;
        while index < lists[list].len() {
            all[next] = lists[list][index];
            next += 1;
            index += 1;
        }
        list += 1;
    }
    all
}
