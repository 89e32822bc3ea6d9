//! Products of warp groups (`HGMMA`, `IGMMA`, `QGMMA`, `BGMMA`), their fences and waits, and
//! `USETMAXREG`.

use super::{
    bind::{BindError, Spelling},
    matrix::selector,
};
use crate::{
    instruction::{Instruction, Latency, Mix, Operation, SchedulingInfo, Unit},
    operand::{Operand, PredicateOperand},
    sass::decoded::{Operand as Spelled, Value},
    semantics::{
        Rounding,
        matrix::{Accumulator, BitProduct, Input, Multiply, TensorCore},
    },
    warpgroup::{GroupMultiply, Warpgroup},
};

/// Binds an instruction of a warp group; `None` if this one is none.
///
/// # Errors
/// If operands are missing.
pub fn bind(spelling: &Spelling<'_>) -> Result<Option<Instruction>, BindError> {
    Ok(Some(match spelling.name {
        "HGMMA" | "IGMMA" | "QGMMA" | "BGMMA" => multiply(spelling)?,
        "WARPGROUP" if spelling.has("ARRIVE") => plain(Warpgroup::Arrive),
        "WARPGROUP" if spelling.has("DEPBAR") => plain(Warpgroup::Wait {
            at_most: number(spelling)? as u8,
        }),
        "USETMAXREG" if spelling.has("DEALLOC") => plain(Warpgroup::ReleaseRegisters {
            keep: number(spelling)? as u16,
        }),
        "USETMAXREG" => {
            let wanted = number(spelling)? as u16;
            let mut instruction = plain(Warpgroup::TakeRegisters { wanted });
            let predicate = spelling
                .operands()
                .iter()
                .find_map(|o| spelling.predicate(o));
            let predicate = predicate.ok_or_else(|| BindError::new("writes no predicate"))?;
            instruction.predicate_destinations[0] = predicate.register;
            instruction
        }
        _ => return Ok(None),
    }))
}

fn plain(operation: Warpgroup) -> Instruction {
    Instruction::new(
        Operation::Warpgroup(operation),
        SchedulingInfo {
            unit: Unit::Miscellaneous,
            latency: Latency::Integer,
            mix: Mix::Control,
            ..SchedulingInfo::default()
        },
    )
}

/// The number among the operands.
fn number(spelling: &Spelling<'_>) -> Result<u64, BindError> {
    let mut operands = spelling.operands().iter();
    let found = operands.find_map(|operand| match operand.value {
        Value::Immediate(immediate) => Some(immediate.bits),
        _ => None,
    });
    found.ok_or_else(|| BindError::new("names no number"))
}

/// `64x128x16` to 128 and 16.
fn dimensions(spelling: &Spelling<'_>) -> Option<(usize, usize)> {
    spelling.words.iter().find_map(|word| {
        let (n, k) = word.strip_prefix("64x")?.split_once('x')?;
        Some((n.parse().ok()?, k.parse().ok()?))
    })
}

fn shape(spelling: &Spelling<'_>) -> Option<Multiply> {
    let (n, k) = dimensions(spelling)?;
    let mut types = spelling.words.iter().filter_map(|word| {
        Some(match *word {
            "BF16" => Input::Bf16,
            "TF32" => Input::Tf32,
            "S8" => Input::S8,
            "U8" => Input::U8,
            "E4M3" => Input::E4m3,
            "E5M2" => Input::E5m2,
            _ => return None,
        })
    });
    let a = match spelling.name {
        "BGMMA" => Input::B1,
        _ => types.next().unwrap_or(Input::F16),
    };
    let b = types.next().unwrap_or(a);
    let accumulator = match spelling.name {
        "IGMMA" | "BGMMA" => Accumulator::S32,
        _ if spelling.has("F32") => Accumulator::F32,
        _ => Accumulator::F16,
    };
    let shape = Multiply {
        m: 16,
        n,
        k,
        a,
        b,
        c: accumulator,
        d: accumulator,
        saturate: spelling.has("SAT"),
        bit_product: BitProduct::And,
        sparse: spelling.has("SP"),
        selector: selector(spelling),
        rounding: Rounding::Nearest,
        unit: TensorCore::HopperGroup,
    };
    shape.is_known().then_some(shape)
}

fn multiply(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let Some(shape) = shape(spelling) else {
        return Ok(spelling.unsupported("has a shape that cannot be executed"));
    };
    let mut registers = Vec::new();
    let (mut descriptor, mut flags) = (None, [false; 4]);
    let mut scale = PredicateOperand::TRUE;
    let mut commits = false;
    let mut negate_a = false;
    for operand in spelling.operands() {
        match operand.value {
            Value::Register(_) => {
                negate_a |= operand.negate;
                registers.push(spelling.source(operand)?.operand);
            }
            Value::MatrixDescriptor(index) => {
                descriptor = Some(index);
                flags = ["negA", "negB", "tnspA", "tnspB"].map(|word| has(operand, word));
            }
            Value::GroupScoreboard => commits = true,
            _ => {
                if let Some(predicate) = spelling.predicate(operand) {
                    scale = predicate;
                }
            }
        }
    }
    let descriptor = descriptor.ok_or_else(|| BindError::new("names no descriptor"))?;
    let uniform = |offset: u8| match spelling.frame.uniform(descriptor + offset) {
        Some(row) => Operand::Register(row),
        None => Operand::None,
    };
    // D, A's registers if it has some, C, metadata.
    let a_in_registers = registers.len() == 3 + usize::from(shape.sparse);
    let mut sources = registers.into_iter();
    let mut next = || sources.next().unwrap_or_default();
    let destination = next();
    let [a, a_words] = if a_in_registers {
        [(next(), 0), (Operand::None, shape.a_registers() as u8)]
    } else {
        [(uniform(0), 0), (Operand::None, 2)]
    };
    let (c, metadata) = (next(), next());
    let rows = shape.d_registers() as u8;
    let mut instruction = Instruction::new(
        Operation::Warpgroup(Warpgroup::Multiply(GroupMultiply {
            a_in_registers,
            negate: [flags[0] || negate_a, flags[1]],
            transpose: [flags[2], flags[3]],
            commits,
        })),
        SchedulingInfo {
            unit: Unit::Tensor,
            latency: Latency::MatrixLong,
            mix: Mix::Other,
            source_registers: [a_words.1, 2, rows, u8::from(shape.sparse)],
            ..SchedulingInfo::default()
        },
    );
    if let Operand::Register(row) = destination {
        instruction.destination = Some(row);
        instruction.scheduling.destination_registers = rows;
    }
    instruction.modifiers = shape.encode();
    instruction.sources = [a.0, uniform(2), c, metadata].map(Into::into);
    instruction.predicates[0] = scale;
    Ok(instruction)
}

fn has(operand: &Spelled, word: &str) -> bool {
    operand
        .modifiers
        .iter()
        .any(|modifier| modifier.name() == word)
}
