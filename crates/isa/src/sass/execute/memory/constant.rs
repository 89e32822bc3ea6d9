//! Constant banks (`LDC`, `ULDC`) and the space of a generic address (`QSPC`).

use super::super::bind::{BindError, Spelling};
use super::{address, element, memory_operand, scheduling};
use crate::{
    instruction::{Instruction, Latency, Operation, SchedulingInfo, Unit},
    lanes::{Lanes, ScratchRegister},
    memory::{Element, Space, classify_generic},
    operand::{Operand, PredicateRegister},
    sass::decoded::{ConstantBank, Index, Value},
    semantics,
    semantics::{
        Modifiers,
        lane_loops::{map_lanes, mask_of},
    },
    warp_register::{FULL, WarpRegister},
};

/// Constant bank and element of [`load_constant`], in the modifiers.
const BANK: u32 = Modifiers::FREE;
const ELEMENT: u32 = Modifiers::FREE + 8;
/// The result is for the whole warp.
const WARP_WIDE: u64 = 1 << (Modifiers::FREE + 12);

/// `LDC`, `ULDC`.
pub(super) fn constant(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let address = spelling
        .operands()
        .iter()
        .find_map(|operand| match operand.value {
            Value::Constant(address) => Some(address),
            _ => None,
        });
    let address = address.ok_or_else(|| BindError::new("names no constant"))?;
    let ConstantBank::Number(bank) = address.bank else {
        return Ok(
            spelling.unsupported("reads a bindless constant bank, which cannot be executed yet")
        );
    };
    let index = match address.index {
        Index::None => None,
        Index::Register(index) => spelling.frame.register(index),
        Index::Uniform(index) => spelling.frame.uniform(index),
    };
    let destination = match spelling.operands().first().map(|operand| operand.value) {
        Some(Value::Register(index)) => spelling.frame.register(index),
        Some(Value::UniformRegister(index)) => spelling.frame.uniform(index),
        _ => return Err(BindError::new("has no destination register")),
    };
    let element = element(spelling);
    let uniform = spelling.name == "ULDC";
    let unit = if uniform {
        Unit::Uniform
    } else {
        Unit::LoadStore
    };
    let mut instruction = Instruction::new(
        Operation::Compute(
            if index.is_none() && element.bytes() >= 4 {
                semantics!(load_constant_words)
            } else {
                semantics!(load_constant)
            }
            .choose(),
        ),
        SchedulingInfo {
            latency: if uniform {
                Latency::Uniform
            } else {
                Latency::Constant
            },
            indexed_constant: index.map(|_| bank),
            ..scheduling(
                unit,
                element.words() as u8,
                [u8::from(index.is_some()), 0, 0, 0],
            )
        },
    );
    instruction.destination = destination;
    instruction.sources[0] = index.map_or(Operand::None, Operand::Register).into();
    instruction.sources[1] = Operand::Immediate(address.offset as u64).into();
    if index.is_none() {
        // Not read by the function: the SM looks for the constant before it issues.
        let offset = address.offset as u32;
        instruction.sources[3] = Operand::Constant { bank, offset }.into();
    }
    instruction.modifiers =
        u64::from(bank) << BANK | (element as u64) << ELEMENT | if uniform { WARP_WIDE } else { 0 };
    Ok(instruction)
}

/// Whole words from a constant bank, at `sources[1]`: one value for all lanes.
#[inline(always)]
pub(super) fn load_constant_words(lanes: &mut Lanes<'_>, i: &Instruction) {
    let bank = (i.modifiers >> BANK) as u8;
    let Operand::Immediate(offset) = i.sources[1].operand else {
        return;
    };
    if i.modifiers & WARP_WIDE != 0 && lanes.execute != 0 {
        lanes.execute = FULL;
    }
    for word in 0..1 + u16::from(i.modifiers >> ELEMENT & 15 == Element::B64 as u64) {
        let at = (offset as u32 & !3).wrapping_add(4 * u32::from(word));
        let value = lanes.constants.word(bank, at);
        lanes.write(i.destination, word, &WarpRegister::splat(value));
    }
}

