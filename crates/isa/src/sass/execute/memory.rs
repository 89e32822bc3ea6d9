//! Loads, stores, atomics, barriers of a block and fences of SASS.

use super::bind::{BARRIER_OUTCOME, BindError, Spelling};
use crate::{
    instruction::{
        BlockBarrier, BlockBarrierMode, DependencyBarrier, Instruction, Latency, Mix, Operation,
        SchedulingInfo, Unit,
    },
    lanes::{Lanes, ScratchRegister},
    memory::{
        Action, AddressOperand, AtomicOperation, AtomicType, CachePolicy, Element, FenceOperation,
        MemoryOperation, Order, Scope, Space, Strength, classify_generic,
    },
    operand::{Operand, PredicateRegister},
    sass::decoded::{ConstantBank, Index, MemoryAddress, Operand as Spelled, Value},
    semantics,
    semantics::{
        Modifiers,
        lane_loops::{map_lanes, mask_of},
    },
    warp_register::{FULL, WarpRegister},
};

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
        "LDSM" => matrix_load(spelling)?,
        "STSM" => matrix_store(spelling)?,
        "LDGSTS" => copy_to_shared(spelling)?,
        "QSPC" => query_space(spelling)?,
        "BAR" => barrier(spelling)?,
        "B2R" => barrier_result(spelling)?,
        "MEMBAR" => fence(spelling),
        "CCTL" | "CCTLL" | "ERRBAR" | "CGAERRBAR" | "FENCE" => {
            Instruction::new(Operation::Nothing, shape(Unit::LoadStore, 0, [0; 4]))
        }
        "LDGDEPBAR" | "DEPBAR" => dependence(spelling),
        _ => return Ok(None),
    }))
}

/// `LDGDEPBAR`, `DEPBAR`: no value moves, but the SM waits or counts.
fn dependence(spelling: &Spelling<'_>) -> Instruction {
    let (mut counter, mut at_most, mut also) = (7, 0, 0);
    for operand in spelling.operands() {
        match operand.value {
            Value::Counter(number) => counter = number,
            Value::CounterSet(set) => also = set,
            Value::Immediate(number) => at_most = number.bits as u8,
            _ => {}
        }
    }
    let group = if spelling.name == "DEPBAR" {
        DependencyBarrier::Wait {
            counter,
            at_most,
            also,
        }
    } else {
        DependencyBarrier::Arrive
    };
    let mut instruction = Instruction::new(
        Operation::Nothing,
        SchedulingInfo {
            latency: Latency::Integer,
            ..shape(Unit::Miscellaneous, 0, [0; 4])
        },
    );
    instruction.scheduling.dependency_barrier = group;
    instruction
}

