//! Asynchronous stores and reductions to shared memory of the cluster: `STAS`, `REDAS`.

use super::super::bind::{BindError, Spelling};
use super::atomic::atomic_kind;
use super::{address, finish, memory_operand, operation, values};
use crate::{
    instruction::Instruction,
    memory::{Action, MemoryOperation, Space},
};

/// `STAS [R.64], R`.
pub(super) fn store_async(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let operation = operation(spelling, Space::Shared, Action::StoreAsync, 0)?;
    finished(spelling, operation)
}

/// `REDAS.op [R.64], R`.
pub(super) fn reduce_async(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let Some((operator, kind)) = atomic_kind(spelling) else {
        return Ok(spelling.unsupported("is a reduction that cannot be executed yet"));
    };
    let action = Action::ReduceAsync(operator, kind);
    let mut operation = operation(spelling, Space::Shared, action, 0)?;
    operation.element = kind.element();
    finished(spelling, operation)
}

fn finished(
    spelling: &Spelling<'_>,
    mut operation: MemoryOperation,
) -> Result<Instruction, BindError> {
    // The address and the barrier are a pair of registers.
    let (_, memory) = memory_operand(spelling, 0)?;
    operation.address = address(spelling, memory, true);
    operation.address.wide = true;
    let values = values(spelling)?;
    let value = values
        .first()
        .ok_or_else(|| BindError::new("stores nothing"))?;
    operation.values[0] = spelling.source(value)?.operand;
    let registers = operation.element.words() as u8;
    Ok(finish(operation, None, registers))
}
