//! Loads, stores, atomics and copies of one warp.
//!
//! Values move here, at issue; what the access costs in time is the business of the issue model,
//! which learns from [`Done`] what was touched. Weak accesses to global memory read contents and
//! the SM's own log and write to that log; strong ones leave for their slice, and so do weak ones
//! whose sector has a strong one under way.
//!
//! Start reading at [`memory`].

use lockstep_isa::lanes::Lanes;
use lockstep_isa::memory::{
    Action, AtomicOperation, AtomicType, Element, MemoryOperation, Scope, Space, Strength,
    classify_generic, misaligned,
};
use lockstep_isa::row::{FULL, LANES, lanes_of};
use lockstep_isa::semantics::atomic;
use lockstep_isa::{Instruction, Mask, Operand, Row};

use super::coalesce::coalesce;
use super::port::{NOBODY, Port, Transaction};
use super::site::{Problem, Site};
use crate::fault::FaultKind;
use crate::memory::SECTOR;
use crate::message::{LaneAccess, StrongAction, StrongRequest};

/// What an access touched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traffic {
    /// Nothing, or nothing that takes time.
    None,
    /// Shared memory, in so many passes over its banks.
    Shared {
        /// Passes; 1 without conflicts.
        passes: u32,
        /// Read, modify, write.
        atomic: bool,
    },
    /// A bank of constants.
    Constant,
    /// The threads' own memory.
    Local,
    /// Sectors of global memory in `Port::found`; strong accesses are under way by themselves.
    Global {
        /// Stores.
        write: bool,
    },
}

/// How an access went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Done {
    /// What it touched weakly.
    pub traffic: Traffic,
    /// The transaction whose answers bring values, or [`NOBODY`].
    pub transaction: u32,
    /// Nothing happened yet: strong accesses under way must be answered first.
    pub order_first: bool,
}

impl Done {
    const NOTHING: Self = Self {
        traffic: Traffic::None,
        transaction: NOBODY,
        order_first: false,
    };
}

/// Whether an access is performed at its slice.
#[must_use]
pub fn is_strong(operation: &MemoryOperation) -> bool {
    match operation.action {
        Action::Atomic(..) | Action::Reduce(..) => true,
        Action::Load | Action::Store => {
            matches!(operation.strength, Strength::Strong { scope, .. } if scope > Scope::Block)
        }
        _ => false,
    }
}

/// Carries out a memory instruction for the lanes under its guard.
///
/// # Errors
/// What is wrong with the address of which lane.
pub fn memory(
    site: &mut Site<'_, '_>,
    instruction: &Instruction,
    operation: &MemoryOperation,
) -> Result<Done, Problem> {
    let lanes = site.warp.lanes(site.context, instruction);
    let execute = lanes.execute;
    if execute == 0 || matches!(operation.action, Action::Prefetch | Action::CacheControl) {
        return Ok(Done::NOTHING);
    }
    let addresses = operation.address.evaluate(&lanes);
    let copied = lanes.predicate(instruction.predicates[0]);
    gather_values(&lanes, operation, &mut site.port.values);
    match operation.action {
        Action::LoadMatrix {
            matrices,
            transpose,
        } => {
            return load_matrix(site, operation, execute, &addresses, matrices, transpose);
        }
        Action::StoreMatrix {
            matrices,
            transpose,
        } => {
            return store_matrix(site, operation, execute, &addresses, matrices, transpose);
        }
        Action::CopyToShared => {
            return copy_to_shared(site, operation, execute, copied, &addresses);
        }
        _ => {}
    }
    let bytes = access_bytes(operation);
    let bad = misaligned(&addresses, execute, bytes);
    if bad != 0 {
        let lane = bad.trailing_zeros() as usize;
        return Err(Problem {
            lane,
            kind: FaultKind::Misaligned {
                what: describe(operation),
                address: addresses[lane],
                bytes,
            },
        });
    }
    match operation.space {
        Space::Global => global(site, operation, execute, &addresses),
        Space::Shared => shared(site, operation, execute, &addresses),
        Space::Local => local(site, operation, execute, &addresses),
        Space::Constant { bank } => Ok(constant(site, operation, execute, &addresses, bank)),
        Space::Generic => generic(site, operation, execute, &addresses),
    }
}

