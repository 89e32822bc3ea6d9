//! Commands for the TMA engine: `UTMALDG`, `UTMASTG`, `UTMAREDG`, `UTMAPF` (boxes of a tensor), `UBLKCP`,
//! `UBLKRED`, `UBLKPF` (bytes side by side), `UTMACMDFLUSH` (end of a group).
//!
//! Operands are uniform registers side by side: where data lie in shared memory, then the mbarrier where
//! data come in, then coordinates. A further register holds the offsets of a column of pixels or the size in
//! units of 16 bytes below the receivers of a multicast.

use super::super::bind::{BindError, Spelling};
use super::{memory_operand, scheduling};
use crate::{
    bulk::{BulkAction, BulkOperation, Transfer},
    instruction::{Instruction, Operation, Unit},
    memory::{AtomicOperation, AtomicType},
    operand::Operand,
    sass::decoded::Value,
};

/// Binds one of them.
pub(super) fn bulk(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let mut operation = BulkOperation::new(action(spelling)?, true);
    match operation.action {
        BulkAction::Tensor { transfer, rank, .. } => {
            tensor(spelling, &mut operation, transfer, rank)?
        }
        BulkAction::Bytes(transfer) => bytes(spelling, &mut operation, transfer)?,
        BulkAction::Commit | BulkAction::Wait { .. } => {}
    }
    operation.packed = packed(spelling)?;
    Ok(Instruction::new(
        Operation::Bulk(Box::new(operation)),
        scheduling(Unit::LoadStore, 0, [0; 4]),
    ))
}

fn action(spelling: &Spelling<'_>) -> Result<BulkAction, BindError> {
    let multicast = spelling.has("MULTICAST");
    let to_shared = spelling.words.first() == Some(&"S");
    let from_shared = spelling.words.get(1) == Some(&"S");
    let transfer = match spelling.name {
        "UTMACMDFLUSH" => return Ok(BulkAction::Commit),
        "UTMALDG" => Transfer::Load { multicast },
        "UTMASTG" => Transfer::Store,
        "UTMAREDG" => Transfer::Reduce {
            operation: reduction(spelling)?,
            kind: None,
        },
        "UBLKCP" if to_shared && from_shared => Transfer::Shared { reduce: None },
        "UBLKCP" if to_shared => Transfer::Load { multicast },
        "UBLKCP" => Transfer::Store,
        "UBLKRED" if to_shared => Transfer::Shared {
            reduce: Some((reduction(spelling)?, kind(spelling))),
        },
        "UBLKRED" => Transfer::Reduce {
            operation: reduction(spelling)?,
            kind: Some(kind(spelling)),
        },
        _ => Transfer::Prefetch,
    };
    if spelling.name.starts_with("UBLK") {
        return Ok(BulkAction::Bytes(transfer));
    }
    let rank =
        (1..=5).find(|rank| spelling.has(["1D", "2D", "3D", "4D", "5D"][*rank as usize - 1]));
    Ok(BulkAction::Tensor {
        transfer,
        rank: rank.ok_or_else(|| BindError::new("has no dimension"))?,
        im2col: spelling.has("IM2COL"),
    })
}

fn reduction(spelling: &Spelling<'_>) -> Result<AtomicOperation, BindError> {
    let named = spelling.words.iter().find_map(|word| {
        Some(match *word {
            "ADD" => AtomicOperation::Add,
            "MIN" => AtomicOperation::Min,
            "MAX" => AtomicOperation::Max,
            "INC" => AtomicOperation::Increment,
            "DEC" => AtomicOperation::Decrement,
            "AND" => AtomicOperation::And,
            "OR" => AtomicOperation::Or,
            "XOR" => AtomicOperation::Xor,
            _ => return None,
        })
    });
    named.ok_or_else(|| BindError::new("has no reduction"))
}

fn kind(spelling: &Spelling<'_>) -> AtomicType {
    let flush = spelling.has("FTZ");
    let named = spelling.words.iter().find_map(|word| {
        Some(match *word {
            "S32" => AtomicType::S32,
            "U64" => AtomicType::U64,
            "S64" => AtomicType::S64,
            "F16" => AtomicType::F16,
            "BF16" => AtomicType::Bf16,
            "F32" => AtomicType::F32 { flush },
            "F64" => AtomicType::F64,
            _ => return None,
        })
    });
    named.unwrap_or(AtomicType::U32)
}

/// The uniform register so many after the one that the `nth` memory operand names.
fn beside(spelling: &Spelling<'_>, nth: usize, after: u8) -> Result<Operand, BindError> {
    let (_, memory) = memory_operand(spelling, nth)?;
    let first = memory.uniform.or(memory.base);
    let first = first.ok_or_else(|| BindError::new("names no uniform register"))?;
    let register = spelling.frame.uniform(first.saturating_add(after));
    Ok(register.map_or(Operand::None, Operand::Register))
}

fn tensor(
    spelling: &Spelling<'_>,
    operation: &mut BulkOperation,
    transfer: Transfer,
    rank: u8,
) -> Result<(), BindError> {
    let before = match transfer {
        Transfer::Load { .. } => {
            operation.barrier = beside(spelling, 0, 1)?;
            2
        }
        Transfer::Prefetch => 0,
        _ => 1,
    };
    if before > 0 {
        operation.shared = beside(spelling, 0, 0)?;
    }
    for dimension in 0..rank {
        operation.coordinates[usize::from(dimension)] = beside(spelling, 0, before + dimension)?;
    }
    operation.map = beside(spelling, 1, 0)?;
    Ok(())
}

fn bytes(
    spelling: &Spelling<'_>,
    operation: &mut BulkOperation,
    transfer: Transfer,
) -> Result<(), BindError> {
    match transfer {
        Transfer::Load { .. } | Transfer::Shared { .. } => {
            operation.shared = beside(spelling, 0, 0)?;
            operation.barrier = beside(spelling, 0, 1)?;
            let from = beside(spelling, 1, 0)?;
            match transfer {
                Transfer::Load { .. } => operation.global = from,
                _ => operation.source = from,
            }
        }
        Transfer::Prefetch => operation.global = beside(spelling, 0, 0)?,
        Transfer::Store | Transfer::Reduce { .. } => {
            operation.global = beside(spelling, 0, 0)?;
            operation.shared = beside(spelling, 1, 0)?;
        }
    }
    Ok(())
}

/// The register of offsets, size and receivers, if there is one.
fn packed(spelling: &Spelling<'_>) -> Result<Operand, BindError> {
    let mut operands = spelling.operands().iter();
    let found = operands.find(|operand| matches!(operand.value, Value::UniformRegister(_)));
    Ok(match found {
        Some(operand) => spelling.source(operand)?.operand,
        None => Operand::None,
    })
}
