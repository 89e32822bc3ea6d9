//! Conversions that pack several narrow values into a register: `F2FP`, `I2IP`, `F2IP`, `I2I`.
//!
//! Forms of `F2FP`, with what they leave in the register (upper bits first):
//!
//! | words | result |
//! |---|---|
//! | `F16.F32.PACK_AB` | A, B as 16-bit floats |
//! | `F16.F32.MERGE_C` | lower half of C, B as a 16-bit float |
//! | `E4M3.F32.PACK_AB_MERGE_C` | lower half of C, A, B as 8-bit floats |
//! | `E4M3.F16.UNPACK_B_MERGE_C` | lower half of C, the two halves of B as 8-bit floats |
//! | `F16.E4M3.UNPACK_B` | the two lower bytes of B as 16-bit floats, the upper two of `B.H1` |
//! | `TF32.F32.PACK_B` | B rounded to ten fraction bits |
//!
//! Start reading at [`pack`].

use super::bind::Spelling;
use crate::{
    instruction::Instruction,
    lanes::Lanes,
    operand::Source,
    operands,
    semantics::{
        Modifiers,
        convert::{self, Integer},
        float16::{self, Kind},
        lane_loops::map_lanes,
        small_float::Small,
        soft::{self, F16, F32, Number, Rounding},
    },
};

/// Format of the narrow values: [`Narrow`] in four bits.
const NARROW: u32 = Modifiers::FREE;
/// What is packed, in four bits.
const FORM: u32 = Modifiers::FREE + 4;
/// `I2IP`, `F2IP`: the upper half of the third source is kept; `F2FP`: it is unpacked.
const UPPER: u64 = 1 << (Modifiers::FREE + 8);
/// `F2IP`: not a number becomes the byte with its highest bit alone.
const NAN_TO_HIGHEST: u64 = 1 << (Modifiers::FREE + 9);

/// Narrow formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Narrow {
    Sixteen(Kind),
    Eight(Small),
    Tf32,
}

const NARROWS: [(&str, Narrow); 5] = [
    ("F16", Narrow::Sixteen(Kind::Half)),
    ("BF16", Narrow::Sixteen(Kind::Brain)),
    ("E5M2", Narrow::Eight(Small::E5m2)),
    ("E4M3", Narrow::Eight(Small::E4m3)),
    ("TF32", Narrow::Tf32),
];

/// Forms that can be executed, by the word that names them.
const FORMS: [&str; 6] = [
    "PACK_AB",
    "MERGE_C",
    "PACK_AB_MERGE_C",
    "UNPACK_B_MERGE_C",
    "UNPACK_B",
    "PACK_B",
];

/// Format and form of `F2FP`, by position; none if this cannot be executed.
fn kind(spelling: &Spelling<'_>) -> Option<(usize, usize)> {
    let named = |word: &&str| NARROWS.iter().position(|(name, _)| name == word);
    let mut formats = spelling.words.iter().filter_map(named);
    // Before sm_89 FP16 is not named, and FP32 never.
    let (to, from) = (formats.next().unwrap_or(0), formats.next());
    let form = FORMS.iter().position(|word| spelling.has(word))?;
    let known = match (NARROWS[to].1, FORMS[form]) {
        (Narrow::Sixteen(_), "PACK_AB" | "MERGE_C") => from.is_none(),
        (Narrow::Eight(_), "PACK_AB_MERGE_C") => from.is_none(),
        (Narrow::Eight(_), "UNPACK_B_MERGE_C") => from == Some(0),
        (Narrow::Sixteen(Kind::Half), "UNPACK_B") => {
            from.is_some_and(|from| matches!(NARROWS[from].1, Narrow::Eight(_)))
        }
        (Narrow::Tf32, "PACK_B") => from.is_none(),
        _ => false,
    };
    // The format that is not FP32 or FP16 says which function it is.
    let narrow = if FORMS[form] == "UNPACK_B" { from? } else { to };
    known.then_some((narrow, form))
}

