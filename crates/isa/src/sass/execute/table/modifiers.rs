//! Modifier bits and operand widths of an arithmetic instruction, from the words of its text.

use super::super::{
    bind::Spelling,
    convert::{self, Format},
    float, integer, logic, warp,
};
use crate::{
    instruction::Instruction,
    lanes::Lanes,
    sass::decoded::Value,
    semantics::{
        Modifiers,
        compare::{Boolean, Comparison},
        soft::Rounding,
    },
};

pub(super) fn none(_: &Spelling<'_>) -> u64 {
    0
}

pub(super) fn carry(spelling: &Spelling<'_>) -> u64 {
    spelling.bits("X", Modifiers::CARRY_IN)
}

pub(super) fn add_uniform(spelling: &Spelling<'_>) -> u64 {
    carry(spelling) | spelling.bits("64", integer::WIDE)
}

pub(super) fn add_uniform_widths(spelling: &Spelling<'_>) -> (u8, [u8; 4]) {
    if spelling.has("64") {
        (2, [2, 2, 2, 0])
    } else {
        (1, [1, 1, 1, 0])
    }
}

pub(super) fn to_uniform_bits(spelling: &Spelling<'_>) -> u64 {
    spelling.bits("OR", logic::DIFFERS_TOO)
}

pub(super) fn lea(spelling: &Spelling<'_>) -> u64 {
    carry(spelling)
        | spelling.bits("HI", integer::HIGH)
        | spelling.bits("SX32", integer::SIGN_EXTENDED)
}

/// `IMAD` in its three widths; the words choose.
#[inline(always)]
pub(super) fn multiply_add(lanes: &mut Lanes<'_>, i: &Instruction) {
    if i.modifiers & integer::WIDE != 0 {
        integer::multiply_add_wide(lanes, i);
    } else if i.modifiers & integer::HIGH != 0 {
        integer::multiply_add_high(lanes, i);
    } else {
        integer::multiply_add(lanes, i);
    }
}

pub(super) fn multiply(spelling: &Spelling<'_>) -> u64 {
    carry(spelling)
        | spelling.bits("WIDE", integer::WIDE)
        | spelling.bits("HI", integer::HIGH)
        | if spelling.has("U32") {
            0
        } else {
            Modifiers::SIGNED
        }
}

pub(super) fn multiply_widths(spelling: &Spelling<'_>) -> (u8, [u8; 4]) {
    if spelling.has("WIDE") {
        (2, [1, 1, 2, 0])
    } else if spelling.has("HI") {
        (1, [1, 1, 2, 0])
    } else {
        (1, [1, 1, 1, 0])
    }
}

pub(super) fn signed(spelling: &Spelling<'_>) -> u64 {
    (if spelling.has("U32") {
        0
    } else {
        Modifiers::SIGNED
    }) | spelling.bits("RELU", Modifiers::RELU)
}

pub(super) fn signed_bytes(spelling: &Spelling<'_>) -> u64 {
    let signed = if spelling.has("U8") {
        0
    } else {
        Modifiers::SIGNED
    };
    signed | spelling.bits("ACC", integer::ACCUMULATE)
}

#[inline(always)]
pub(super) fn dot_product(lanes: &mut Lanes<'_>, i: &Instruction) {
    if i.modifiers & integer::WIDE != 0 {
        integer::dot_product2(lanes, i);
    } else {
        integer::dot_product4(lanes, i);
    }
}

pub(super) fn dot_product_bits(spelling: &Spelling<'_>) -> u64 {
    let mut types = spelling
        .words
        .iter()
        .filter(|word| matches!(**word, "U8" | "S8" | "U16" | "S16"));
    let signed = |word: Option<&&str>| word.is_some_and(|word| word.starts_with('S'));
    let first = if signed(types.next()) {
        Modifiers::SIGNED
    } else {
        0
    };
    let second = if signed(types.next()) {
        integer::SECOND_SIGNED
    } else {
        0
    };
    first | second | spelling.bits("2A", integer::WIDE) | spelling.bits("HI", integer::HIGH)
}