/// Bytes that one lane accesses.
fn access_bytes(operation: &MemoryOperation) -> u32 {
    let element = match operation.action {
        Action::Atomic(_, kind) | Action::Reduce(_, kind) => kind.bytes(),
        _ => operation.element.bytes(),
    };
    element * u32::from(operation.elements.max(1))
}

fn describe(operation: &MemoryOperation) -> String {
    let space = match operation.space {
        Space::Global => "global",
        Space::Shared => "shared",
        Space::Local => "local",
        Space::Constant { .. } => "constant",
        Space::Generic => "generic",
    };
    let action = match operation.action {
        Action::Load => "load",
        Action::Store => "store",
        Action::Atomic(..) => "atomic",
        Action::Reduce(..) => "reduction",
        Action::LoadMatrix { .. } => "matrix load",
        Action::StoreMatrix { .. } => "matrix store",
        Action::CopyToShared => "copy to shared memory",
        Action::Prefetch => "prefetch",
        Action::CacheControl => "cache control",
    };
    format!("{space} {action}")
}

fn illegal(
    site: &Site<'_, '_>,
    operation: &MemoryOperation,
    lane: usize,
    address: u64,
    space: Space,
) -> Problem {
    let nearest = match space {
        Space::Shared => Some(0..site.block.shared.len() as u64),
        Space::Local => Some(0..u64::from(site.warp.local.bytes())),
        _ => site.port.contents.nearest(address),
    };
    Problem {
        lane,
        kind: FaultKind::IllegalAddress {
            what: describe(operation),
            address,
            bytes: access_bytes(operation),
            nearest,
        },
    }
}

/// Copies the rows that stores and atomics need, element by element, word by word.
fn gather_values(lanes: &Lanes<'_>, operation: &MemoryOperation, values: &mut [Row; 8]) {
    let elements = usize::from(operation.elements.max(1));
    let (count, rows) = match operation.action {
        Action::Store => (elements, operation.element.rows()),
        Action::Atomic(_, kind) | Action::Reduce(_, kind) => {
            (elements.max(2), kind.bytes().div_ceil(4) as u16)
        }
        Action::StoreMatrix { matrices, .. } => (usize::from(matrices), 1),
        Action::CopyToShared => (4, 1),
        _ => return,
    };
    for (element, operand) in operation.values.iter().take(count).enumerate() {
        for word in 0..rows {
            if let Some(row) = values.get_mut(element * usize::from(rows) + usize::from(word)) {
                *row = lanes.raw(*operand, word);
            }
        }
    }
}

/// Writes what was read into registers. `read` gives the aligned 32-bit word around an address.
#[inline(always)]
fn deliver(
    registers: &mut [Row],
    operation: &MemoryOperation,
    mask: Mask,
    addresses: &[u64; LANES],
    read: impl Fn(usize, u64) -> u32,
) {
    let words = operation.element.rows();
    let bytes = operation.element.bytes();
    for (element, row) in operation.data.iter().enumerate() {
        let Some(row) = *row else { continue };
        if element >= usize::from(operation.elements) {
            break;
        }
        let offset = element as u64 * u64::from(bytes);
        for word in 0..words {
            let destination = &mut registers[usize::from(row + word)];
            let offset = offset + 4 * u64::from(word);
            if bytes >= 4 {
                for lane in lanes_of(mask) {
                    destination.0[lane] = read(lane, addresses[lane] + offset);
                }
            } else {
                for lane in lanes_of(mask) {
                    let address = addresses[lane] + offset;
                    let word = read(lane, address & !3) >> (8 * (address & 3));
                    destination.0[lane] = extend(operation.element, word);
                }
            }
        }
    }
}