/// Why `F2FP` with these words cannot be executed.
pub(super) fn refused(spelling: &Spelling<'_>) -> Option<&'static str> {
    let random = spelling.words.contains(&"RS");
    (random || kind(spelling).is_none()).then_some("packs in a way that cannot be executed yet")
}

/// Modifier bits of `F2FP`.
pub(super) fn bits(spelling: &Spelling<'_>) -> u64 {
    let (narrow, form) = kind(spelling).unwrap_or_default();
    let rounding = if spelling.has("RZ") {
        Rounding::Zero
    } else {
        Rounding::Nearest
    };
    (narrow as u64) << NARROW
        | (form as u64) << FORM
        | Modifiers::rounding_bits(rounding)
        | spelling.bits("RELU", Modifiers::RELU)
        | spelling.bits("SATFINITE", Modifiers::SATURATE)
        | if takes_upper_half(spelling) { UPPER } else { 0 }
}

/// Whether an operand is written with `.H1`.
fn takes_upper_half(spelling: &Spelling<'_>) -> bool {
    let mut words = spelling
        .operands()
        .iter()
        .flat_map(|operand| &operand.modifiers);
    words.any(|word| word.name() == "H1")
}

/// `F2FP`.
#[inline(always)]
pub fn pack(lanes: &mut Lanes<'_>, i: &Instruction) {
    let plain = Modifiers::RELU | Modifiers::SATURATE | 7;
    let rounding = Modifiers::rounding_bits(Rounding::Nearest);
    let (narrow, form) = (i.modifiers >> NARROW & 15, i.modifiers >> FORM & 15);
    // What programs are full of.
    if form == 0 && narrow < 2 && i.modifiers & plain == rounding {
        operands!(lanes, i; high = float_at 0, low = float_at 1);
        let pair =
            |n: usize, kind: Kind| float16::pack([kind.narrow(low.0[n]), kind.narrow(high.0[n])]);
        let row = if narrow == 1 {
            map_lanes(|n| pair(n, Kind::Brain))
        } else {
            map_lanes(|n| pair(n, Kind::Half))
        };
        return lanes.write(i.destination, 0, &row);
    }
    any(lanes, i);
}

#[inline(never)]
fn any(lanes: &mut Lanes<'_>, i: &Instruction) {
    let modifiers = Modifiers(i.modifiers);
    let narrow = NARROWS[(i.modifiers >> NARROW & 15) as usize % NARROWS.len()].1;
    let form = FORMS[(i.modifiers >> FORM & 15) as usize % FORMS.len()];
    let [a, b, c] = [0, 1, 2].map(|n| match form {
        // The only source, or the first of two, is B.
        "MERGE_C" | "UNPACK_B_MERGE_C" if n == 2 => lanes.float(i.sources[1]),
        "MERGE_C" | "UNPACK_B_MERGE_C" | "UNPACK_B" | "PACK_B" => lanes.float(i.sources[0]),
        _ => lanes.float(i.sources[n]),
    });
    let row = map_lanes(|n| {
        let (a, b, c) = (a.0[n], b.0[n], c.0[n]);
        let one = |word: u32| narrowed(narrow, word, modifiers);
        match (form, narrow) {
            ("PACK_AB", _) => one(a) << 16 | one(b),
            ("MERGE_C", _) => c << 16 | one(b),
            ("PACK_AB_MERGE_C", _) => c << 16 | one(a) << 8 | one(b),
            ("UNPACK_B_MERGE_C", Narrow::Eight(small)) => {
                let [low, high] = float16::unpack(b).map(|half| {
                    let number = soft::unpack(F16, u64::from(half));
                    u32::from(eight(small, number, modifiers))
                });
                c << 16 | high << 8 | low
            }
            ("UNPACK_B", Narrow::Eight(small)) => {
                let half = |byte: u32| {
                    let half = small.to_half(byte as u8);
                    if modifiers.has(Modifiers::RELU) {
                        Kind::Half.relu(half)
                    } else {
                        half
                    }
                };
                let b = if i.modifiers & UPPER == 0 { b } else { b >> 16 };
                float16::pack([half(b), half(b >> 8)])
            }
            _ => one(b),
        }
    });
    lanes.write(i.destination, 0, &row);
}

/// One FP32 value in a narrow format.
fn narrowed(narrow: Narrow, word: u32, modifiers: Modifiers) -> u32 {
    let rounding = modifiers.rounding();
    let (relu, finite) = (modifiers.has(Modifiers::RELU), modifiers.saturate());
    match narrow {
        Narrow::Sixteen(kind) => {
            let mut value = kind.narrow_rounded(word, rounding);
            let infinity = match kind {
                Kind::Half => 0x7c00,
                Kind::Brain => 0x7f80,
            };
            if finite && value & 0x7fff == infinity {
                value -= 1;
            }
            u32::from(if relu { kind.relu(value) } else { value })
        }
        Narrow::Eight(small) => {
            let number = soft::unpack(F32, u64::from(word));
            u32::from(eight(small, number, modifiers))
        }
        Narrow::Tf32 => {
            let mut value = convert::float32_to_tf32(word, rounding);
            if finite && value & 0x7fff_ffff == 0x7f80_0000 {
                value -= 1 << 13;
            }
            let negative = value >> 31 == 1 && value & 0x7fff_ffff <= 0x7f80_0000;
            if relu && negative { 0 } else { value }
        }
    }
}

fn eight(small: Small, number: Number, modifiers: Modifiers) -> u8 {
    small.from_number(number, modifiers.has(Modifiers::RELU))
}

/// Modifier bits of `I2IP` and `I2I`: the integer type, and what becomes of values that do not fit.
pub(super) fn integer_bits(spelling: &Spelling<'_>) -> u64 {
    let position = INTEGERS.iter().position(|(name, _)| spelling.has(name));
    (position.unwrap_or(0) as u64) << NARROW
        | spelling.bits("SAT", Modifiers::SATURATE)
        | spelling.bits("SATRELU", Modifiers::SATURATE | Modifiers::RELU)
        | if takes_upper_half(spelling) { UPPER } else { 0 }
}

const fn integer(bits: u32, signed: bool) -> Integer {
    Integer { bits, signed }
}

const INTEGERS: [(&str, Integer); 8] = [
    ("U8", integer(8, false)),
    ("S8", integer(8, true)),
    ("U16", integer(16, false)),
    ("S16", integer(16, true)),
    ("U2", integer(2, false)),
    ("S2", integer(2, true)),
    ("U4", integer(4, false)),
    ("S4", integer(4, true)),
];

/// A signed word as a narrow integer, its bits alone.
fn narrow_integer(word: u32, modifiers: Modifiers) -> u32 {
    let to = INTEGERS[(modifiers.0 >> NARROW & 7) as usize].1;
    let value = i128::from(word as i32);
    let value = if modifiers.has(Modifiers::RELU) {
        value.max(0)
    } else {
        value
    };
    let bits = to.convert(value, modifiers.saturate()) as u32;
    bits & (u32::MAX >> (32 - to.bits))
}

/// `I2IP`: A and B as narrow integers, below the lower bits of C.
pub fn pack_integers(lanes: &mut Lanes<'_>, i: &Instruction) {
    let modifiers = Modifiers(i.modifiers);
    let width = INTEGERS[(i.modifiers >> NARROW & 7) as usize].1.bits;
    let source = |n: usize, lanes: &Lanes<'_>| lanes.integer(Source { ..i.sources[n] });
    let [a, b, c] = [0, 1, 2].map(|n| source(n, lanes));
    let row = map_lanes(|n| {
        let [a, b] = [a.0[n], b.0[n]].map(|word| narrow_integer(word, modifiers));
        let kept = if i.modifiers & UPPER != 0 {
            c.0[n] >> 16
        } else {
            c.0[n]
        };
        kept.checked_shl(2 * width).unwrap_or(0) | a << width | b
    });
    lanes.write(i.destination, 0, &row);
}

/// Modifier bits of `F2IP`.
pub(super) fn float_bits(spelling: &Spelling<'_>) -> u64 {
    let rounding = if spelling.has("TRUNC") {
        Rounding::Zero
    } else {
        Rounding::Nearest
    };
    integer_bits(spelling)
        | Modifiers::rounding_bits(rounding)
        | spelling.bits("RELU", Modifiers::RELU)
        | if spelling.has("NTZ") {
            0
        } else {
            NAN_TO_HIGHEST
        }
}

/// `F2IP`: A and B rounded to bytes, below half of C.
pub fn pack_rounded(lanes: &mut Lanes<'_>, i: &Instruction) {
    let modifiers = Modifiers(i.modifiers);
    let to = INTEGERS[(i.modifiers >> NARROW & 7) as usize].1;
    let [a, b] = [0, 1].map(|n| lanes.float(i.sources[n]));
    let c = lanes.integer(i.sources[2]);
    let row = map_lanes(|n| {
        let byte = |word: u32| {
            let value = if f32::from_bits(word).is_nan() && modifiers.has(NAN_TO_HIGHEST) {
                0x80
            } else {
                convert::float32_to_integer(word, to, modifiers.rounding()) as u32
            };
            let negative = to.signed && value & 0x80 != 0;
            if negative && modifiers.has(Modifiers::RELU) {
                0
            } else {
                value & 0xff
            }
        };
        let kept = if i.modifiers & UPPER != 0 {
            c.0[n] & 0xffff_0000
        } else {
            c.0[n] << 16
        };
        kept | byte(a.0[n]) << 8 | byte(b.0[n])
    });
    lanes.write(i.destination, 0, &row);
}

/// `I2I`: a signed word clamped to a narrow type, extended.
pub fn clamp_integer(lanes: &mut Lanes<'_>, i: &Instruction) {
    operands!(lanes, i; a = integer_at 0);
    let to = INTEGERS[(i.modifiers >> NARROW & 7) as usize].1;
    let row = map_lanes(|n| to.convert(i128::from(a.0[n] as i32), true) as u32);
    lanes.write(i.destination, 0, &row);
}