pub(super) fn comparison(spelling: &Spelling<'_>) -> u64 {
    let comparison = spelling.words.iter().find_map(|word| {
        Some(match *word {
            "F" => Comparison::False,
            "LT" => Comparison::Less,
            "EQ" => Comparison::Equal,
            "LE" => Comparison::LessEqual,
            "GT" => Comparison::Greater,
            "NE" => Comparison::NotEqual,
            "GE" => Comparison::GreaterEqual,
            "NUM" => Comparison::Number,
            "NAN" => Comparison::NotANumber,
            "LTU" => Comparison::LessUnordered,
            "EQU" => Comparison::EqualUnordered,
            "LEU" => Comparison::LessEqualUnordered,
            "GTU" => Comparison::GreaterUnordered,
            "NEU" => Comparison::NotEqualUnordered,
            "GEU" => Comparison::GreaterEqualUnordered,
            "T" => Comparison::True,
            _ => return None,
        })
    });
    let boolean = if spelling.has("OR") {
        Boolean::Or
    } else if spelling.has("XOR") {
        Boolean::Xor
    } else {
        Boolean::And
    };
    Modifiers::comparison_bits(comparison.unwrap_or_default()) | Modifiers::boolean_bits(boolean)
}

pub(super) fn compare_integers(spelling: &Spelling<'_>) -> u64 {
    comparison(spelling)
        | (if spelling.has("U32") {
            0
        } else {
            Modifiers::SIGNED
        })
        | spelling.bits("EX", integer::EXTENDED)
}

pub(super) fn compare_floats(spelling: &Spelling<'_>) -> u64 {
    comparison(spelling)
        | spelling.bits("FTZ", Modifiers::FLUSH)
        | spelling.bits("BF", float::SINGLE_RESULT)
        | spelling.bits("MIN", float::SMALLER)
        | spelling.bits("MAX", float::LARGER)
}

pub(super) fn compare_halves(spelling: &Spelling<'_>) -> u64 {
    compare_floats(spelling)
        | spelling.bits("BF16_V2", float::BRAIN)
        | spelling.bits("H_AND", float::BOTH_HALVES)
}

pub(super) fn shift(spelling: &Spelling<'_>) -> u64 {
    let wide = spelling.has("U64") || spelling.has("S64");
    let signed = spelling.has("S32") || spelling.has("S64");
    spelling.bits("R", integer::RIGHT)
        | spelling.bits("W", Modifiers::WRAP)
        | spelling.bits("HI", integer::HIGH)
        | if wide { integer::WIDE } else { 0 }
        | if signed { Modifiers::SIGNED } else { 0 }
}

pub(super) fn find_leading(spelling: &Spelling<'_>) -> u64 {
    spelling.bits("SH", integer::SHIFT_AMOUNT)
        | if spelling.has("U32") {
            0
        } else {
            Modifiers::SIGNED
        }
}

pub(super) fn extend(spelling: &Spelling<'_>) -> u64 {
    spelling.bits("W", Modifiers::WRAP)
        | if spelling.has("U32") {
            0
        } else {
            Modifiers::SIGNED
        }
}

pub(super) fn rounding(spelling: &Spelling<'_>) -> u64 {
    let rounding = spelling.words.iter().find_map(|word| {
        Some(match *word {
            "RM" | "FLOOR" => Rounding::Down,
            "RP" | "CEIL" => Rounding::Up,
            "RZ" | "TRUNC" => Rounding::Zero,
            _ => return None,
        })
    });
    Modifiers::rounding_bits(rounding.unwrap_or(Rounding::Nearest))
}

pub(super) fn float_bits(spelling: &Spelling<'_>) -> u64 {
    rounding(spelling)
        | spelling.bits("FTZ", Modifiers::FLUSH)
        | spelling.bits("FMZ", Modifiers::FLUSH | float::ZERO_WINS)
        | spelling.bits("SAT", Modifiers::SATURATE)
        | spelling.bits("NAN", Modifiers::NAN)
        | spelling.bits("XORSIGN", Modifiers::XOR_SIGN)
        | spelling.bits("IS_A", float::IS_A)
}

/// `FMUL` also scales its product.
pub(super) fn multiply_bits(spelling: &Spelling<'_>) -> u64 {
    let scale = float::SCALES.iter().position(|word| spelling.has(word));
    float_bits(spelling) | (scale.unwrap_or(0) as u64) << float::SCALE
}

pub(super) fn half_bits(spelling: &Spelling<'_>) -> u64 {
    float_bits(spelling)
        | spelling.bits("RELU", Modifiers::RELU)
        | spelling.bits("BF16_V2", float::BRAIN)
        | spelling.bits("F32", float::SINGLE_RESULT)
        | spelling.bits("OOB", float::OUT_OF_BOUNDS)
}