fn extend(element: Element, word: u32) -> u32 {
    match element {
        Element::U8 => word & 0xff,
        Element::S8 => word as i8 as u32,
        Element::U16 => word & 0xffff,
        Element::S16 => word as i16 as u32,
        _ => word,
    }
}

/// Hands every value that a store writes to `write`: lane, address, word, bytes of it.
#[inline(always)]
fn emit(
    values: &[Row; 8],
    operation: &MemoryOperation,
    mask: Mask,
    addresses: &[u64; LANES],
    mut write: impl FnMut(usize, u64, u32, usize),
) {
    let words = usize::from(operation.element.rows());
    let bytes = operation.element.bytes() as usize;
    let size = bytes.min(4);
    for lane in lanes_of(mask) {
        for element in 0..usize::from(operation.elements) {
            for word in 0..words {
                let offset = (element * bytes + 4 * word) as u64;
                let value = values[element * words + word].0[lane];
                write(lane, addresses[lane] + offset, value, size);
            }
        }
    }
}

fn generic(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &[u64; LANES],
) -> Result<Done, Problem> {
    let mut offsets = *addresses;
    let (mut in_shared, mut in_local) = (0, 0);
    for lane in lanes_of(execute) {
        let (space, offset) = classify_generic(addresses[lane]);
        offsets[lane] = offset;
        match space {
            Space::Shared => in_shared |= 1 << lane,
            Space::Local => in_local |= 1 << lane,
            _ => {}
        }
    }
    let in_global = execute & !in_shared & !in_local;
    let mut done = Done::NOTHING;
    if in_shared != 0 {
        done = shared(site, operation, in_shared, &offsets)?;
    }
    if in_local != 0 {
        done = local(site, operation, in_local, &offsets)?;
    }
    if in_global != 0 {
        done = global(site, operation, in_global, &offsets)?;
    }
    Ok(done)
}

fn constant(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &[u64; LANES],
    bank: u8,
) -> Done {
    let banks = site.context.banks();
    deliver(
        &mut site.warp.registers,
        operation,
        execute,
        addresses,
        |_, address| banks.word(bank, u32::try_from(address).unwrap_or(u32::MAX & !3)),
    );
    Done {
        traffic: Traffic::Constant,
        ..Done::NOTHING
    }
}

fn local(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &[u64; LANES],
) -> Result<Done, Problem> {
    let bytes = access_bytes(operation);
    if let Some(lane) =
        lanes_of(execute).find(|lane| !site.warp.local.holds(addresses[*lane], bytes))
    {
        return Err(illegal(site, operation, lane, addresses[lane], Space::Local));
    }
    let warp = &mut *site.warp;
    let memory = &mut warp.local;
    match operation.action {
        Action::Load => deliver(
            &mut warp.registers,
            operation,
            execute,
            addresses,
            |lane, address| memory.word(lane, address as u32),
        ),
        Action::Store => emit(
            &site.port.values,
            operation,
            execute,
            addresses,
            |lane, address, value, size| {
                if size == 4 {
                    memory.write_word(lane, address as u32, value);
                } else {
                    memory.write(lane, address as u32, &value.to_le_bytes()[..size]);
                }
            },
        ),
        Action::Atomic(function, kind) | Action::Reduce(function, kind) => {
            for lane in lanes_of(execute) {
                let mut cell = [0; 8];
                let bytes = kind.bytes() as usize;
                memory.read(lane, addresses[lane] as u32, &mut cell[..bytes]);
                let old = u64::from_le_bytes(cell);
                let new = modify(&site.port.values, function, kind, lane, 0, old)?;
                memory.write(lane, addresses[lane] as u32, &new.to_le_bytes()[..bytes]);
                give_old(&mut warp.registers, operation, lane, 0, kind, old);
            }
        }
        _ => {}
    }
    site.block.counters.global_sectors += 4;
    Ok(Done {
        traffic: Traffic::Local,
        ..Done::NOTHING
    })
}

