//! Conversions and transcendental functions of SASS on the registers of a warp.

use crate::{
    instruction::Instruction,
    lanes::Lanes,
    operand::Halves,
    operands,
    semantics::{
        Modifiers,
        convert::{self, Integer},
        float16::{self, Kind},
        float32,
        lane_loops::{float_unary, map_lanes, unary, widen},
        soft::Rounding,
        transcendental,
    },
    warp_register::WarpRegister,
};

/// Source format of a conversion: [`Format`] in four bits.
pub const FROM: u32 = Modifiers::FREE;
/// Destination format of a conversion: [`Format`] in four bits.
pub const TO: u32 = Modifiers::FREE + 4;
/// Which function `MUFU` computes: [`Function`] in four bits.
pub const FUNCTION: u32 = Modifiers::FREE;
/// `MUFU` on a half.
pub const SMALL_HALF: u64 = 1 << (Modifiers::FREE + 4);
/// `MUFU` on a bfloat16.
pub const SMALL_BRAIN: u64 = 2 << (Modifiers::FREE + 4);
const SMALL: u64 = SMALL_HALF | SMALL_BRAIN;
/// `MUFU` on the upper half of a register, `.H1`.
pub const UPPER_HALF: u64 = 1 << (Modifiers::FREE + 6);
/// Pairs: the result takes `sources[0]` as its high and `sources[1]` as its low half.
pub const PAIR: u64 = 1 << (Modifiers::FREE + 8);
/// Bytes or halves of the source: `.B0` to `.B3`, `.H0`, `.H1` as a shift in bits.
pub const SHIFT: u32 = Modifiers::FREE + 9;
const SHIFTED: u64 = 31 << SHIFT;
/// The result is rounded to an integer but stays a float.
pub const WHOLE: u64 = 1 << (Modifiers::FREE + 14);
/// Not a number becomes the integer with its highest bit alone rather than zero.
pub const NAN_TO_HIGHEST: u64 = 1 << (Modifiers::FREE + 15);

/// Formats that conversions know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Format {
    /// Unsigned byte.
    U8,
    /// Signed byte.
    S8,
    /// Unsigned 16-bit.
    U16,
    /// Signed 16-bit.
    S16,
    /// Unsigned 32-bit.
    U32,
    /// Signed 32-bit.
    S32,
    /// Unsigned 64-bit.
    U64,
    /// Signed 64-bit.
    S64,
    /// Half precision.
    F16,
    /// bfloat16.
    Bf16,
    /// Single precision.
    F32,
    /// Double precision.
    F64,
    /// Single precision of which ten fraction bits count.
    Tf32,
}

const FORMATS: [Format; 13] = [
    Format::U8,
    Format::S8,
    Format::U16,
    Format::S16,
    Format::U32,
    Format::S32,
    Format::U64,
    Format::S64,
    Format::F16,
    Format::Bf16,
    Format::F32,
    Format::F64,
    Format::Tf32,
];

impl Format {
    fn from_bits(modifiers: u64, shift: u32) -> Self {
        FORMATS[((modifiers >> shift & 15) as usize).min(FORMATS.len() - 1)]
    }

    /// The integer type, if it is one.
    #[must_use]
    pub const fn integer(self) -> Option<Integer> {
        let (bits, signed) = match self {
            Self::U8 => (8, false),
            Self::S8 => (8, true),
            Self::U16 => (16, false),
            Self::S16 => (16, true),
            Self::U32 => (32, false),
            Self::S32 => (32, true),
            Self::U64 => (64, false),
            Self::S64 => (64, true),
            _ => return None,
        };
        Some(Integer { bits, signed })
    }

    /// Takes two registers.
    #[must_use]
    pub const fn is_wide(self) -> bool {
        matches!(self, Self::U64 | Self::S64 | Self::F64)
    }
}