/// A value from a constant bank, at `sources[0] + sources[1]`.
pub(super) fn load_constant(lanes: &mut Lanes<'_>, i: &Instruction) {
    let bank = (i.modifiers >> BANK) as u8;
    let offset = match i.sources[1].operand {
        Operand::Immediate(offset) => offset as u32,
        _ => 0,
    };
    let kind = i.modifiers >> ELEMENT & 15;
    if i.modifiers & WARP_WIDE != 0 && lanes.execute != 0 {
        lanes.execute = FULL;
    }
    let word = |lanes: &Lanes<'_>, index: u32, next: u32| {
        let at = index.wrapping_add(offset).wrapping_add(4 * next);
        let aligned = lanes.constants.word(bank, at & !3);
        let shifted = aligned >> (8 * (at & 3));
        match kind {
            0 => shifted & 0xff,
            1 => shifted as i8 as u32,
            2 => shifted & 0xffff,
            3 => shifted as i16 as u32,
            _ => aligned,
        }
    };
    // One address for all lanes is by far the most common case.
    let row = |lanes: &Lanes<'_>, next: u32| match i.sources[0].operand {
        Operand::None => WarpRegister::splat(word(lanes, 0, next)),
        operand => {
            let mut room = ScratchRegister::uninit();
            let index = lanes.raw_at(operand, 0, &mut room);
            map_lanes(|n| word(lanes, index.0[n], next))
        }
    };
    let first = row(lanes, 0);
    if kind == 5 {
        // Before the first word is written: its register may be the index.
        let second = row(lanes, 1);
        lanes.write(i.destination, 1, &second);
    }
    lanes.write(i.destination, 0, &first);
}

/// `QSPC`: the base of the address takes one register.
const NARROW_BASE: u64 = 1 << 8;

/// `QSPC`: whether a generic address is in shared or local memory.
pub(super) fn query_space(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let (_, memory) = memory_operand(spelling, 0)?;
    let register = spelling.operands().iter().find_map(|operand| {
        spelling
            .predicate(operand)
            .map(|predicate| predicate.register)
    });
    let base = address(spelling, memory, true);
    let mut instruction = Instruction::new(
        Operation::Compute(in_space),
        SchedulingInfo {
            latency: Latency::Compare,
            ..scheduling(Unit::Alu, 0, [1 + u8::from(base.wide), 0, 2, 0])
        },
    );
    instruction.sources[0] = base.base.into();
    instruction.sources[1] = Operand::Immediate(base.offset as u64).into();
    instruction.sources[2] = base.uniform.into();
    instruction.predicate_destinations[0] = register.unwrap_or(PredicateRegister::True);
    // No block of another SM is in the window of shared memory: what is distributed is the block's own.
    instruction.modifiers = if spelling.has("S") || spelling.has("D") {
        1
    } else if spelling.has("L") {
        2
    } else if spelling.has("G") {
        0
    } else {
        return Ok(spelling.unsupported("asks for a memory space that is not modelled"));
    };
    if !base.wide {
        instruction.modifiers |= NARROW_BASE;
    }
    Ok(instruction)
}

pub(super) fn in_space(lanes: &mut Lanes<'_>, i: &Instruction) {
    let base = if i.modifiers & NARROW_BASE == 0 {
        lanes.pair(i.sources[0].operand)
    } else {
        lanes.raw(i.sources[0].operand, 0).0.map(u64::from)
    };
    let offset = lanes.pair(i.sources[1].operand)[0];
    let offset = lanes.pair(i.sources[2].operand)[0].wrapping_add(offset);
    let wanted = [Space::Global, Space::Shared, Space::Local][(i.modifiers as usize & 3).min(2)];
    let holds = mask_of(|n| classify_generic(base[n].wrapping_add(offset)).0 == wanted);
    lanes.set_predicate(i.predicate_destinations[0], holds);
}
