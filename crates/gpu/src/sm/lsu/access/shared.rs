//! The block's shared memory.

use lockstep_isa::addresses::{Addresses, Layout};
use lockstep_isa::memory::{Action, AtomicOperation, AtomicType, MemoryOperation, Space};
use lockstep_isa::semantics::atomic;
use lockstep_isa::warp_register::{FULL, LANES, lanes_of};
use lockstep_isa::{Mask, Operand, WarpRegister};

use super::describe::{access_bytes, illegal};
use super::registers::{deliver, emit, give_old, modify, operand_of};
use super::vectors::{deliver_together, emit_together, span};
use crate::check::race;
use crate::sm::lsu::outcome::{SharedAtomic, Traffic};
use crate::sm::lsu::shared_banks::{DataArrays, bank_wavefronts, halves, same_word};
use crate::sm::problem::Problem;
use crate::sm::site::Site;

/// Whether an atomic only counts lanes (`ATOMS.POPC.INC`): those of one word are added up first, so that
/// none waits for another (`atomics.cu`, 1.2 cycles for 32 lanes that want one word).
fn is_count(operation: &MemoryOperation) -> bool {
    matches!(
        operation.action,
        Action::Atomic(AtomicOperation::Add, _) | Action::Reduce(AtomicOperation::Add, _)
    ) && operation.data[0].is_none()
        && operation.values[0] == Operand::Immediate(1)
}

pub(super) fn shared(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &Addresses,
) -> Result<(), Problem> {
    let bytes = access_bytes(operation);
    let limit = site.block.shared.len() as u64;
    // One comparison for the warp: no address is above all of them joined, and none that matters above
    // the highest. Who is outside is found only if somebody may be.
    let within = |high: u64| high.saturating_add(u64::from(bytes)) <= limit;
    let places = &addresses.lanes;
    if !within(addresses.joined) && !within(addresses.bounds(execute).1) {
        let outside = |lane: &usize| !within(places[*lane]);
        if let Some(lane) = lanes_of(execute).find(outside) {
            return Err(illegal(site, operation, lane, places[lane], Space::Shared));
        }
    }
    if site.block.race.is_some() {
        race::hooks::shared(site, operation, execute, places, bytes);
    }
    let memory = &mut site.block.shared[..];
    let mut atomic = None;
    match operation.action {
        Action::Load
            if load_together(
                &mut site.warp.registers,
                memory,
                operation,
                execute,
                addresses,
            ) => {}
        Action::Load => {
            // Addresses are aligned, so that one comparison a word is enough.
            let (words, _) = memory.as_chunks::<4>();
            deliver(
                &mut site.warp.registers,
                operation,
                execute,
                places,
                |_, address| match words.get((address / 4) as usize) {
                    Some(word) => u32::from_le_bytes(*word),
                    None => 0,
                },
            );
        }
        Action::Store
            if store_together(&site.port.values, memory, operation, execute, addresses) => {}
        Action::Store => emit(
            &site.port.values,
            operation,
            execute,
            places,
            |_, address, value, size| {
                let at = address as usize;
                memory[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
            },
        ),
        Action::Atomic(function, kind) | Action::Reduce(function, kind) => {
            if site.timed {
                let arrays = site.port.arrays;
                atomic = Some(atomic_time(
                    operation, function, addresses, execute, bytes, arrays,
                ));
            }
            perform_atomic(site, operation, function, kind, execute, places)?;
        }
        _ => {}
    }
    site.block.counters.shared_accesses += 1;
    let (wavefronts, atomic) = match atomic {
        Some((wavefronts, atomic)) => (wavefronts, Some(atomic)),
        None if site.timed => {
            let banks = site.port.arrays.shared_banks;
            (bank_wavefronts(addresses, execute, bytes, banks), None)
        }
        None => (1, None),
    };
    site.port.done.traffic = Traffic::Shared { wavefronts, atomic };
    Ok(())
}

/// Performs an atomic lane by lane: the first lane first.
fn perform_atomic(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    function: AtomicOperation,
    kind: AtomicType,
    execute: Mask,
    addresses: &[u64; LANES],
) -> Result<(), Problem> {
    let values = &site.port.values;
    let memory = &mut site.block.shared[..];
    let size = kind.bytes() as usize;
    for lane in lanes_of(execute) {
        for element in 0..usize::from(operation.elements.max(1)) {
            let at = addresses[lane] as usize + element * size;
            let mut cell = [0; 16];
            cell[..size].copy_from_slice(&memory[at..at + size]);
            let old = u128::from_le_bytes(cell);
            let new = modify(values, function, kind, lane, element, old)?;
            memory[at..at + size].copy_from_slice(&new.to_le_bytes()[..size]);
            let operand = operand_of(values, kind, lane, element);
            let old = atomic::answer(function, kind, old, operand);
            let registers = &mut site.warp.registers;
            give_old(registers, operation, lane, element, kind, old);
        }
    }
    Ok(())
}

/// Loads of lanes that lie together. False, and nothing happened, if they do not.
#[inline]
fn load_together(
    registers: &mut [WarpRegister],
    memory: &[u8],
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &Addresses,
) -> bool {
    let layout = addresses.layout;
    let first = addresses.lanes[0] as usize;
    let bytes = span(layout, access_bytes(operation))
        .and_then(|span| memory.get(first..first.checked_add(span)?));
    bytes.is_some_and(|bytes| deliver_together(registers, operation, execute, layout, bytes))
}

/// Stores of all lanes that lie side by side. False, and nothing happened, if they do not.
#[inline]
fn store_together(
    values: &[WarpRegister; 8],
    memory: &mut [u8],
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &Addresses,
) -> bool {
    if execute != FULL || addresses.layout != Layout::SideBySide {
        return false;
    }
    let first = addresses.lanes[0] as usize;
    let bytes = access_bytes(operation) as usize * LANES;
    let to = memory.get_mut(first..first.saturating_add(bytes));
    to.is_some_and(|to| emit_together(values, operation, to))
}

/// Wavefronts of an atomic, and what else its time depends on. Lanes that want one word take a wavefront each,
/// after those of the banks; accesses of 64 bits are those of two halves of the warp.
fn atomic_time(
    operation: &MemoryOperation,
    function: AtomicOperation,
    addresses: &Addresses,
    execute: Mask,
    bytes: u32,
    arrays: DataArrays,
) -> (u32, SharedAtomic) {
    // Of lanes that test one word, one wins and the others hear so at once: `atomics.cu`, 256 lanes that add
    // fractions to one word, where each success takes 60 cycles, as 8 warps that add to one line do.
    let tests = function == AtomicOperation::CompareAndTest;
    let swaps = function == AtomicOperation::CompareAndSwap;
    let each = if swaps { arrays.cas_wavefronts } else { 1 };
    let alone = tests || is_count(operation);
    let rounds = |lanes| {
        let after_another = if alone {
            0
        } else {
            same_word(&addresses.lanes, lanes)
        };
        bank_wavefronts(addresses, lanes, bytes, arrays.shared_banks) + after_another
    };
    let wide = bytes > 4;
    let rounds = if wide {
        halves(execute).map(rounds).sum::<u32>().max(1)
    } else {
        rounds(execute)
    };
    let atomic = SharedAtomic {
        waiting: each * (rounds - 1),
        swaps: swaps || tests,
        wide,
    };
    (each * rounds, atomic)
}