/// `F2F`, `F2I`, `I2F`, `I2FP`, `FRND`: any format to any other, the modifiers say which.
#[inline(always)]
pub fn convert(lanes: &mut Lanes<'_>, i: &Instruction) {
    use Format::{F32, F64, S32, U32};
    use Rounding::{Nearest, Zero};
    let special = Modifiers::FLUSH | Modifiers::SATURATE | WHOLE | SHIFTED | NAN_TO_HIGHEST;
    let plain = i.modifiers & special == 0;
    let whole = i.modifiers & special == WHOLE;
    let from = Format::from_bits(i.modifiers, FROM);
    let to = Format::from_bits(i.modifiers, TO);
    match (from, to, Modifiers(i.modifiers).rounding()) {
        // What programs are full of, as the host's own conversions; they clamp and treat NaN alike.
        (S32, F32, Nearest) if plain => unary(lanes, i, |a| (a as i32 as f32).to_bits()),
        (U32, F32, Nearest) if plain => unary(lanes, i, |a| (a as f32).to_bits()),
        (F32, S32, Zero) if plain => {
            float_unary(lanes, i, |a| f32::from_bits(a) as i32 as u32);
        }
        (F32, U32, Zero) if plain => float_unary(lanes, i, |a| f32::from_bits(a) as u32),
        (S32, F64, Nearest) if plain => {
            widen(lanes, i, |a| f64::from(a as i32).to_bits());
        }
        (U32, F64, Nearest) if plain => widen(lanes, i, |a| f64::from(a).to_bits()),
        (F32, F32, Zero) if whole => {
            float_unary(lanes, i, |a| convert::float32_to_whole(a, Zero));
        }
        (F32, F32, Nearest) if whole => {
            float_unary(lanes, i, |a| convert::float32_to_whole(a, Nearest));
        }
        _ => any(lanes, i, from, to),
    }
}

#[inline(never)]
fn any(lanes: &mut Lanes<'_>, i: &Instruction, from: Format, to: Format) {
    let shift = (i.modifiers >> SHIFT & 31) as u32;
    let source = i.sources[0];
    let values: [u64; 32] = match from {
        Format::F64 => lanes.float64(source),
        Format::U64 | Format::S64 => lanes.integer64(source),
        Format::F32 | Format::Tf32 => lanes.float(source).0.map(u64::from),
        Format::F16 | Format::Bf16 => {
            let high = source.halves == Halves::High || shift == 16;
            lanes.raw(source.operand, 0).0.map(|word| {
                let mut half = float16::unpack(word)[usize::from(high)];
                if source.absolute {
                    half &= 0x7fff;
                }
                if source.negate {
                    half ^= 0x8000;
                }
                u64::from(half)
            })
        }
        _ => lanes.integer(source).0.map(|word| u64::from(word >> shift)),
    };
    let modifiers = Modifiers(i.modifiers);
    let mut results = values.map(|value| one(value, from, to, modifiers));
    if to == Format::F64 && !modifiers.has(WHOLE) {
        // What is not a number keeps its sign and its fraction, whatever the signs of the operand.
        let raw = lanes.raw(source.operand, 0);
        for (result, word) in results.iter_mut().zip(raw.0) {
            if f64::from_bits(*result).is_nan() && from != Format::F64 {
                *result = widened_nan(word >> shift, from);
            }
        }
    }
    if to.is_wide() {
        lanes.write64(i.destination, &results);
    } else {
        lanes.write(
            i.destination,
            0,
            &WarpRegister(results.map(|value| value as u32)),
        );
    }
}

