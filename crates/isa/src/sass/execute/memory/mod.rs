//! Loads, stores, atomics, barriers of a block and fences of SASS.

mod atomic;
mod barrier;
mod bulk;
mod cluster;
mod constant;
mod matrix;
mod mbarrier;
mod surface;
mod texture;

use super::bind::{BindError, Spelling};
use crate::{
    instruction::{Instruction, Latency, Mix, Operation, SchedulingInfo, Unit},
    memory::{
        Action, AddressOperand, CachePolicy, Element, MemoryOperation, Order, Scope, Space,
        Strength,
    },
    operand::Operand,
    sass::decoded::{MemoryAddress, Operand as Spelled, Value},
};
use atomic::{atomic, load_reduced, reduction};
use barrier::{barrier, barrier_result, dependence, fence};
use bulk::bulk;
use constant::{constant, query_space};
use matrix::{copy_to_shared, matrix_load, matrix_store};

/// Binds an instruction that touches memory; `None` if this one does not.
///
/// # Errors
/// If operands are missing or of the wrong kind.
pub fn bind(spelling: &Spelling<'_>) -> Result<Option<Instruction>, BindError> {
    Ok(Some(match spelling.name {
        "LDG" => load(spelling, Space::Global)?,
        "LD" => load(spelling, Space::Generic)?,
        "LDS" => load(spelling, Space::Shared)?,
        "LDL" => load(spelling, Space::Local)?,
        "STG" => store(spelling, Space::Global)?,
        "ST" => store(spelling, Space::Generic)?,
        "STS" => store(spelling, Space::Shared)?,
        "STL" => store(spelling, Space::Local)?,
        "LDC" | "ULDC" => constant(spelling)?,
        "ATOM" => atomic(spelling, Space::Generic)?,
        "ATOMG" => atomic(spelling, Space::Global)?,
        "ATOMS" => atomic(spelling, Space::Shared)?,
        "RED" | "REDG" => reduction(spelling)?,
        "LDGMC" => load_reduced(spelling)?,
        "LDSM" => matrix_load(spelling)?,
        "STSM" => matrix_store(spelling)?,
        "LDGSTS" => copy_to_shared(spelling)?,
        "STAS" => cluster::store_async(spelling)?,
        "REDAS" => cluster::reduce_async(spelling)?,
        "SYNCS" => mbarrier::syncs(spelling)?,
        "ARRIVES" => mbarrier::after_copies(spelling)?,
        "QSPC" => query_space(spelling)?,
        "BAR" => barrier(spelling)?,
        "B2R" => barrier_result(spelling)?,
        "MEMBAR" => fence(spelling),
        "UTMALDG" | "UTMASTG" | "UTMAREDG" | "UTMAPF" | "UBLKCP" | "UBLKRED" | "UBLKPF"
        | "UTMACMDFLUSH" => bulk(spelling)?,
        "TEX" | "TLD" | "TLD4" | "TXD" | "TXQ" | "TMML" => texture::texture(spelling)?,
        "SULD" | "SUST" | "SURED" => surface::surface(spelling)?,
        // Tensor maps are read when they are used; there is no copy to be dropped or fetched.
        "CCTL" | "CCTLL" | "UTMACCTL" | "ERRBAR" | "CGAERRBAR" | "FENCE" => {
            Instruction::new(Operation::Nothing, scheduling(Unit::LoadStore, 0, [0; 4]))
        }
        "LDGDEPBAR" | "DEPBAR" => dependence(spelling),
        _ => return Ok(None),
    }))
}

fn scheduling(unit: Unit, destination_registers: u8, source_registers: [u8; 4]) -> SchedulingInfo {
    SchedulingInfo {
        unit,
        latency: Latency::Memory,
        mix: Mix::LoadStore,
        source_registers,
        destination_registers,
        ..SchedulingInfo::default()
    }
}

fn element(spelling: &Spelling<'_>) -> Element {
    let named = spelling.words.iter().find_map(|word| {
        Some(match *word {
            "U8" => Element::U8,
            "S8" => Element::S8,
            "U16" => Element::U16,
            "S16" => Element::S16,
            "64" => Element::B64,
            "128" => Element::B128,
            _ => return None,
        })
    });
    named.unwrap_or(Element::B32)
}

fn strength(spelling: &Spelling<'_>) -> Strength {
    if spelling.has("STRONG") || spelling.has("MMIO") {
        Strength::Strong {
            scope: scope(spelling),
            order: Order::Relaxed,
        }
    } else {
        Strength::Weak
    }
}

fn scope(spelling: &Spelling<'_>) -> Scope {
    if spelling.has("SYS") {
        Scope::System
    } else if spelling.has("GPU") || spelling.has("VC") {
        Scope::Gpu
    } else if spelling.has("SM") || spelling.has("CTA") {
        Scope::Block
    } else {
        Scope::Gpu
    }
}

fn cache(spelling: &Spelling<'_>) -> CachePolicy {
    let named = spelling.words.iter().find_map(|word| {
        Some(match *word {
            "CONSTANT" => CachePolicy::ReadOnly,
            "EF" => CachePolicy::Streaming,
            "LU" => CachePolicy::LastUse,
            "NA" => CachePolicy::NoAllocate,
            _ => return None,
        })
    });
    named.unwrap_or_default()
}