fn shape(unit: Unit, destination_registers: u8, source_registers: [u8; 4]) -> SchedulingInfo {
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
    let row = |row: Option<u16>| row.map_or(Operand::None, Operand::Register);
    let base = memory
        .base
        .map_or(Operand::None, |index| row(spelling.frame.register(index)));
    let uniform = memory
        .uniform
        .map_or(Operand::None, |index| row(spelling.frame.uniform(index)));
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

/// Rows of an address operand.
fn address_rows(operation: &MemoryOperation) -> u8 {
    match operation.address.base {
        Operand::None => 0,
        _ => 1 + u8::from(operation.address.wide),
    }
}

/// Puts the address where the SM's dependence checks look for sources.
fn finish(operation: MemoryOperation, destination: Option<u16>, value_rows: u8) -> Instruction {
    let rows = match operation.action {
        Action::LoadMatrix { matrices, .. } => matrices,
        Action::Load => operation.element.words() as u8,
        Action::Atomic(_, kind) => (kind.bytes() / 4).max(1) as u8,
        _ => 0,
    };
    let source_registers = [address_rows(&operation), value_rows, 0, 0];
    let (base, value) = (operation.address.base, operation.values[0]);
    let mut instruction = Instruction::new(
        Operation::Memory(Box::new(operation)),
        shape(
            Unit::LoadStore,
            if destination.is_some() { rows } else { 0 },
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
    let rows = operation.element.words() as u8;
    Ok(finish(operation, None, rows))
}

/// Operation and type of an atomic, by its words.
fn atomic_kind(spelling: &Spelling<'_>) -> Option<(AtomicOperation, AtomicType)> {
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

fn atomic(spelling: &Spelling<'_>, space: Space) -> Result<Instruction, BindError> {
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

fn reduction(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
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

fn finish_atomic(
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
    let rows = operation.element.words() as u8;
    let mut instruction = finish(operation, destination, rows);
    instruction.sources[2] = third.into();
    instruction.scheduling.source_registers[2] = rows;
    Ok(instruction)
}

fn matrices(spelling: &Spelling<'_>) -> (u8, bool) {
    let count = if spelling.has("4") {
        4
    } else if spelling.has("2") {
        2
    } else {
        1
    };
    (count, spelling.has("MT88"))
}

fn matrix_load(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
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

fn matrix_store(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
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
fn copy_to_shared(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let (_, shared) = memory_operand(spelling, 0)?;
    let to = address(spelling, shared, false);
    let mut operation = operation(spelling, Space::Global, Action::CopyToShared, 1)?;
    operation.values = [
        to.base,
        Operand::None,
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

/// Constant bank and element of [`load_constant`], in the modifiers.
const BANK: u32 = Modifiers::FREE;
const ELEMENT: u32 = Modifiers::FREE + 8;
/// The result is for the whole warp.
const WARP_WIDE: u64 = 1 << (Modifiers::FREE + 12);

/// `LDC`, `ULDC`.
fn constant(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
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
                Latency::SpecialRegister
            },
            ..shape(
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
fn load_constant_words(lanes: &mut Lanes<'_>, i: &Instruction) {
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
fn load_constant(lanes: &mut Lanes<'_>, i: &Instruction) {
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

/// `QSPC`: whether a generic address is in shared or local memory.
fn query_space(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
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
            ..shape(Unit::Alu, 0, [2, 0, 0, 0])
        },
    );
    instruction.sources[0] = base.base.into();
    instruction.sources[1] = Operand::Immediate(base.offset as u64).into();
    instruction.predicate_destinations[0] = register.unwrap_or(PredicateRegister::True);
    instruction.modifiers = if spelling.has("S") {
        1
    } else if spelling.has("L") {
        2
    } else if spelling.has("G") {
        0
    } else {
        return Ok(spelling.unsupported("asks for a memory space that is not modelled"));
    };
    Ok(instruction)
}

fn in_space(lanes: &mut Lanes<'_>, i: &Instruction) {
    let base = lanes.pair(i.sources[0].operand);
    let offset = lanes.pair(i.sources[1].operand)[0];
    let wanted = [Space::Global, Space::Shared, Space::Local][(i.modifiers as usize).min(2)];
    let holds = mask_of(|n| classify_generic(base[n].wrapping_add(offset)).0 == wanted);
    lanes.set_predicate(i.predicate_destinations[0], holds);
}

/// `BAR.SYNC id, threads`, `BAR.ARV`, `BAR.RED`.
fn barrier(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    let mode = if spelling.has("RED") {
        if spelling.has("POPC") {
            BlockBarrierMode::ReducePopulation
        } else if spelling.has("AND") {
            BlockBarrierMode::ReduceAnd
        } else {
            BlockBarrierMode::ReduceOr
        }
    } else if spelling.has("ARV") {
        BlockBarrierMode::Arrive
    } else if spelling.has("SYNC") || spelling.has("SYNCALL") {
        BlockBarrierMode::Sync
    } else {
        return Ok(spelling.unsupported("is a barrier that cannot be executed yet"));
    };
    let mut instruction = Instruction::new(
        Operation::Barrier(BlockBarrier {
            mode,
            aligned: false,
        }),
        SchedulingInfo {
            unit: Unit::Miscellaneous,
            latency: Latency::Barrier,
            mix: Mix::Control,
            source_registers: [1, 1, 0, 0],
            ..SchedulingInfo::default()
        },
    );
    let mut next = 0;
    for operand in spelling.operands() {
        if let Some(predicate) = spelling.predicate(operand) {
            instruction.predicates[0] = predicate;
        } else if next < 2 {
            instruction.sources[next] = spelling.source(operand)?;
            next += 1;
        }
    }
    if next == 1
        && let Operand::Register(_) = instruction.sources[0].operand
    {
        return packed_barrier(spelling, instruction);
    }
    match mode {
        BlockBarrierMode::ReducePopulation => {
            instruction.destination = Some(spelling.frame.barrier_count());
        }
        BlockBarrierMode::ReduceAnd | BlockBarrierMode::ReduceOr => {
            instruction.predicate_destinations[0] = PredicateRegister::Lanes(BARRIER_OUTCOME);
        }
        _ => {}
    }
    Ok(instruction)
}

/// A register alone names the barrier; the number of threads is that of the block.
fn packed_barrier(_: &Spelling<'_>, instruction: Instruction) -> Result<Instruction, BindError> {
    Ok(instruction)
}

/// `B2R.RESULT`: what the last reducing barrier found.
fn barrier_result(spelling: &Spelling<'_>) -> Result<Instruction, BindError> {
    if !spelling.has("RESULT") {
        return Ok(
            spelling.unsupported("reads the state of a barrier, which cannot be executed yet")
        );
    }
    let mut instruction = Instruction::new(
        Operation::Compute(take_outcome),
        SchedulingInfo {
            unit: Unit::Miscellaneous,
            latency: Latency::SpecialRegister,
            destination_registers: 1,
            ..SchedulingInfo::default()
        },
    );
    for operand in spelling.operands() {
        if let Value::Register(index) = operand.value {
            instruction.destination = spelling.frame.register(index);
        } else if let Some(predicate) = spelling.predicate(operand) {
            instruction.predicate_destinations[0] = predicate.register;
        }
    }
    instruction.sources[0] = Operand::Register(spelling.frame.barrier_count()).into();
    Ok(instruction)
}

fn take_outcome(lanes: &mut Lanes<'_>, i: &Instruction) {
    let count = lanes.integer(i.sources[0]);
    lanes.write(i.destination, 0, &count);
    let outcome = lanes.predicates[usize::from(BARRIER_OUTCOME)];
    lanes.set_predicate(i.predicate_destinations[0], outcome);
}

fn fence(spelling: &Spelling<'_>) -> Instruction {
    let operation = FenceOperation {
        scope: scope(spelling),
        sequential: spelling.has("SC"),
    };
    Instruction::new(
        Operation::Fence(operation),
        shape(Unit::LoadStore, 0, [0; 4]),
    )
}