/// One value converted.
fn one(value: u64, from: Format, to: Format, modifiers: Modifiers) -> u64 {
    let rounding = modifiers.rounding();
    let flush = |word: u32| {
        if modifiers.flush() {
            float32::flush(word)
        } else {
            word
        }
    };
    if let Some(integer) = from.integer() {
        let number = integer.read(value);
        return match to {
            Format::F64 => convert::integer_to_float64(number, rounding),
            Format::F16 => u64::from(
                Kind::Half.narrow_double(convert::integer_to_float64(number, rounding), rounding),
            ),
            Format::Bf16 => u64::from(
                Kind::Brain.narrow_double(convert::integer_to_float64(number, rounding), rounding),
            ),
            _ => match to.integer() {
                Some(target) => target.convert(number, modifiers.saturate()),
                None => u64::from(convert::integer_to_float32(number, rounding)),
            },
        };
    }
    if from == Format::F64 {
        return match (to.integer(), to) {
            (Some(target), _) if f64::from_bits(value).is_nan() => not_a_number(target, modifiers),
            (Some(target), _) => convert::float64_to_integer(value, target, rounding),
            (None, Format::F64) => convert::float64_to_whole(value, rounding),
            (None, Format::F16) => u64::from(Kind::Half.narrow_double(value, rounding)),
            (None, Format::Bf16) => u64::from(Kind::Brain.narrow_double(value, rounding)),
            (None, _) => u64::from(flush(convert::float64_to_float32(value, rounding))),
        };
    }
    let flush_half = |kind: Kind, half: u16| {
        if modifiers.flush() {
            kind.flush(half)
        } else {
            half
        }
    };
    let single = match from {
        Format::F16 => Kind::Half.widen(flush_half(Kind::Half, value as u16)),
        Format::Bf16 => Kind::Brain.widen(flush_half(Kind::Brain, value as u16)),
        _ => flush(value as u32),
    };
    let single = if modifiers.has(WHOLE) {
        convert::float32_to_whole(single, rounding)
    } else {
        single
    };
    match (to.integer(), to) {
        (Some(target), _) if f32::from_bits(single).is_nan() => not_a_number(target, modifiers),
        (Some(target), _) => convert::float32_to_integer(single, target, rounding),
        (None, Format::F64) => convert::float32_to_float64(single),
        (None, Format::F16) => {
            let half = Kind::Half.narrow_rounded(single, rounding);
            u64::from(flush_half(Kind::Half, half))
        }
        (None, Format::Bf16) => {
            let half = Kind::Brain.narrow_rounded(single, rounding);
            u64::from(flush_half(Kind::Brain, half))
        }
        (None, Format::Tf32) => u64::from(convert::float32_to_tf32(single, rounding)),
        (None, _) => {
            let value = flush(single);
            u64::from(if modifiers.saturate() {
                float32::saturate(value)
            } else {
                value
            })
        }
    }
}

/// Not a number in double precision.
fn widened_nan(word: u32, from: Format) -> u64 {
    const EXPONENT_AND_QUIET: u64 = 0x7ff8 << 48;
    let (sign, fraction) = match from {
        Format::F16 => (word >> 15 & 1, u64::from(word & 0x3ff) << 42),
        Format::Bf16 => (word >> 15 & 1, u64::from(word & 0x7f) << 45),
        _ => (word >> 31, u64::from(word & 0x7f_ffff) << 29),
    };
    u64::from(sign) << 63 | EXPONENT_AND_QUIET | fraction
}

/// What an integer type has for what is not a number.
fn not_a_number(to: Integer, modifiers: Modifiers) -> u64 {
    if modifiers.has(NAN_TO_HIGHEST) {
        1 << (to.bits - 1)
    } else {
        0
    }
}

/// Functions of the transcendental unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Function {
    /// Cosine of a multiple of 2π.
    Cosine,
    /// Sine of a multiple of 2π.
    Sine,
    /// Power of two.
    Exponential,
    /// Logarithm to base two.
    Logarithm,
    /// 1 / x.
    Reciprocal,
    /// 1 / √x.
    ReciprocalSquareRoot,
    /// Seed of 1 / x in double precision, high words.
    ReciprocalHigh,
    /// Seed of 1 / √x in double precision, high words.
    ReciprocalSquareRootHigh,
    /// √x.
    SquareRoot,
    /// Hyperbolic tangent.
    HyperbolicTangent,
}

/// `MUFU`.
#[inline(always)]
pub fn transcendental(lanes: &mut Lanes<'_>, i: &Instruction) {
    use transcendental as unit;
    // Named and not passed on, so that functions become part of what is compiled for the host's vectors.
    macro_rules! function {
        ($function:path) => {{
            let halves;
            operands!(lanes, i; whole = float_at 0);
            let small = i.modifiers & SMALL != 0;
            let result = $function(if small {
                halves = small_operand(lanes, i);
                &halves
            } else {
                &whole.0
            });
            if small {
                small_result(lanes, i, &result);
            } else {
                lanes.write(i.destination, 0, &WarpRegister(result));
            }
        }};
    }
    match i.modifiers >> FUNCTION & 15 {
        0 => function!(unit::cosine_of_turns),
        1 => function!(unit::sine_of_turns),
        2 => function!(unit::exponential),
        3 => function!(unit::logarithm),
        4 => function!(unit::reciprocal),
        5 => function!(unit::reciprocal_square_root),
        6 => function!(unit::reciprocal_high),
        7 => function!(unit::reciprocal_square_root_high),
        8 => function!(unit::square_root),
        _ => function!(unit::hyperbolic_tangent),
    }
}

fn small_kind(i: &Instruction) -> Kind {
    if i.modifiers & SMALL == SMALL_HALF {
        Kind::Half
    } else {
        Kind::Brain
    }
}

