//! Accesses to surfaces: `SULD`, `SUST`, `SURED`.
//!
//! The memory operand names a vector of coordinates: x, y, then z or the layer. With `.BA`, x counts bytes.

use super::super::bind::{BindError, Spelling};
use super::texture::scheduling;
use super::{element, memory_operand};
use crate::{
    instruction::{Instruction, Operation},
    memory::{AtomicOperation, AtomicType},
    operand::Operand,
    sass::decoded::{Value, ZERO_REGISTER},
    texture::{Bounds, Geometry, TextureAction, TextureOperation},
};

/// Binds one of them.
pub(super) fn surface(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let formatted = spelling.words.first() == Some(&"P");
    if !formatted && !spelling.has("BA") && spelling.name != "SURED" {
        return Ok(spelling.unsupported("counts texels rather than bytes, which is not modelled"));
    }
    let geometry = geometry(spelling)?;
    let bytes = element(spelling).bytes() as u8;
    let Some(action) = action(spelling, formatted, bytes) else {
        return Ok(spelling.unsupported("reduces in a way that is not modelled"));
    };
    let mut operation = TextureOperation::new(action, geometry);
    let (position, memory) = memory_operand(spelling, 0)?;
    let first = memory
        .base
        .ok_or_else(|| BindError::new("has no coordinates"))?;
    let register = |index: u8| {
        let register = spelling.frame.register(index);
        register.map_or(Operand::None, Operand::Register)
    };
    let dimensions = geometry.dimensions;
    for dimension in 0..dimensions {
        operation.coordinates[usize::from(dimension)] = register(first.saturating_add(dimension));
    }
    if geometry.layered {
        operation.layer = register(first.saturating_add(dimensions));
    }
    let before = spelling.operands()[..position].iter().find_map(register_of);
    let mut after: Vec<u8> = spelling.operands()[position + 1..]
        .iter()
        .filter_map(register_of)
        .collect();
    if let Some(handle) = constant_handle(spelling) {
        operation.handle = handle;
    } else {
        let last = after.pop();
        operation.handle = register(last.ok_or_else(|| BindError::new("names no surface"))?);
    }
    if let TextureAction::Load { .. } = action {
        operation.data[0] = before.and_then(|index| spelling.frame.register(index));
    } else if let Some(value) = after.first() {
        let count = match action {
            TextureAction::StoreFormatted { components, .. } => components,
            _ => 1,
        };
        for word in 0..count {
            operation.values[usize::from(word)] = match *value {
                ZERO_REGISTER => Operand::None,
                first => register(first.saturating_add(word)),
            };
        }
    }
    Ok(Instruction::new(
        Operation::Texture(Box::new(operation)),
        scheduling(),
    ))
}

/// What is asked, if it is modelled.
fn action(spelling: &Spelling<'_>, formatted: bool, bytes: u8) -> Option<TextureAction> {
    let bounds = if spelling.has("TRAP") {
        Bounds::Trap
    } else if spelling.has("IGN") {
        Bounds::Zero
    } else {
        Bounds::Clamp
    };
    let components = match () {
        () if spelling.has("R") => 1,
        () if spelling.has("RG") => 2,
        () => 4,
    };
    Some(match spelling.name {
        "SULD" => TextureAction::Load {
            bytes,
            element: bytes,
            bounds,
        },
        "SUST" if formatted => TextureAction::StoreFormatted { components, bounds },
        "SUST" => TextureAction::Store {
            bytes,
            element: bytes,
            bounds,
        },
        _ => {
            let (operation, kind) = reduction(spelling)?;
            TextureAction::Reduce {
                operation,
                kind,
                bounds,
                texels: !spelling.has("BA"),
            }
        }
    })
}

fn register_of(operand: &crate::sass::decoded::Operand) -> Option<u8> {
    match operand.value {
        Value::Register(index) => Some(index),
        _ => None,
    }
}

/// The handle where a uniform register or a constant has it.
fn constant_handle(spelling: &Spelling<'_>) -> Option<Operand> {
    let mut numbers = Vec::new();
    for operand in spelling.operands() {
        match operand.value {
            Value::UniformRegister(index) => {
                let register = spelling.frame.uniform(index);
                return Some(register.map_or(Operand::None, Operand::Register));
            }
            Value::Immediate(number) => numbers.push(number.bits),
            _ => {}
        }
    }
    match numbers.as_slice() {
        [bank, word] => Some(Operand::Constant {
            bank: *bank as u8,
            offset: *word as u32 * 4,
        }),
        _ => None,
    }
}

fn geometry(spelling: &Spelling<'_>) -> Result<Geometry, BindError> {
    let known = spelling.words.iter().find_map(|word| {
        Some(match *word {
            "1D" | "1D_BUFFER" => (1, false),
            "1D_ARRAY" => (1, true),
            "2D" => (2, false),
            "2D_ARRAY" => (2, true),
            "3D" => (3, false),
            _ => return None,
        })
    });
    let (dimensions, layered) = known.ok_or_else(|| BindError::new("has no known shape"))?;
    Ok(Geometry {
        dimensions,
        layered,
        cube: false,
    })
}

fn reduction(spelling: &Spelling<'_>) -> Option<(AtomicOperation, AtomicType)> {
    let kind = spelling.words.iter().find_map(|word| {
        Some(match *word {
            "S32" => AtomicType::S32,
            "U64" => AtomicType::U64,
            "S64" => AtomicType::S64,
            "F16x2" => AtomicType::F16x2,
            "F32" => AtomicType::F32 { flush: true },
            _ => return None,
        })
    });
    let refused = spelling.has("SD32") || spelling.has("SD64");
    let operation = spelling.words.iter().find_map(|word| {
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
    if refused {
        return None;
    }
    Some((operation?, kind.unwrap_or(AtomicType::U32)))
}