pub(super) fn immediates(spelling: &Spelling<'_>) -> Vec<u64> {
    let number = |value: Value| match value {
        Value::Immediate(immediate) => Some(immediate.bits),
        _ => None,
    };
    spelling
        .operands()
        .iter()
        .filter_map(|operand| number(operand.value))
        .collect()
}

pub(super) fn table_bits(spelling: &Spelling<'_>) -> u64 {
    let table = immediates(spelling).last().copied().unwrap_or(0);
    (table & 0xff) << logic::TABLE | spelling.bits("PAND", logic::PREDICATE_AND)
}

pub(super) fn tables_bits(spelling: &Spelling<'_>) -> u64 {
    let tables = immediates(spelling);
    let table = |index: usize| tables.get(index).copied().unwrap_or(0) & 0xff;
    let mut behind = spelling.operands().iter().flat_map(|o| &o.modifiers);
    let signs = behind.any(|word| word.name() == "SIGN");
    table(0) << logic::TABLE
        | table(1) << logic::SECOND_TABLE
        | if signs { logic::SIGNS } else { 0 }
}

/// How `PRMT` makes its selector.
pub(super) fn permute_bits(spelling: &Spelling<'_>) -> u64 {
    let mode = logic::PERMUTE_MODES
        .iter()
        .position(|(word, _)| spelling.has(word));
    (mode.unwrap_or(0) as u64) << logic::PERMUTE
}

pub(super) fn byte(spelling: &Spelling<'_>) -> u64 {
    let words = spelling.words.iter().copied();
    let behind = spelling
        .operands()
        .iter()
        .flat_map(|operand| &operand.modifiers)
        .map(|word| word.name());
    let byte = words.chain(behind).find_map(|word| match word {
        "B1" => Some(1),
        "B2" => Some(2),
        "B3" => Some(3),
        _ => None,
    });
    byte.unwrap_or(0) << logic::BYTE
}

pub(super) fn function(spelling: &Spelling<'_>) -> u64 {
    const FUNCTIONS: [&str; 10] = [
        "COS", "SIN", "EX2", "LG2", "RCP", "RSQ", "RCP64H", "RSQ64H", "SQRT", "TANH",
    ];
    let index = FUNCTIONS
        .iter()
        .position(|word| spelling.has(word))
        .unwrap_or(0);
    let upper = spelling
        .operands()
        .iter()
        .flat_map(|operand| &operand.modifiers)
        .any(|word| word.name() == "H1");
    (index as u64) << convert::FUNCTION
        | spelling.bits("F16", convert::SMALL_HALF)
        | spelling.bits("BF16", convert::SMALL_BRAIN)
        | if upper { convert::UPPER_HALF } else { 0 }
}

/// Formats named in the text, in its order.
pub(super) fn formats(spelling: &Spelling<'_>) -> Vec<Format> {
    let format = |word: &&str| {
        Some(match *word {
            "U8" => Format::U8,
            "S8" => Format::S8,
            "U16" => Format::U16,
            "S16" => Format::S16,
            "U32" => Format::U32,
            "S32" => Format::S32,
            "U64" => Format::U64,
            "S64" => Format::S64,
            "F16" => Format::F16,
            "BF16" => Format::Bf16,
            "F32" => Format::F32,
            "F64" => Format::F64,
            "TF32" => Format::Tf32,
            _ => return None,
        })
    };
    spelling.words.iter().filter_map(format).collect()
}

/// How `F2I` and `F2IP` treat what is not a number: the highest bit alone, or zero (`.NTZ`).
pub(super) fn not_a_number(spelling: &Spelling<'_>) -> u64 {
    if spelling.has("NTZ") {
        0
    } else {
        convert::NAN_TO_HIGHEST
    }
}

pub(super) fn formats_bits(spelling: &Spelling<'_>, to: Format, from: Format) -> u64 {
    let behind = spelling
        .operands()
        .iter()
        .skip(1)
        .flat_map(|operand| &operand.modifiers);
    let shift = behind.map(|word| word.name()).find_map(|word| match word {
        "B1" => Some(8),
        "B2" | "H1" | "H1_H1" => Some(16),
        "B3" => Some(24),
        _ => None,
    });
    rounding(spelling)
        | spelling.bits("FTZ", Modifiers::FLUSH)
        | spelling.bits("SAT", Modifiers::SATURATE)
        | (to as u64) << convert::TO
        | (from as u64) << convert::FROM
        | shift.unwrap_or(0) << convert::SHIFT
}