/// The operand that names memory, and its position.
fn memory_operand(
    spelling: &Spelling<'_>,
    nth: usize,
) -> Result<(usize, MemoryAddress), BindError> {
    let mut found = spelling
        .operands()
        .iter()
        .enumerate()
        .filter_map(|(position, operand)| match operand.value {
            Value::Memory(address) => Some((position, address)),
            _ => None,
        });
    found
        .nth(nth)
        .ok_or_else(|| BindError::new("names no memory"))
}

/// How lanes make their addresses. `extended`: global and generic addresses are 64 bits wide.
fn address(spelling: &Spelling<'_>, memory: MemoryAddress, extended: bool) -> AddressOperand {
    let operand = |register: Option<u16>| register.map_or(Operand::None, Operand::Register);
    let base = memory.base.map_or(Operand::None, |index| {
        operand(spelling.frame.register(index))
    });
    let uniform = memory.uniform.map_or(Operand::None, |index| {
        operand(spelling.frame.uniform(index))
    });
    let how = memory.base_modifier.map(|modifier| modifier.name());
    let shift = match how {
        Some("X4") => 2,
        Some("X8") => 3,
        Some("X16") => 4,
        _ => 0,
    };
    let wide = extended && (how == Some("64") || (how.is_none() && memory.uniform.is_none()));
    AddressOperand {
        base,
        wide,
        shift,
        uniform,
        uniform_wide: extended && uniform != Operand::None,
        offset: memory.offset,
    }
}

fn operation(
    spelling: &Spelling<'_>,
    space: Space,
    action: Action,
    nth: usize,
) -> Result<MemoryOperation, BindError> {
    let (_, memory) = memory_operand(spelling, nth)?;
    let extended = match space {
        Space::Global | Space::Generic => {
            spelling.has("E")
                || memory
                    .base_modifier
                    .is_some_and(|modifier| modifier.name() == "64")
        }
        _ => false,
    };
    Ok(MemoryOperation {
        space,
        action,
        element: element(spelling),
        elements: 1,
        address: address(spelling, memory, extended),
        data: [None; 4],
        values: [Operand::None; 4],
        strength: strength(spelling),
        cache: cache(spelling),
    })
}

/// Registers of an address operand.
fn address_registers(operation: &MemoryOperation) -> u8 {
    match operation.address.base {
        Operand::None => 0,
        _ => 1 + u8::from(operation.address.wide),
    }
}

/// Puts the address where the SM's dependence checks look for sources.
fn finish(
    operation: MemoryOperation,
    destination: Option<u16>,
    value_registers: u8,
) -> Instruction {
    let registers = match operation.action {
        Action::LoadMatrix { matrices, .. } => matrices,
        Action::Load | Action::Mbarrier(_) => operation.element.words() as u8,
        Action::Atomic(_, kind) => operation.elements.max(1) * (kind.bytes() / 4).max(1) as u8,
        Action::LoadReduce(_, kind, _) => operation.elements * (kind.bytes() / 4) as u8,
        _ => 0,
    };
    let source_registers = [address_registers(&operation), value_registers, 0, 0];
    let (base, value) = (operation.address.base, operation.values[0]);
    let mut instruction = Instruction::new(
        Operation::Memory(Box::new(operation)),
        scheduling(
            Unit::LoadStore,
            if destination.is_some() { registers } else { 0 },
            source_registers,
        ),
    );
    instruction.destination = destination;
    instruction.sources[0] = base.into();
    instruction.sources[1] = value.into();
    instruction
}

/// The register that receives: the first register operand before the memory operand.
fn destination(spelling: &Spelling<'_>) -> Result<Option<u16>, BindError> {
    let (position, _) = memory_operand(spelling, 0)?;
    let register = spelling.operands()[..position]
        .iter()
        .find_map(|operand| match operand.value {
            Value::Register(index) => Some(index),
            _ => None,
        });
    register
        .map(|index| spelling.frame.register(index))
        .ok_or_else(|| BindError::new("has no destination register"))
}

/// Value operands behind the memory operand.
fn values<'a>(spelling: &'a Spelling<'_>) -> Result<Vec<&'a Spelled>, BindError> {
    let (position, _) = memory_operand(spelling, 0)?;
    let is_value = |operand: &&Spelled| {
        matches!(
            operand.value,
            Value::Register(_) | Value::UniformRegister(_) | Value::Immediate(_)
        )
    };
    Ok(spelling.operands()[position + 1..]
        .iter()
        .filter(is_value)
        .collect())
}

fn load(spelling: &Spelling<'_>, space: Space) -> Result<Instruction, BindError> {
    let mut operation = operation(spelling, space, Action::Load, 0)?;
    let destination = destination(spelling)?;
    operation.data[0] = destination;
    Ok(finish(operation, destination, 0))
}

fn store(spelling: &Spelling<'_>, space: Space) -> Result<Instruction, BindError> {
    let mut operation = operation(spelling, space, Action::Store, 0)?;
    let values = values(spelling)?;
    let value = values
        .first()
        .ok_or_else(|| BindError::new("stores nothing"))?;
    operation.values[0] = spelling.source(value)?.operand;
    let registers = operation.element.words() as u8;
    Ok(finish(operation, None, registers))
}
