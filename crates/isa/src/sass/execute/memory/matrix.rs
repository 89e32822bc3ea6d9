//! Matrices in shared memory (`LDSM`, `STSM`) and asynchronous copies into it (`LDGSTS`).

use super::super::bind::{BindError, Spelling};
use super::{address, destination, finish, memory_operand, operation, values};
use crate::{
    instruction::Instruction,
    memory::{Action, BYTES_BY_ADDRESS, Element, Space},
    operand::Operand,
};

pub(super) fn matrices(spelling: &Spelling<'_>) -> (u8, bool) {
    let count = if spelling.has("4") {
        4
    } else if spelling.has("2") {
        2
    } else {
        1
    };
    (count, spelling.has("MT88"))
}

pub(super) fn matrix_load(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    if spelling.has("M816") || spelling.has("M832") {
        return Ok(spelling.unsupported("unpacks narrow elements, which cannot be executed yet"));
    }
    let (matrices, transpose) = matrices(spelling);
    let action = Action::LoadMatrix {
        matrices,
        transpose,
    };
    let mut operation = operation(spelling, Space::Shared, action, 0)?;
    operation.element = Element::B32;
    let destination = destination(spelling)?;
    for (word, slot) in operation
        .data
        .iter_mut()
        .enumerate()
        .take(usize::from(matrices))
    {
        *slot = destination.map(|row| row + word as u16);
    }
    Ok(finish(operation, destination, 0))
}

pub(super) fn matrix_store(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let (matrices, transpose) = matrices(spelling);
    let action = Action::StoreMatrix {
        matrices,
        transpose,
    };
    let mut operation = operation(spelling, Space::Shared, action, 0)?;
    operation.element = Element::B32;
    let values = values(spelling)?;
    let first = values
        .first()
        .ok_or_else(|| BindError::new("stores nothing"))?;
    let first = spelling.source(first)?.operand;
    for (word, slot) in operation
        .values
        .iter_mut()
        .enumerate()
        .take(usize::from(matrices))
    {
        *slot = match first {
            Operand::Register(row) => Operand::Register(row + word as u16),
            other => other,
        };
    }
    Ok(finish(operation, None, matrices))
}

/// `LDGSTS [shared], [global], P`: where the predicate does not hold, zeros are written.
pub(super) fn copy_to_shared(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let (_, shared) = memory_operand(spelling, 0)?;
    let to = address(spelling, shared, false);
    let mut operation = operation(spelling, Space::Global, Action::CopyToShared, 1)?;
    operation.values = [
        to.base,
        if spelling.has("ZFILL") {
            BYTES_BY_ADDRESS
        } else {
            Operand::None
        },
        to.uniform,
        Operand::Immediate(to.offset as u64),
    ];
    let mut instruction = finish(operation, None, 1);
    let mut predicates = spelling
        .operands()
        .iter()
        .filter_map(|operand| spelling.predicate(operand));
    if let Some(predicate) = predicates.next_back() {
        instruction.predicates[0] = predicate;
    }
    Ok(instruction)
}
