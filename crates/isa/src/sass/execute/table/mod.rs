//! Arithmetic: which semantics an opcode has, on which unit, with which modifier bits.

mod modifiers;
mod operands;

use super::{
    bind::{BindError, Spelling},
    convert, float, integer, logic, matrix, pack, packed_integer, warp,
};
use crate::{
    instruction::{Instruction, Latency, Mix, Operation, SchedulingInfo, Unit},
    lanes::Lanes,
    operand::{Operand, Source},
    sass::decoded::Value,
    semantics,
    semantics::lane_loops::Semantics,
    warp_register::FULL,
};
use modifiers::*;
use operands::place_operands;

/// Modifier bits of an instruction, from its words.
type Bits = fn(&Spelling<'_>) -> u64;

/// One opcode.
pub struct Row {
    /// As the disassembler spells it.
    pub name: &'static str,
    semantics: Semantics,
    unit: Unit,
    latency: Latency,
    mix: Mix,
    bits: Bits,
    /// Registers written, and registers that each source spans.
    widths: Widths,
}

/// How wide destination and sources are.
#[derive(Clone, Copy)]
enum Widths {
    /// One register each.
    Single,
    /// Two registers each.
    Double,
    /// Whatever this says.
    By(fn(&Spelling<'_>) -> (u8, [u8; 4])),
}

/// Semantics as the uniform datapath has it: for the whole warp, or not at all.
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

/// Rows of the table: `name: semantics, unit, latency, mix, bits, widths;`
macro_rules! rows {
    ($($name:literal: $semantics:expr, $unit:ident, $latency:ident, $mix:ident, $bits:expr, $widths:expr;)*) => {
        /// The row of an opcode that computes.
        #[must_use]
        pub fn find(name: &str) -> Option<Row> {
            Some(match name {
                $($name => Row {
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
    "UIADD3": uniform!(integer::add3_uniform), Uniform, Uniform, Integer, add_uniform, By(add_uniform_widths);
    "LEA": semantics!(integer::lea), Alu, Integer, Integer, lea, Single;
    "ULEA": uniform!(integer::lea), Uniform, Uniform, Integer, lea, Single;
    "IMAD": semantics!(multiply_add), Fma, Float, Integer, multiply, By(multiply_widths);
    "UIMAD": uniform!(multiply_add), Uniform, Uniform, Integer, multiply, By(multiply_widths);
    "IABS": semantics!(integer::absolute), Alu, Integer, Integer, none, Single;
    "IMNMX": semantics!(integer::minimum_maximum), Alu, Integer, Integer, signed, Single;
    "VIMNMX": semantics!(packed_integer::minimum_maximum), Alu, Integer, Integer, packed_integer::bits, Single;
    "VIMNMX3": semantics!(packed_integer::minimum_maximum3), Alu, Integer, Integer, packed_integer::bits, Single;
    "VIADD": semantics!(packed_integer::add), Alu, Integer, Integer, packed_integer::bits, Single;
    "VIADDMNMX": semantics!(packed_integer::add_minimum_maximum), Alu, Integer, Integer, packed_integer::bits, Single;
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
    "PRMT": semantics!(logic::permute), Alu, Integer, Integer, permute_bits, Single;
    "UPRMT": uniform!(logic::permute), Uniform, Uniform, Integer, permute_bits, Single;
    "P2R": semantics!(logic::predicates_to_register), Alu, Integer, Integer, byte, Single;
    "R2P": semantics!(logic::register_to_predicates), Alu, Compare, Integer, byte, Single;
    "UP2UR": uniform!(logic::predicates_to_register), Uniform, Uniform, Integer, byte, Single;
    "UR2UP": uniform!(logic::register_to_predicates), Uniform, Uniform, Integer, byte, Single;
    "R2UR": semantics!(logic::to_uniform), Uniform, Uniform, Other, to_uniform_bits, Single;
    // Single precision.
    "FADD": semantics!(float::add), Fma, Float, Fp32, float_bits, Single;
    "FMUL": semantics!(float::multiply), Fma, Float, Fp32, multiply_bits, Single;
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
    "VHMNMX": semantics!(float::half_minimum_maximum3), Half, Half, Fp32, half_bits, Single;
    "HSETP2": semantics!(float::half_compare), Half, Compare, Fp32, compare_halves, Single;
    "HSET2": semantics!(float::half_set), Half, Half, Fp32, compare_halves, Single;
    // Conversions.
    "F2F": semantics!(convert::convert), Transcendental, Conversion, Fp32, float_to_float, By(conversion_widths);
    "F2I": semantics!(convert::convert), Transcendental, Conversion, Fp32, float_to_integer, By(conversion_widths);
    "I2F": semantics!(convert::convert), Transcendental, Conversion, Integer, integer_to_float, By(conversion_widths);
    "I2FP": semantics!(convert::convert), Alu, Integer, Integer, integer_to_float, Single;
    "FRND": semantics!(convert::convert), Transcendental, Conversion, Fp32, round_float, By(conversion_widths);
    "F2FP": semantics!(pack::pack), Alu, Integer, Fp32, pack::bits, Single;
    "F2IP": semantics!(pack::pack_rounded), Alu, Integer, Fp32, pack::float_bits, Single;
    "I2IP": semantics!(pack::pack_integers), Alu, Integer, Integer, pack::integer_bits, Single;
    "I2I": semantics!(pack::clamp_integer), Alu, Integer, Integer, pack::integer_bits, Single;
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

impl Row {
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

/// Forms of a known opcode that have no semantics here yet.
fn refused(spelling: &Spelling<'_>) -> Option<&'static str> {
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
        "MUFU" => {
            let small = spelling.has("F16") || spelling.has("BF16");
            let measured = spelling.has("EX2") || spelling.has("TANH");
            (small && !measured).then_some("has 16-bit results that no GPU was asked for yet")
        }
        "VHMNMX" => spelling
            .has("XORSIGN")
            .then_some("has signs of three sources that no GPU was asked for yet"),
        "F2FP" => pack::refused(spelling),
        "HMMA" | "IMMA" | "BMMA" | "DMMA" => matrix::refused(spelling),
        _ => None,
    }
}