fn shared(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &[u64; LANES],
) -> Result<Done, Problem> {
    let bytes = access_bytes(operation);
    let limit = site.block.shared.len() as u64;
    let outside = |address: u64| {
        address
            .checked_add(u64::from(bytes))
            .is_none_or(|end| end > limit)
    };
    if let Some(lane) = lanes_of(execute).find(|lane| outside(addresses[*lane])) {
        return Err(illegal(site, operation, lane, addresses[lane], Space::Shared));
    }
    let memory = &mut site.block.shared[..];
    let mut is_atomic = false;
    match operation.action {
        Action::Load => deliver(
            &mut site.warp.registers,
            operation,
            execute,
            addresses,
            |_, address| word_of(memory, address),
        ),
        Action::Store => emit(
            &site.port.values,
            operation,
            execute,
            addresses,
            |_, address, value, size| {
                let at = address as usize;
                memory[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
            },
        ),
        Action::Atomic(function, kind) | Action::Reduce(function, kind) => {
            is_atomic = true;
            let size = kind.bytes() as usize;
            for lane in lanes_of(execute) {
                for element in 0..usize::from(operation.elements.max(1)) {
                    let at = addresses[lane] as usize + element * size;
                    let mut cell = [0; 8];
                    cell[..size].copy_from_slice(&memory[at..at + size]);
                    let old = u64::from_le_bytes(cell);
                    let new = modify(&site.port.values, function, kind, lane, element, old)?;
                    memory[at..at + size].copy_from_slice(&new.to_le_bytes()[..size]);
                    give_old(
                        &mut site.warp.registers,
                        operation,
                        lane,
                        element,
                        kind,
                        old,
                    );
                }
            }
        }
        _ => {}
    }
    site.block.counters.shared_accesses += 1;
    Ok(Done {
        traffic: Traffic::Shared {
            passes: bank_passes(site.timed, addresses, execute, bytes),
            atomic: is_atomic,
        },
        ..Done::NOTHING
    })
}

#[inline(always)]
fn word_of(memory: &[u8], address: u64) -> u32 {
    let at = address as usize;
    memory.get(at..at + 4).map_or(0, |bytes| {
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    })
}

/// Passes over 32 banks of 4 bytes: the most distinct words that one bank is asked for.
fn bank_passes(timed: bool, addresses: &[u64; LANES], execute: Mask, bytes: u32) -> u32 {
    if !timed {
        return 1;
    }
    let words = u64::from(bytes.div_ceil(4));
    let mut seen = [[u64::MAX; LANES]; LANES];
    let mut counts = [0usize; LANES];
    for lane in lanes_of(execute) {
        for word in addresses[lane] / 4..addresses[lane] / 4 + words {
            let bank = word as usize % LANES;
            let known = &mut seen[bank];
            if counts[bank] < LANES && !known[..counts[bank]].contains(&word) {
                known[counts[bank]] = word;
                counts[bank] += 1;
            }
        }
    }
    counts.iter().copied().max().unwrap_or(1).max(1) as u32
}

fn operand_of(values: &[Row; 8], kind: AtomicType, lane: usize, element: usize) -> u64 {
    let rows = kind.bytes().div_ceil(4) as usize;
    let low = values[element * rows].0[lane];
    let high = if rows == 2 {
        values[element * rows + 1].0[lane]
    } else {
        0
    };
    u64::from(low) | u64::from(high) << 32
}

fn modify(
    values: &[Row; 8],
    function: AtomicOperation,
    kind: AtomicType,
    lane: usize,
    element: usize,
    old: u64,
) -> Result<u64, Problem> {
    let operand = operand_of(values, kind, lane, element);
    let second = match function {
        AtomicOperation::CompareAndSwap => operand_of(values, kind, lane, 1),
        _ => 0,
    };
    atomic::apply(function, kind, old, operand, second).ok_or_else(|| no_such(function, kind, lane))
}

fn no_such(function: AtomicOperation, kind: AtomicType, lane: usize) -> Problem {
    Problem {
        lane,
        kind: FaultKind::Unsupported(format!("atomic {function:?} on {kind:?}")),
    }
}

fn give_old(
    registers: &mut [Row],
    operation: &MemoryOperation,
    lane: usize,
    element: usize,
    kind: AtomicType,
    old: u64,
) {
    let (Action::Atomic(..), Some(row)) = (operation.action, operation.data[element]) else {
        return;
    };
    registers[usize::from(row)].0[lane] = old as u32;
    if kind.bytes() == 8 {
        registers[usize::from(row) + 1].0[lane] = (old >> 32) as u32;
    }
}

fn global(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &[u64; LANES],
) -> Result<Done, Problem> {
    let bytes = access_bytes(operation);
    if let Some(lane) = site.port.invalid_lane(addresses, execute, bytes) {
        return Err(illegal(site, operation, lane, addresses[lane], Space::Global));
    }
    site.port.found = coalesce(addresses, execute, bytes);
    let found = &site.port.found;
    site.block.counters.global_sectors += found.count as u64;
    let strong = is_strong(operation);
    let mut leaving = if strong { FULL } else { 0 };
    if !strong && !site.port.in_flight.is_empty() {
        for (index, sector) in found.sectors().iter().enumerate() {
            leaving |= Mask::from(site.port.in_flight.holds(*sector)) << index;
        }
    }
    let mut staying = execute;
    let mut transaction = NOBODY;
    if leaving != 0 {
        let left = leave(site, operation, execute, addresses, leaving)?;
        staying &= !left.lanes;
        transaction = left.transaction;
        if !strong {
            site.block.counters.diverted_accesses += 1;
        }
    }
    match operation.action {
        Action::Load if staying != 0 => weak_load(site, operation, staying, addresses),
        Action::Store if staying != 0 => weak_store(site, operation, staying, addresses),
        _ => {}
    }
    // The sectors that left take their time by themselves.
    if leaving != 0 {
        let found = &mut site.port.found;
        let mut kept = 0;
        for index in 0..found.count {
            if leaving >> index & 1 == 0 {
                found.sectors[kept] = found.sectors[index];
                kept += 1;
            }
        }
        found.count = kept;
    }
    Ok(Done {
        traffic: Traffic::Global {
            write: operation.action == Action::Store,
        },
        transaction,
        order_first: false,
    })
}

#[inline]
fn weak_load(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    mask: Mask,
    addresses: &[u64; LANES],
) {
    let port = &mut *site.port;
    let registers = &mut site.warp.registers;
    let logged = !port.log.is_empty() && port.found.sectors().iter().any(|s| port.log.may_hold(*s));
    if logged {
        let found = port.found;
        port.read_sectors(&found);
        let buffer = &*port.buffer;
        deliver(registers, operation, mask, addresses, |lane, address| {
            word_of(&buffer[usize::from(found.index[lane])], address % SECTOR)
        });
        return;
    }
    if mask == FULL
        && port.found.side_by_side
        && operation.element == Element::B32
        && operation.elements == 1
    {
        if let Some(row) = operation.data[0] {
            let mut bytes = [0; 4 * LANES];
            port.contents.read(addresses[0], &mut bytes);
            let (words, _) = bytes.as_chunks::<4>();
            registers[usize::from(row)] =
                Row(std::array::from_fn(|lane| u32::from_le_bytes(words[lane])));
        }
        return;
    }
    let contents = &*port.contents;
    deliver(registers, operation, mask, addresses, |_, address| {
        contents.word(address)
    });
}

#[inline]
fn weak_store(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    mask: Mask,
    addresses: &[u64; LANES],
) {
    let port = &mut *site.port;
    if mask == FULL
        && port.found.side_by_side
        && operation.element == Element::B32
        && operation.elements == 1
        && addresses[0].is_multiple_of(SECTOR)
    {
        let row = &port.values[0].0;
        for part in 0..4 {
            let mut bytes = [0; SECTOR as usize];
            for word in 0..8 {
                bytes[4 * word..4 * word + 4].copy_from_slice(&row[8 * part + word].to_le_bytes());
            }
            port.log
                .write(port.found.sectors[part], &bytes, FULL, site.now.since);
        }
        return;
    }
    let used = collect_store(site.port, operation, mask, addresses);
    let port = &mut *site.port;
    for index in lanes_of(used) {
        port.log.write(
            port.found.sectors[index],
            &port.buffer[index],
            port.masks[index],
            site.now.since,
        );
    }
}

/// Puts what a store writes into the buffer, sector by sector; later lanes win. Says which
/// sectors were touched.
fn collect_store(
    port: &mut Port,
    operation: &MemoryOperation,
    mask: Mask,
    addresses: &[u64; LANES],
) -> Mask {
    let found = &port.found;
    port.masks[..found.count].fill(0);
    let (buffer, masks) = (&mut port.buffer, &mut port.masks);
    let mut used = 0;
    emit(
        &port.values,
        operation,
        mask,
        addresses,
        |lane, address, value, size| {
            let index = usize::from(found.index[lane]);
            let at = (address % SECTOR) as usize;
            buffer[index][at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
            masks[index] |= (((1u64 << size) - 1) as u32) << at;
            used |= 1 << index;
        },
    );
    used
}

/// Lanes that left for their slices.
struct Left {
    lanes: Mask,
    transaction: u32,
}

/// Sends the accesses to the sectors of `leaving` to their slices.
fn leave(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &[u64; LANES],
    leaving: Mask,
) -> Result<Left, Problem> {
    let found = site.port.found;
    let action = match operation.action {
        Action::Load => StrongAction::Load,
        Action::Store => StrongAction::Store,
        Action::Atomic(function, kind) => StrongAction::Atomic(function, kind),
        Action::Reduce(function, kind) => StrongAction::Reduce(function, kind),
        _ => {
            return Ok(Left {
                lanes: 0,
                transaction: NOBODY,
            });
        }
    };
    if let StrongAction::Atomic(function, kind) | StrongAction::Reduce(function, kind) = action
        && atomic::apply(function, kind, 0, 0, 0).is_none()
    {
        return Err(no_such(function, kind, execute.trailing_zeros() as usize));
    }
    if action == StrongAction::Store {
        collect_store(site.port, operation, execute, addresses);
    }
    let answers = matches!(action, StrongAction::Load | StrongAction::Atomic(..));
    let transaction = if answers {
        site.warp.pending += 1;
        site.port.transactions.open(Transaction {
            warp: site.slot,
            pc: site.warp.convergence.pc(),
            remaining: 0,
        })
    } else {
        NOBODY
    };
    let mut lanes_left = 0;
    let mut sent = 0;
    for index in 0..found.count {
        if leaving >> index & 1 == 0 {
            continue;
        }
        let lanes = found.lanes(index, execute);
        lanes_left |= lanes;
        sent += 1;
        site.block.counters.strong_accesses += 1;
        let mut request = site.port.request(action, found.sectors[index], transaction);
        fill(&mut request, site.port, operation, lanes, addresses, index);
        site.port.send_strong(request, site.now, site.outbox);
    }
    if answers {
        site.port.transactions.expect(transaction, sent);
    }
    Ok(Left {
        lanes: lanes_left,
        transaction,
    })
}

/// Writes into a request what its lanes ask for.
fn fill(
    request: &mut StrongRequest,
    port: &Port,
    operation: &MemoryOperation,
    lanes: Mask,
    addresses: &[u64; LANES],
    index: usize,
) {
    let access = |lane: usize, element: usize, kind: Option<AtomicType>| LaneAccess {
        lane: lane as u8,
        offset: (addresses[lane] % SECTOR) as u8
            + kind.map_or(0, |kind| element as u8 * kind.bytes() as u8),
        element: element as u8,
        operand: kind.map_or(0, |kind| operand_of(&port.values, kind, lane, element)),
        second: 0,
    };
    match request.action {
        StrongAction::Store => {
            request.bytes = port.buffer[index];
            request.mask = port.masks[index];
        }
        StrongAction::Load => {
            request
                .lanes
                .extend(lanes_of(lanes).map(|lane| access(lane, 0, None)));
        }
        StrongAction::Atomic(function, kind) | StrongAction::Reduce(function, kind) => {
            for lane in lanes_of(lanes) {
                for element in 0..usize::from(operation.elements.max(1)) {
                    let mut one = access(lane, element, Some(kind));
                    if function == AtomicOperation::CompareAndSwap {
                        one.second = operand_of(&port.values, kind, lane, 1);
                    }
                    request.lanes.push(one);
                }
            }
        }
    }
}

/// Writes what came back from a slice into registers.
pub fn deliver_answer(registers: &mut [Row], operation: &MemoryOperation, request: &StrongRequest) {
    match request.action {
        StrongAction::Load => {
            let mut addresses = [0; LANES];
            let mut mask = 0;
            for access in &request.lanes {
                addresses[usize::from(access.lane)] = u64::from(access.offset);
                mask |= 1 << access.lane;
            }
            deliver(registers, operation, mask, &addresses, |_, address| {
                word_of(&request.bytes, address)
            });
        }
        StrongAction::Atomic(_, kind) => {
            for access in &request.lanes {
                give_old(
                    registers,
                    operation,
                    usize::from(access.lane),
                    usize::from(access.element),
                    kind,
                    access.operand,
                );
            }
        }
        _ => {}
    }
}

/// Global to shared memory. The values move at issue; programs wait for the copy before they
/// look.
fn copy_to_shared(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    copied: Mask,
    addresses: &[u64; LANES],
) -> Result<Done, Problem> {
    let bytes = access_bytes(operation);
    let mut sizes: [u32; LANES] = match operation.values[1] {
        Operand::None => [bytes; LANES],
        _ => site.port.values[1].0.map(|size| size.min(bytes)),
    };
    lanes_of(!copied).for_each(|lane| sizes[lane] = 0);
    let reading = lanes_of(execute)
        .filter(|lane| sizes[*lane] > 0)
        .fold(0, |mask: Mask, lane| mask | 1 << lane);
    let bad = misaligned(addresses, reading, bytes);
    if bad != 0 {
        let lane = bad.trailing_zeros() as usize;
        let kind = FaultKind::Misaligned {
            what: describe(operation),
            address: addresses[lane],
            bytes,
        };
        return Err(Problem { lane, kind });
    }
    if let Some(lane) = site.port.invalid_lane(addresses, reading, 1) {
        return Err(illegal(site, operation, lane, addresses[lane], Space::Global));
    }
    site.port.found = coalesce(addresses, reading, bytes);
    let found = site.port.found;
    if !site.warp.released
        && found
            .sectors()
            .iter()
            .any(|s| site.port.in_flight.holds(*s))
    {
        return Ok(Done {
            order_first: true,
            ..Done::NOTHING
        });
    }
    site.block.counters.global_sectors += found.count as u64;
    site.port.read_sectors(&found);
    for lane in lanes_of(execute) {
        let [base, uniform, offset] = [0, 2, 3].map(|part| site.port.values[part].0[lane]);
        let to = u64::from(base.wrapping_add(uniform).wrapping_add(offset));
        let end = to + u64::from(bytes);
        if end > site.block.shared.len() as u64 {
            return Err(illegal(site, operation, lane, to, Space::Shared));
        }
        let target = &mut site.block.shared[to as usize..end as usize];
        let size = sizes[lane] as usize;
        if size > 0 {
            let at = (addresses[lane] % SECTOR) as usize;
            let sector = &site.port.buffer[usize::from(found.index[lane])];
            target[..size].copy_from_slice(&sector[at..at + size]);
        }
        target[size..].fill(0);
    }
    Ok(Done {
        traffic: Traffic::Global { write: false },
        ..Done::NOTHING
    })
}

/// Where the 16 bytes of each matrix row are in shared memory.
fn matrix_row(
    site: &Site<'_, '_>,
    operation: &MemoryOperation,
    addresses: &[u64; LANES],
    lane: usize,
) -> Result<usize, Problem> {
    let (space, offset) = match operation.space {
        Space::Generic => classify_generic(addresses[lane]),
        space => (space, addresses[lane]),
    };
    if offset % 16 != 0 {
        let kind = FaultKind::Misaligned {
            what: describe(operation),
            address: addresses[lane],
            bytes: 16,
        };
        return Err(Problem { lane, kind });
    }
    let inside = offset
        .checked_add(16)
        .is_some_and(|end| end <= site.block.shared.len() as u64);
    if space != Space::Shared || !inside {
        return Err(illegal(site, operation, lane, addresses[lane], Space::Global));
    }
    Ok(offset as usize)
}

/// Element `column` of row `row` of an 8 × 8 matrix lies with lane `4 × row + column / 2`, in the
/// half `column % 2` of its register.
fn load_matrix(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &[u64; LANES],
    matrices: u8,
    transpose: bool,
) -> Result<Done, Problem> {
    for matrix in 0..usize::from(matrices.min(4)) {
        let mut rows = [[0u16; 8]; 8];
        for (row, halves) in rows.iter_mut().enumerate() {
            let at = matrix_row(site, operation, addresses, 8 * matrix + row)?;
            let bytes = &site.block.shared[at..at + 16];
            *halves = std::array::from_fn(|column| {
                u16::from_le_bytes([bytes[2 * column], bytes[2 * column + 1]])
            });
        }
        let Some(destination) = operation.data[matrix] else {
            continue;
        };
        for lane in lanes_of(execute) {
            let (row, column) = (lane / 4, 2 * (lane % 4));
            let [low, high] = [0, 1].map(|half| {
                if transpose {
                    rows[column + half][row]
                } else {
                    rows[row][column + half]
                }
            });
            site.warp.registers[usize::from(destination)].0[lane] =
                u32::from(low) | u32::from(high) << 16;
        }
    }
    Ok(matrix_done(site, matrices))
}

fn store_matrix(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &[u64; LANES],
    matrices: u8,
    transpose: bool,
) -> Result<Done, Problem> {
    for matrix in 0..usize::from(matrices.min(4)) {
        for lane in lanes_of(execute) {
            let word = site.port.values[matrix].0[lane];
            for half in 0..2 {
                let (mut row, mut column) = (lane / 4, 2 * (lane % 4) + half);
                if transpose {
                    (row, column) = (column, row);
                }
                let at = matrix_row(site, operation, addresses, 8 * matrix + row)? + 2 * column;
                let value = (word >> (16 * half)) as u16;
                site.block.shared[at..at + 2].copy_from_slice(&value.to_le_bytes());
            }
        }
    }
    Ok(matrix_done(site, matrices))
}

fn matrix_done(site: &mut Site<'_, '_>, matrices: u8) -> Done {
    site.block.counters.shared_accesses += 1;
    Done {
        traffic: Traffic::Shared {
            passes: u32::from(matrices),
            atomic: false,
        },
        ..Done::NOTHING
    }
}