/// Destination and source of a float conversion: unnamed ones are FP32.
pub(super) fn float_pair(spelling: &Spelling<'_>) -> (Format, Format) {
    match formats(spelling)[..] {
        [to, from, ..] => (to, from),
        [to] => (to, Format::F32),
        [] => (Format::F32, Format::F32),
    }
}

pub(super) fn float_to_float(spelling: &Spelling<'_>) -> u64 {
    let (to, from) = float_pair(spelling);
    formats_bits(spelling, to, from)
}

/// `F2I.U32.F64`: the integer first, S32 if it is not named; the float is FP32 if not named.
pub(super) fn integer_and_float(spelling: &Spelling<'_>) -> (Format, Format) {
    let formats = formats(spelling);
    let integer = formats
        .iter()
        .copied()
        .find(|format| format.integer().is_some());
    let float = formats
        .iter()
        .copied()
        .find(|format| format.integer().is_none());
    (integer.unwrap_or(Format::S32), float.unwrap_or(Format::F32))
}

pub(super) fn float_to_integer(spelling: &Spelling<'_>) -> u64 {
    let (integer, float) = integer_and_float(spelling);
    formats_bits(spelling, integer, float) | not_a_number(spelling)
}

pub(super) fn integer_to_float(spelling: &Spelling<'_>) -> u64 {
    let (integer, float) = integer_and_float(spelling);
    formats_bits(spelling, float, integer)
}

pub(super) fn round_float(spelling: &Spelling<'_>) -> u64 {
    let format = formats(spelling).first().copied().unwrap_or(Format::F32);
    formats_bits(spelling, format, format) | convert::WHOLE
}

pub(super) fn conversion_widths(spelling: &Spelling<'_>) -> (u8, [u8; 4]) {
    let (to, from) = match spelling.name {
        "F2I" => integer_and_float(spelling),
        "I2F" => {
            let (integer, float) = integer_and_float(spelling);
            (float, integer)
        }
        "FRND" => {
            let format = formats(spelling).first().copied().unwrap_or(Format::F32);
            (format, format)
        }
        _ => float_pair(spelling),
    };
    (
        1 + u8::from(to.is_wide()),
        [1 + u8::from(from.is_wide()), 0, 0, 0],
    )
}

pub(super) fn mode(spelling: &Spelling<'_>, modes: &[&str]) -> u64 {
    let mode = modes
        .iter()
        .position(|word| spelling.has(word))
        .unwrap_or(0);
    (mode as u64) << warp::MODE
}

pub(super) fn shuffle(spelling: &Spelling<'_>) -> u64 {
    mode(spelling, &["IDX", "UP", "DOWN", "BFLY"])
}

pub(super) fn vote(spelling: &Spelling<'_>) -> u64 {
    mode(spelling, &["ALL", "ANY", "EQ"])
}

pub(super) fn vote_uniform(spelling: &Spelling<'_>) -> u64 {
    vote(spelling) | warp::WIDE
}

pub(super) fn match_bits(spelling: &Spelling<'_>) -> u64 {
    mode(spelling, &["ANY", "ALL"]) | spelling.bits("U64", warp::WIDE)
}

pub(super) fn match_widths(spelling: &Spelling<'_>) -> (u8, [u8; 4]) {
    (1, [1 + u8::from(spelling.has("U64")), 0, 0, 0])
}

pub(super) fn reduce(spelling: &Spelling<'_>) -> u64 {
    let signed = spelling.has("S32");
    let mode = match spelling.words.iter().find(|word| !matches!(**word, "S32")) {
        Some(&"OR") => 1,
        Some(&"XOR") => 2,
        Some(&"SUM") => 3,
        Some(&"MIN") => 4 + 2 * u64::from(signed),
        Some(&"MAX") => 5 + 2 * u64::from(signed),
        _ => 0,
    };
    mode << warp::MODE
}

pub(super) fn special(spelling: &Spelling<'_>) -> u64 {
    let register = spelling
        .operands()
        .iter()
        .find_map(|operand| match operand.value {
            Value::SpecialRegister(index) => Some(index),
            _ => None,
        });
    u64::from(register.unwrap_or(0xff)) << warp::SPECIAL
}

pub(super) fn special_wide(spelling: &Spelling<'_>) -> u64 {
    special(spelling)
        | if spelling.has("32") {
            0
        } else {
            warp::WIDE_SPECIAL
        }
}

pub(super) fn special_widths(spelling: &Spelling<'_>) -> (u8, [u8; 4]) {
    (if spelling.has("32") { 1 } else { 2 }, [0; 4])
}
