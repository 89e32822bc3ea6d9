//! Arithmetic: which meaning an opcode has, on which unit, with which modifier bits.

use super::{
    bind::{BindError, Spelling, predicate_register},
    convert::{self, Format},
    float, integer, logic, matrix, warp,
};
use crate::{
    instruction::{Instruction, Latency, Mix, Operation, SchedulingInfo, Unit},
    lanes::Lanes,
    operand::{Operand, PredicateOperand, PredicateRegister, Source},
    sass::decoded::Value,
    semantics,
    semantics::{
        Modifiers,
        compare::{Boolean, Comparison},
        lane_loops::Semantics,
        soft::Rounding,
    },
    warp_register::FULL,
};

/// Modifier bits of an instruction, from its words.
type Bits = fn(&Spelling<'_>) -> u64;

/// One opcode.
pub struct WarpRegister {
    /// As the disassembler spells it.
    pub name: &'static str,
    semantics: Semantics,
    unit: Unit,
    latency: Latency,
    mix: Mix,
    bits: Bits,
    /// Rows written and rows that each source spans.
    widths: Widths,
}

/// How wide destination and sources are.
#[derive(Clone, Copy)]
enum Widths {
    /// One row each.
    Single,
    /// Two rows each.
    Double,
    /// Whatever this says.
    By(fn(&Spelling<'_>) -> (u8, [u8; 4])),
}

/// A meaning as the uniform datapath has it: for the whole warp, or not at all.
macro_rules! uniform {
    ($function:path) => {
        semantics!(
            (|lanes: &mut Lanes<'_>, instruction: &Instruction| {
                lanes.execute = if lanes.execute == 0 { 0 } else { FULL };
                $function(lanes, instruction);
            })
        )
    };
}

/// Rows of the table: `name: meaning, unit, latency, mix, bits, widths;`
macro_rules! rows {
    ($($name:literal: $semantics:expr, $unit:ident, $latency:ident, $mix:ident, $bits:expr, $widths:expr;)*) => {
        /// The row of an opcode that computes.
        #[must_use]
        pub fn find(name: &str) -> Option<WarpRegister> {
            Some(match name {
                $($name => WarpRegister {
                    name: $name,
                    semantics: $semantics,
                    unit: Unit::$unit,
                    latency: Latency::$latency,
                    mix: Mix::$mix,
                    bits: $bits,
                    widths: $widths,
                },)*
                _ => return None,
            })
        }

        /// Every opcode that computes.
        pub const NAMES: &[&str] = &[$($name),*];
    };
}

use Widths::{By, Double, Single};

rows! {
    // Integer arithmetic.
    "IADD3": semantics!(integer::add3), Alu, Integer, Integer, carry, Single;
    "UIADD3": uniform!(integer::add3), Uniform, Uniform, Integer, carry, Single;
    "LEA": semantics!(integer::lea), Alu, Integer, Integer, lea, Single;
    "ULEA": uniform!(integer::lea), Uniform, Uniform, Integer, lea, Single;
    "IMAD": semantics!(multiply_add), Fma, Float, Integer, multiply, By(multiply_widths);
    "UIMAD": uniform!(multiply_add), Uniform, Uniform, Integer, multiply, By(multiply_widths);
    "IABS": semantics!(integer::absolute), Alu, Integer, Integer, none, Single;
    "IMNMX": semantics!(integer::minimum_maximum), Alu, Integer, Integer, signed, Single;
    "VIMNMX": semantics!(integer::minimum_maximum), Alu, Integer, Integer, signed, Single;
    "VIMNMX3": semantics!(integer::minimum_maximum3), Alu, Integer, Integer, signed, Single;
    "VIADD": semantics!(integer::add2), Alu, Integer, Integer, none, Single;
    "VIADDMNMX": semantics!(integer::add_minimum_maximum), Alu, Integer, Integer, signed, Single;
    "VABSDIFF": semantics!(integer::absolute_difference), Alu, Integer, Integer, signed, Single;
    "VABSDIFF4": semantics!(integer::absolute_difference_bytes), Alu, Integer, Integer, signed_bytes, Single;
    "IDP": semantics!(dot_product), Fma, Float, Integer, dot_product_bits, Single;
    "ISETP": semantics!(integer::compare), Alu, Compare, Integer, compare_integers, Single;
    "UISETP": uniform!(integer::compare), Uniform, Uniform, Integer, compare_integers, Single;
    "SHF": semantics!(integer::shift), Alu, Integer, Integer, shift, Single;
    "USHF": uniform!(integer::shift), Uniform, Uniform, Integer, shift, Single;
    "FLO": semantics!(integer::find_leading), Transcendental, Conversion, Integer, find_leading, Single;
    "UFLO": uniform!(integer::find_leading), Uniform, Uniform, Integer, find_leading, Single;
    "POPC": semantics!(integer::population), Transcendental, Conversion, Integer, none, Single;
    "UPOPC": uniform!(integer::population), Uniform, Uniform, Integer, none, Single;
    "BREV": semantics!(integer::reverse_bits), Transcendental, Conversion, Integer, none, Single;
    "UBREV": uniform!(integer::reverse_bits), Uniform, Uniform, Integer, none, Single;
    "SGXT": semantics!(integer::extend), Alu, Integer, Integer, extend, Single;
    "USGXT": uniform!(integer::extend), Uniform, Uniform, Integer, extend, Single;
    "BMSK": semantics!(integer::bit_mask), Alu, Integer, Integer, extend, Single;
    "UBMSK": uniform!(integer::bit_mask), Uniform, Uniform, Integer, extend, Single;
    // Logic, moves, predicates.
    "MOV": semantics!(logic::copy), Alu, Integer, Other, none, Single;
    "UMOV": uniform!(logic::copy), Uniform, Uniform, Other, none, Single;
    "SEL": semantics!(logic::select), Alu, Integer, Integer, none, Single;
    "USEL": uniform!(logic::select), Uniform, Uniform, Integer, none, Single;
    "FSEL": semantics!(logic::select_float), Alu, Integer, Fp32, float_bits, Single;
    "LOP3": semantics!(logic::lop3), Alu, Integer, Integer, table_bits, Single;
    "ULOP3": uniform!(logic::lop3), Uniform, Uniform, Integer, table_bits, Single;
    "PLOP3": semantics!(logic::plop3), Alu, Compare, Integer, tables_bits, Single;
    "UPLOP3": uniform!(logic::plop3), Uniform, Uniform, Integer, tables_bits, Single;
    "PRMT": semantics!(logic::permute), Alu, Integer, Integer, none, Single;
    "UPRMT": uniform!(logic::permute), Uniform, Uniform, Integer, none, Single;
    "P2R": semantics!(logic::predicates_to_register), Alu, Integer, Integer, byte, Single;
    "R2P": semantics!(logic::register_to_predicates), Alu, Compare, Integer, byte, Single;
    "R2UR": semantics!(logic::to_uniform), Uniform, Uniform, Other, none, Single;
    // Single precision.
    "FADD": semantics!(float::add), Fma, Float, Fp32, float_bits, Single;
    "FMUL": semantics!(float::multiply), Fma, Float, Fp32, float_bits, Single;
    "FFMA": fused(), Fma, Float, Fp32, float_bits, Single;
    "FMNMX": semantics!(float::minimum_maximum), Alu, Integer, Fp32, float_bits, Single;
    "FSETP": semantics!(float::compare), Alu, Compare, Fp32, compare_floats, Single;
    "FSET": semantics!(float::set), Alu, Integer, Fp32, compare_floats, Single;
    "FCHK": semantics!(float::check_divide), Transcendental, Transcendental, Fp32, none, Single;
    "MUFU": semantics!(convert::transcendental), Transcendental, Transcendental, Fp32, function, Single;
    // Double precision.
    "DADD": semantics!(float::double_add), Double, Double, Fp64, float_bits, Double;
    "DMUL": semantics!(float::double_multiply), Double, Double, Fp64, float_bits, Double;
    "DFMA": double_fused(), Double, Double, Fp64, float_bits, Double;
    "DSETP": semantics!(float::double_compare), Double, Double, Fp64, compare_floats, Double;
    "DMNMX": semantics!(float::double_minimum_maximum), Double, Double, Fp64, none, Double;
    // Pairs of halves.
    "HADD2": semantics!(float::half_add), Half, Half, Fp32, half_bits, Single;
    "HMUL2": semantics!(float::half_multiply), Half, Half, Fp32, half_bits, Single;
    "HFMA2": semantics!(float::half_fused), Half, Half, Fp32, half_bits, Single;
    "HMNMX2": semantics!(float::half_minimum_maximum), Half, Half, Fp32, half_bits, Single;
    "HSETP2": semantics!(float::half_compare), Half, Compare, Fp32, compare_halves, Single;
    "HSET2": semantics!(float::half_set), Half, Half, Fp32, compare_halves, Single;
    // Conversions.
    "F2F": semantics!(convert::convert), Transcendental, Conversion, Fp32, float_to_float, By(conversion_widths);
    "F2I": semantics!(convert::convert), Transcendental, Conversion, Fp32, float_to_integer, By(conversion_widths);
    "I2F": semantics!(convert::convert), Transcendental, Conversion, Integer, integer_to_float, By(conversion_widths);
    "I2FP": semantics!(convert::convert), Alu, Integer, Integer, integer_to_float, Single;
    "F2IP": semantics!(convert::convert), Alu, Integer, Fp32, float_to_integer, Single;
    "FRND": semantics!(convert::convert), Transcendental, Conversion, Fp32, round_float, By(conversion_widths);
    "F2FP": semantics!(convert::pack_pair), Alu, Integer, Fp32, pack, Single;
    // Lanes together.
    "SHFL": semantics!(warp::shuffle), LoadStore, Shuffle, Other, shuffle, Single;
    "VOTE": semantics!(warp::vote), Alu, Vote, Other, vote, Single;
    "VOTEU": semantics!(warp::vote), Uniform, Vote, Other, vote_uniform, Single;
    "MATCH": semantics!(warp::match_values), Miscellaneous, Match, Other, match_bits, By(match_widths);
    "REDUX": semantics!(warp::reduce), Miscellaneous, WarpReduce, Other, reduce, Single;
    "ELECT": semantics!(warp::elect), Alu, Vote, Other, none, Single;
    "MOVM": semantics!(warp::transpose_matrix), LoadStore, Shuffle, Other, none, Single;
    // Who am I.
    "S2R": semantics!(warp::special), Miscellaneous, SpecialRegister, Other, special, Single;
    "S2UR": uniform!(warp::special), Miscellaneous, SpecialRegister, Other, special, Single;
    "CS2R": semantics!(warp::special), Alu, Integer, Other, special_wide, By(special_widths);
    // Matrices.
    "HMMA": semantics!(matrix::multiply), Tensor, MatrixLong, Other, matrix::bits, By(matrix::widths);
    "IMMA": semantics!(matrix::multiply), Tensor, MatrixLong, Other, matrix::bits, By(matrix::widths);
    "BMMA": semantics!(matrix::multiply), Tensor, MatrixLong, Other, matrix::bits, By(matrix::widths);
    "DMMA": semantics!(matrix::multiply), Tensor, MatrixDouble, Fp64, matrix::bits, By(matrix::widths);
}

fn fused() -> Semantics {
    Semantics {
        portable: semantics!(float::fused).portable,
        wide: semantics!(float::fused_host).wide,
    }
}

fn double_fused() -> Semantics {
    Semantics {
        portable: semantics!(float::double_fused).portable,
        wide: semantics!(float::double_fused_host).wide,
    }
}

impl WarpRegister {
    /// Binds the operands: destinations in front, predicates behind.
    ///
    /// # Errors
    /// If there are more operands than any instruction of this kind has.
    pub fn bind(&self, spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
        if let Some(why) = refused(spelling) {
            return Ok(spelling.unsupported(why));
        }
        let mut instruction = Instruction::new(
            Operation::Compute(self.semantics.choose()),
            SchedulingInfo::default(),
        );
        instruction.modifiers = (self.bits)(spelling);
        place_operands(spelling, &mut instruction)?;
        if self.name == "HFMA2"
            && let Some(word) = float::half_literal(&instruction)
        {
            // One lane speaks for all, once for all times.
            instruction.operation = Operation::Compute(semantics!(logic::copy).choose());
            instruction.sources = [Source::default(); 4];
            instruction.sources[0] = Operand::Immediate(word.into()).into();
        }
        let (destination_registers, source_registers) = match self.widths {
            Single => (1, [1, 1, 1, 1]),
            Double => (2, [2, 2, 2, 0]),
            By(widths) => widths(spelling),
        };
        instruction.scheduling = SchedulingInfo {
            unit: self.unit,
            latency: self.latency,
            mix: self.mix,
            source_registers,
            destination_registers: if instruction.destination.is_some() {
                destination_registers
            } else {
                0
            },
            ..SchedulingInfo::default()
        };
        Ok(instruction)
    }
}

/// Forms of a known opcode that have no meaning here yet.
fn refused(spelling: &Spelling<'_>) -> Option<&'static str> {
    let packed = ["U16x2", "S16x2"].iter().any(|word| spelling.has(word));
    if packed {
        return Some("works on pairs of 16-bit integers, which cannot be executed yet");
    }
    match spelling.name {
        "S2R" | "S2UR" | "CS2R" => {
            let known = spelling
                .operands()
                .iter()
                .all(|operand| match operand.value {
                    Value::SpecialRegister(index) => warp::SPECIAL_REGISTERS.contains(&index),
                    _ => true,
                });
            (!known).then_some("reads a special register that is not modelled")
        }
        "MUFU" if spelling.has("F16") => {
            Some("works on half precision, which cannot be executed yet")
        }
        "F2FP" if !spelling.has("PACK_AB") => Some("packs in a way that cannot be executed yet"),
        "F2FP"
            if spelling
                .words
                .iter()
                .any(|word| ["E4M3", "E5M2", "RS"].contains(word)) =>
        {
            Some("packs a format that cannot be executed yet")
        }
        "HMMA" | "IMMA" | "BMMA" | "DMMA" => matrix::refused(spelling),
        "PRMT" | "UPRMT" if !spelling.words.is_empty() => {
            Some("permutes in a mode that cannot be executed yet")
        }
        _ => None,
    }
}

/// Destinations stand in front: predicates, a register, predicates again. The rest are sources.
fn place_operands(spelling: &Spelling<'_>, instruction: &mut Instruction) -> Result<(), BindError> {
    let operands = spelling.operands();
    let mut written = 0;
    let mut next = 0;
    let mut write = |instruction: &mut Instruction, register: PredicateRegister| {
        if written < 2 {
            instruction.predicate_destinations[written] = register;
            written += 1;
        }
    };
    let sets_predicates_only = matches!(
        spelling.name,
        "ISETP" | "UISETP" | "FSETP" | "DSETP" | "HSETP2" | "PLOP3" | "UPLOP3" | "FCHK" | "R2P"
    );
    let leading = match spelling.name {
        "FCHK" => 1,
        "VOTE" | "VOTEU" | "ELECT" | "R2UR" | "SHFL" | "LOP3" | "ULOP3" | "MATCH" => 1,
        "R2P" => 0,
        _ => 2,
    };
    while next < operands.len() && next < leading {
        let Some(register) = predicate_register(operands[next].value) else {
            break;
        };
        write(instruction, register);
        next += 1;
    }
    if !sets_predicates_only
        && let Some(operand) = operands.get(next)
        && let Value::Register(_) | Value::UniformRegister(_) = operand.value
    {
        instruction.destination = match operand.value {
            Value::Register(index) => spelling.frame.register(index),
            Value::UniformRegister(index) => spelling.frame.uniform(index),
            _ => None,
        };
        next += 1;
        let last_is_source = matches!(spelling.name, "VOTE" | "VOTEU");
        while next + usize::from(last_is_source) < operands.len() {
            let Some(register) = predicate_register(operands[next].value) else {
                break;
            };
            if operands[next].invert || matches!(spelling.name, "SEL" | "USEL") {
                break;
            }
            write(instruction, register);
            next += 1;
        }
    }
    let (mut sources, mut predicates) = (0, 0);
    let mut source = |instruction: &mut Instruction, source: Source| {
        let Some(slot) = instruction.sources.get_mut(sources) else {
            return Err(BindError::new(
                "has more sources than an instruction can have",
            ));
        };
        *slot = source;
        sources += 1;
        Ok(())
    };
    let look_up_table = matches!(spelling.name, "LOP3" | "ULOP3")
        .then(|| {
            operands
                .iter()
                .rposition(|operand| matches!(operand.value, Value::Immediate(_)))
        })
        .flatten();
    for (position, operand) in operands.iter().enumerate().skip(next) {
        if let Some(predicate) = spelling.predicate(operand) {
            let Some(slot) = instruction.predicates.get_mut(predicates) else {
                return Err(BindError::new(
                    "has more predicates than an instruction can have",
                ));
            };
            *slot = predicate;
            predicates += 1;
            continue;
        }
        match operand.value {
            // Look-up tables of LOP3 and PLOP3 went into the modifiers.
            Value::Immediate(_) if matches!(spelling.name, "PLOP3" | "UPLOP3") => {}
            Value::Immediate(_) if look_up_table == Some(position) => {}
            Value::SpecialRegister(_) | Value::PredicateFile { .. } => {}
            _ => source(instruction, spelling.source(operand)?)?,
        }
    }
    finish_operands(spelling, instruction, predicates);
    Ok(())
}

/// What the order of operands does not say.
fn finish_operands(spelling: &Spelling<'_>, instruction: &mut Instruction, predicates: usize) {
    match spelling.name {
        // `LEA R, a, b, shift` has no high word; `.SX32` neither.
        "LEA" | "ULEA" => {
            let values = spelling
                .operands()
                .iter()
                .filter(|operand| predicate_register(operand.value).is_none())
                .count();
            if values == 4 {
                instruction.sources[3] = instruction.sources[2];
                instruction.sources[2] = Source::default();
            }
        }
        "IADD3" | "UIADD3" if predicates == 0 => {
            instruction.predicates = [PredicateOperand::FALSE; 3];
        }
        // The new bits come from the old register under a mask.
        "P2R" => instruction.sources[2] = Operand::Immediate(0).into(),
        _ => {}
    }
}

fn none(_: &Spelling<'_>) -> u64 {
    0
}

fn carry(spelling: &Spelling<'_>) -> u64 {
    spelling.bits("X", Modifiers::CARRY_IN)
}

fn lea(spelling: &Spelling<'_>) -> u64 {
    carry(spelling)
        | spelling.bits("HI", integer::HIGH)
        | spelling.bits("SX32", integer::SIGN_EXTENDED)
}

/// `IMAD` in its three widths; the words choose.
#[inline(always)]
fn multiply_add(lanes: &mut Lanes<'_>, i: &Instruction) {
    if i.modifiers & integer::WIDE != 0 {
        integer::multiply_add_wide(lanes, i);
    } else if i.modifiers & integer::HIGH != 0 {
        integer::multiply_add_high(lanes, i);
    } else {
        integer::multiply_add(lanes, i);
    }
}

fn multiply(spelling: &Spelling<'_>) -> u64 {
    carry(spelling)
        | spelling.bits("WIDE", integer::WIDE)
        | spelling.bits("HI", integer::HIGH)
        | if spelling.has("U32") {
            0
        } else {
            Modifiers::SIGNED
        }
}

fn multiply_widths(spelling: &Spelling<'_>) -> (u8, [u8; 4]) {
    if spelling.has("WIDE") {
        (2, [1, 1, 2, 0])
    } else if spelling.has("HI") {
        (1, [1, 1, 2, 0])
    } else {
        (1, [1, 1, 1, 0])
    }
}

fn signed(spelling: &Spelling<'_>) -> u64 {
    (if spelling.has("U32") {
        0
    } else {
        Modifiers::SIGNED
    }) | spelling.bits("RELU", Modifiers::RELU)
}

fn signed_bytes(spelling: &Spelling<'_>) -> u64 {
    spelling.bits("S8", Modifiers::SIGNED)
}

#[inline(always)]
fn dot_product(lanes: &mut Lanes<'_>, i: &Instruction) {
    if i.modifiers & integer::WIDE != 0 {
        integer::dot_product2(lanes, i);
    } else {
        integer::dot_product4(lanes, i);
    }
}

fn dot_product_bits(spelling: &Spelling<'_>) -> u64 {
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

fn comparison(spelling: &Spelling<'_>) -> u64 {
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

fn compare_integers(spelling: &Spelling<'_>) -> u64 {
    comparison(spelling)
        | (if spelling.has("U32") {
            0
        } else {
            Modifiers::SIGNED
        })
        | spelling.bits("EX", integer::EXTENDED)
}

fn compare_floats(spelling: &Spelling<'_>) -> u64 {
    comparison(spelling)
        | spelling.bits("FTZ", Modifiers::FLUSH)
        | spelling.bits("BF", float::SINGLE_RESULT)
        | spelling.bits("MIN", float::SMALLER)
        | spelling.bits("MAX", float::LARGER)
}

fn compare_halves(spelling: &Spelling<'_>) -> u64 {
    compare_floats(spelling)
        | spelling.bits("BF16_V2", float::BRAIN)
        | spelling.bits("H_AND", float::BOTH_HALVES)
}

fn shift(spelling: &Spelling<'_>) -> u64 {
    let wide = spelling.has("U64") || spelling.has("S64");
    let signed = spelling.has("S32") || spelling.has("S64");
    spelling.bits("R", integer::RIGHT)
        | spelling.bits("W", Modifiers::WRAP)
        | spelling.bits("HI", integer::HIGH)
        | if wide { integer::WIDE } else { 0 }
        | if signed { Modifiers::SIGNED } else { 0 }
}

fn find_leading(spelling: &Spelling<'_>) -> u64 {
    spelling.bits("SH", integer::SHIFT_AMOUNT)
        | if spelling.has("U32") {
            0
        } else {
            Modifiers::SIGNED
        }
}

fn extend(spelling: &Spelling<'_>) -> u64 {
    spelling.bits("W", Modifiers::WRAP)
        | if spelling.has("U32") {
            0
        } else {
            Modifiers::SIGNED
        }
}

fn rounding(spelling: &Spelling<'_>) -> u64 {
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

fn float_bits(spelling: &Spelling<'_>) -> u64 {
    rounding(spelling)
        | spelling.bits("FTZ", Modifiers::FLUSH)
        | spelling.bits("FMZ", Modifiers::FLUSH)
        | spelling.bits("SAT", Modifiers::SATURATE)
        | spelling.bits("NAN", Modifiers::NAN)
        | spelling.bits("XORSIGN", Modifiers::XOR_SIGN)
}

fn half_bits(spelling: &Spelling<'_>) -> u64 {
    float_bits(spelling)
        | spelling.bits("RELU", Modifiers::RELU)
        | spelling.bits("BF16_V2", float::BRAIN)
        | spelling.bits("F32", float::SINGLE_RESULT)
}

fn immediates(spelling: &Spelling<'_>) -> Vec<u64> {
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

fn table_bits(spelling: &Spelling<'_>) -> u64 {
    let table = immediates(spelling).last().copied().unwrap_or(0);
    (table & 0xff) << logic::TABLE | spelling.bits("PAND", logic::PREDICATE_AND)
}

fn tables_bits(spelling: &Spelling<'_>) -> u64 {
    let tables = immediates(spelling);
    let table = |index: usize| tables.get(index).copied().unwrap_or(0) & 0xff;
    table(0) << logic::TABLE | table(1) << logic::SECOND_TABLE
}

fn byte(spelling: &Spelling<'_>) -> u64 {
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

fn function(spelling: &Spelling<'_>) -> u64 {
    const FUNCTIONS: [&str; 10] = [
        "COS", "SIN", "EX2", "LG2", "RCP", "RSQ", "RCP64H", "RSQ64H", "SQRT", "TANH",
    ];
    let index = FUNCTIONS
        .iter()
        .position(|word| spelling.has(word))
        .unwrap_or(0);
    (index as u64) << convert::FUNCTION
}

/// Formats named in the text, in its order.
fn formats(spelling: &Spelling<'_>) -> Vec<Format> {
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

fn formats_bits(spelling: &Spelling<'_>, to: Format, from: Format) -> u64 {
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
fn float_pair(spelling: &Spelling<'_>) -> (Format, Format) {
    match formats(spelling)[..] {
        [to, from, ..] => (to, from),
        [to] => (to, Format::F32),
        [] => (Format::F32, Format::F32),
    }
}

fn float_to_float(spelling: &Spelling<'_>) -> u64 {
    let (to, from) = float_pair(spelling);
    formats_bits(spelling, to, from)
}

/// `F2I.U32.F64`: the integer first, S32 if it is not named; the float is FP32 if not named.
fn integer_and_float(spelling: &Spelling<'_>) -> (Format, Format) {
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

fn float_to_integer(spelling: &Spelling<'_>) -> u64 {
    let (integer, float) = integer_and_float(spelling);
    formats_bits(spelling, integer, float)
}

fn integer_to_float(spelling: &Spelling<'_>) -> u64 {
    let (integer, float) = integer_and_float(spelling);
    formats_bits(spelling, float, integer)
}

fn round_float(spelling: &Spelling<'_>) -> u64 {
    let format = formats(spelling).first().copied().unwrap_or(Format::F32);
    formats_bits(spelling, format, format) | convert::WHOLE
}

fn conversion_widths(spelling: &Spelling<'_>) -> (u8, [u8; 4]) {
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

fn pack(spelling: &Spelling<'_>) -> u64 {
    let to = if spelling.has("BF16") {
        Format::Bf16
    } else {
        Format::F16
    };
    (to as u64) << convert::TO | rounding(spelling) | spelling.bits("RELU", Modifiers::RELU)
}

fn mode(spelling: &Spelling<'_>, modes: &[&str]) -> u64 {
    let mode = modes
        .iter()
        .position(|word| spelling.has(word))
        .unwrap_or(0);
    (mode as u64) << warp::MODE
}

fn shuffle(spelling: &Spelling<'_>) -> u64 {
    mode(spelling, &["IDX", "UP", "DOWN", "BFLY"])
}

fn vote(spelling: &Spelling<'_>) -> u64 {
    mode(spelling, &["ALL", "ANY", "EQ"])
}

fn vote_uniform(spelling: &Spelling<'_>) -> u64 {
    vote(spelling) | warp::WIDE
}

fn match_bits(spelling: &Spelling<'_>) -> u64 {
    mode(spelling, &["ANY", "ALL"]) | spelling.bits("U64", warp::WIDE)
}

fn match_widths(spelling: &Spelling<'_>) -> (u8, [u8; 4]) {
    (1, [1 + u8::from(spelling.has("U64")), 0, 0, 0])
}

fn reduce(spelling: &Spelling<'_>) -> u64 {
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

fn special(spelling: &Spelling<'_>) -> u64 {
    let register = spelling
        .operands()
        .iter()
        .find_map(|operand| match operand.value {
            Value::SpecialRegister(index) => Some(index),
            _ => None,
        });
    u64::from(register.unwrap_or(0xff)) << warp::SPECIAL
}

fn special_wide(spelling: &Spelling<'_>) -> u64 {
    special(spelling)
        | if spelling.has("32") {
            0
        } else {
            warp::WIDE_SPECIAL
        }
}

fn special_widths(spelling: &Spelling<'_>) -> (u8, [u8; 4]) {
    (if spelling.has("32") { 1 } else { 2 }, [0; 4])
}