#[inline(never)]
fn small_result(lanes: &mut Lanes<'_>, i: &Instruction, result: &[u32; 32]) {
    let kind = small_kind(i);
    let row = map_lanes(|n| u32::from(transcendental::narrow(kind, result[n])));
    lanes.write(i.destination, 0, &row);
}

/// One half of a register in single precision.
#[inline(never)]
fn small_operand(lanes: &Lanes<'_>, i: &Instruction) -> [u32; 32] {
    let kind = small_kind(i);
    let source = i.sources[0];
    let high = i.modifiers & UPPER_HALF != 0;
    lanes.raw(source.operand, 0).0.map(|word| {
        let half = float16::unpack(word)[usize::from(high)];
        source.of_float(kind.widen(half))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        Convergence, Mask, Operand,
        instruction::{Compute, Operation, SchedulingInfo},
        lanes::{ConstantBanks, Identity},
        semantics,
    };
    use proptest::prelude::*;

    /// What lane 0 gets for `value`, by a whole instruction.
    fn run(value: u32, from: Format, to: Format, rounding: Rounding) -> u64 {
        let modifiers =
            (from as u64) << FROM | (to as u64) << TO | Modifiers::rounding_bits(rounding);
        compute(semantics!(convert).choose(), value, modifiers)
    }

    fn compute(compute: Compute, value: u32, modifiers: u64) -> u64 {
        let mut i = Instruction::new(Operation::Compute(compute), SchedulingInfo::default());
        i.modifiers = modifiers;
        i.sources[0] = Operand::Register(0).into();
        i.destination = Some(2);
        let mut registers = vec![
            WarpRegister::splat(value),
            WarpRegister::ZERO,
            WarpRegister::ZERO,
            WarpRegister::ZERO,
        ];
        let mut lanes = Lanes {
            registers: &mut registers,
            predicates: &mut [],
            convergence: &mut Convergence::new(Mask::MAX, 0, 0, true),
            constants: &ConstantBanks::default(),
            identity: &Identity::default(),
            active: Mask::MAX,
            execute: Mask::MAX,
        };
        compute(&mut lanes, &i);
        u64::from(registers[2].0[0]) | u64::from(registers[3].0[0]) << 32
    }

    /// Values of an H200: the other half of the result is zero.
    #[test]
    fn functions_of_halves_read_the_half_they_name() {
        let mufu = |function: Function, value: u32, modifiers: u64| {
            let modifiers = (function as u64) << FUNCTION | modifiers;
            compute(semantics!(transcendental).choose(), value, modifiers)
        };
        let (tangent, power) = (Function::HyperbolicTangent, Function::Exponential);
        assert_eq!(mufu(tangent, 0x3c00_3800, SMALL_HALF), 0x3764);
        assert_eq!(mufu(tangent, 0x3c00_3800, SMALL_HALF | UPPER_HALF), 0x3a17);
        assert_eq!(mufu(power, 0x4000_4900, SMALL_BRAIN), 0x7f80);
        assert_eq!(mufu(power, 0x4000_4900, SMALL_BRAIN | UPPER_HALF), 0x4080);
        assert_eq!(mufu(Function::Reciprocal, 0x4000_0000, 0), 0x3f00_0000);
    }

    proptest! {
        #[test]
        fn conversions_with_their_own_loop_agree_with_the_general_one(value: u32) {
            use Format::{F32, F64, S32, U32};
            let special = [0, 1 << 31, 0x7fc0_0000, 0xffc0_0000, 0x7f80_0000, 0xff80_0000, 0x4f00_0000, 0xcf00_0001];
            for value in special.into_iter().chain([value]) {
                for (from, to, rounding) in [
                    (S32, F32, Rounding::Nearest),
                    (U32, F32, Rounding::Nearest),
                    (F32, S32, Rounding::Zero),
                    (F32, U32, Rounding::Zero),
                    (S32, F64, Rounding::Nearest),
                    (U32, F64, Rounding::Nearest),
                ] {
                    let modifiers = Modifiers(Modifiers::rounding_bits(rounding));
                    let mut expected = one(u64::from(value), from, to, modifiers);
                    if !to.is_wide() {
                        expected &= 0xffff_ffff;
                    }
                    prop_assert_eq!(run(value, from, to, rounding), expected, "{:?} {:?} {:#x}", from, to, value);
                }
            }
        }
    }
}
