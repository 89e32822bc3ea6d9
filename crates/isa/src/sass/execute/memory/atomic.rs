//! Atomics and reductions: `ATOM`, `ATOMG`, `ATOMS`, `RED`.
//!
//! A generic `ATOM` writes a predicate: whether it was performed. Where it was not (sums of floats and most 64-bit
//! operations in shared memory, everything in local memory) the compiler's code asks for the space of the
//! address (`QSPC`) and does the work in another way.

use super::super::bind::{BindError, Spelling};
use super::{destination, finish, operation, scope, values};
use crate::{
    instruction::Instruction,
    memory::{Accumulation, Action, AtomicOperation, AtomicType, Element, Order, Space, Strength},
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
            "ARRIVE" => AtomicOperation::Arrive,
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
            "128" => Some(AtomicType::B128),
            "F16x4" | "F16x8" | "BF16x4" | "BF16x8" | "F32x2" | "F32x4" => None,
            _ => return None,
        })
    });
    Some((operation, kind.unwrap_or(Some(AtomicType::U32))?))
}

/// Vectors of floats in global memory: type of an element, and how many there are.
const VECTORS: [(&str, AtomicType, u8); 9] = [
    ("F16x2", AtomicType::F16x2, 1),
    ("F16x4", AtomicType::F16x2, 2),
    ("F16x8", AtomicType::F16x2, 4),
    ("BF16x2", AtomicType::Bf16x2, 1),
    ("BF16x4", AtomicType::Bf16x2, 2),
    ("BF16x8", AtomicType::Bf16x2, 4),
    ("F32", AtomicType::F32 { flush: false }, 1),
    ("F32x2", AtomicType::F32 { flush: false }, 2),
    ("F32x4", AtomicType::F32 { flush: false }, 4),
];

/// An atomic or reduction of several elements, which are atomic each for itself; nothing if it has but one.
fn vector(spelling: &Spelling<'_>, returns: bool) -> Result<Option<Instruction>, BindError> {
    let many = VECTORS.iter().filter(|(_, _, elements)| *elements > 1);
    let mut named = many.filter(|(word, ..)| spelling.has(word));
    let Some((_, kind, elements)) = named.next() else {
        return Ok(None);
    };
    let operator = if spelling.has("MIN") {
        AtomicOperation::Min
    } else if spelling.has("MAX") {
        AtomicOperation::Max
    } else {
        AtomicOperation::Add
    };
    let kind = match kind {
        AtomicType::F32 { .. } => AtomicType::F32 {
            flush: spelling.has("FTZ"),
        },
        other => *other,
    };
    let (action, destination) = if returns {
        (Action::Atomic(operator, kind), destination(spelling)?)
    } else {
        (Action::Reduce(operator, kind), None)
    };
    let mut operation = operation(spelling, Space::Global, action, 0)?;
    operation.element = Element::B32;
    operation.elements = *elements;
    let values = values(spelling)?;
    let value = values
        .first()
        .ok_or_else(|| BindError::new("has no operand"))?;
    let value = spelling.source(value)?.operand;
    for element in 0..u16::from(*elements) {
        let index = usize::from(element);
        operation.data[index] = destination.map(|first| first + element);
        operation.values[index] = match value {
            Operand::Register(first) => Operand::Register(first + element),
            other => other,
        };
    }
    if operation.strength == Strength::Weak {
        operation.strength = Strength::Strong {
            scope: scope(spelling),
            order: Order::Relaxed,
        };
    }
    Ok(Some(finish(operation, destination, *elements)))
}

pub(super) fn atomic(spelling: &Spelling<'_>, space: Space) -> Result<Instruction, BindError> {
    if space == Space::Global
        && let Some(vector) = vector(spelling, true)?
    {
        return Ok(vector);
    }
    let Some((operator, kind)) = atomic_kind(spelling) else {
        return Ok(spelling.unsupported("is an atomic that cannot be executed yet"));
    };
    if operator == AtomicOperation::CompareAndTest && space == Space::Global {
        return Ok(spelling.unsupported("is a test and swap outside shared memory"));
    }
    let destination = destination(spelling)?;
    let mut instruction = finish_atomic(
        spelling,
        space,
        Action::Atomic(operator, kind),
        kind,
        destination,
    )?;
    let performed = spelling
        .operands()
        .iter()
        .find_map(|operand| spelling.predicate(operand));
    if let Some(performed) = performed {
        instruction.predicate_destinations[0] = performed.register;
    }
    Ok(instruction)
}

pub(super) fn reduction(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    if let Some(vector) = vector(spelling, false)? {
        return Ok(vector);
    }
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

/// `LDGMC`: as many elements as a vector has, one register or pair each.
pub(super) fn load_reduced(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let vector = VECTORS.iter().find(|(word, ..)| spelling.has(word));
    let known = match (vector, atomic_kind(spelling)) {
        (Some((_, kind, elements)), _) => {
            let operator = if spelling.has("MIN") {
                AtomicOperation::Min
            } else if spelling.has("MAX") {
                AtomicOperation::Max
            } else {
                AtomicOperation::Add
            };
            Some((operator, *kind, *elements))
        }
        (None, Some((operator, kind))) => Some((operator, kind, 1)),
        _ => None,
    };
    let Some((operator, kind, elements)) = known else {
        return Ok(spelling.unsupported("reduces in a way that cannot be executed yet"));
    };
    let accumulation = match spelling.has("F32ADD") {
        true => Accumulation::Single,
        false => Accumulation::Element,
    };
    let action = Action::LoadReduce(operator, kind, accumulation);
    let mut operation = operation(spelling, Space::Global, action, 0)?;
    let destination = destination(spelling)?;
    operation.element = kind.element();
    operation.elements = elements;
    let words = (kind.bytes() / 4) as u16;
    for (index, slot) in (0..).zip(&mut operation.data[..usize::from(elements)]) {
        *slot = destination.map(|first| first + index * words);
    }
    Ok(finish(operation, destination, 0))
}

pub(super) fn finish_atomic(
    spelling: &Spelling<'_>,
    space: Space,
    action: Action,
    kind: AtomicType,
    destination: Option<u16>,
) -> Result<Instruction, BindError> {
    let mut operation = operation(spelling, space, action, 0)?;
    operation.element = kind.element();
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
