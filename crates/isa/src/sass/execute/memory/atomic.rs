//! Atomics and reductions: `ATOM`, `ATOMG`, `ATOMS`, `RED`.

use super::super::bind::{BindError, Spelling};
use super::{destination, finish, operation, scope, values};
use crate::{
    instruction::Instruction,
    memory::{Action, AtomicOperation, AtomicType, Element, Order, Space, Strength},
    operand::Operand,
};

/// Operation and type of an atomic, by its words.
pub(super) fn atomic_kind(spelling: &Spelling<'_>) -> Option<(AtomicOperation, AtomicType)> {
    let operation = spelling.words.iter().find_map(|word| {
        Some(match *word {
            "ADD" | "SAFEADD" => AtomicOperation::Add,
            "MIN" => AtomicOperation::Min,
            "MAX" => AtomicOperation::Max,
            "POPC" | "INC" if spelling.has("POPC") => AtomicOperation::Add,
            "INC" => AtomicOperation::Increment,
            "DEC" => AtomicOperation::Decrement,
            "AND" => AtomicOperation::And,
            "OR" => AtomicOperation::Or,
            "XOR" => AtomicOperation::Xor,
            "EXCH" => AtomicOperation::Exchange,
            "CAS" => AtomicOperation::CompareAndSwap,
            "CAST" => AtomicOperation::CompareAndTest,
            _ => return None,
        })
    })?;
    let flush = spelling.has("FTZ");
    let kind = spelling.words.iter().find_map(|word| {
        Some(match *word {
            "64" | "U64" => Some(AtomicType::U64),
            "S64" => Some(AtomicType::S64),
            "S32" => Some(AtomicType::S32),
            "F32" => Some(AtomicType::F32 { flush }),
            "F64" => Some(AtomicType::F64),
            "F16x2" => Some(AtomicType::F16x2),
            "BF16x2" => Some(AtomicType::Bf16x2),
            "F16x4" | "F16x8" | "BF16x4" | "BF16x8" | "128" | "F32x2" | "F32x4" => None,
            _ => return None,
        })
    });
    Some((operation, kind.unwrap_or(Some(AtomicType::U32))?))
}

pub(super) fn atomic(spelling: &Spelling<'_>, space: Space) -> Result<Instruction, BindError> {
    let Some((operator, kind)) = atomic_kind(spelling) else {
        return Ok(spelling.unsupported("is an atomic that cannot be executed yet"));
    };
    if operator == AtomicOperation::CompareAndTest && space != Space::Shared {
        return Ok(spelling.unsupported("is a test and swap outside shared memory"));
    }
    let destination = destination(spelling)?;
    finish_atomic(
        spelling,
        space,
        Action::Atomic(operator, kind),
        kind,
        destination,
    )
}

pub(super) fn reduction(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let Some((operator, kind)) = atomic_kind(spelling) else {
        return Ok(spelling.unsupported("is a reduction that cannot be executed yet"));
    };
    finish_atomic(
        spelling,
        Space::Global,
        Action::Reduce(operator, kind),
        kind,
        None,
    )
}

pub(super) fn finish_atomic(
    spelling: &Spelling<'_>,
    space: Space,
    action: Action,
    kind: AtomicType,
    destination: Option<u16>,
) -> Result<Instruction, BindError> {
    let mut operation = operation(spelling, space, action, 0)?;
    operation.element = if kind.bytes() == 8 {
        Element::B64
    } else {
        Element::B32
    };
    operation.data[0] = destination;
    for (slot, value) in operation.values.iter_mut().zip(values(spelling)?) {
        *slot = spelling.source(value)?.operand;
    }
    if spelling.has("POPC") {
        operation.values[0] = Operand::Immediate(1);
    }
    if space != Space::Shared && operation.strength == Strength::Weak {
        operation.strength = Strength::Strong {
            scope: scope(spelling),
            order: Order::Relaxed,
        };
    }
    let third = operation.values[1];
    let registers = operation.element.words() as u8;
    let mut instruction = finish(operation, destination, registers);
    instruction.sources[2] = third.into();
    instruction.scheduling.source_registers[2] = registers;
    Ok(instruction)
}
