//! The block's shared memory.

use lockstep_isa::addresses::{Addresses, Layout};
use lockstep_isa::memory::{Action, MemoryOperation, Space};
use lockstep_isa::row::{FULL, LANES, lanes_of};
use lockstep_isa::semantics::atomic;
use lockstep_isa::{Mask, Row};

use super::banks::{bank_passes, same_word};
use super::together::{deliver_together, emit_together, span};
use super::values::{deliver, emit, give_old, modify, operand_of};
use super::{Traffic, access_bytes, illegal};
use crate::sm::site::{Problem, Site};

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
    let memory = &mut site.block.shared[..];
    let mut is_atomic = false;
    let mut conflicts = 0;
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
            is_atomic = true;
            if site.timed {
                conflicts = same_word(places, execute);
            }
            let size = kind.bytes() as usize;
            for lane in lanes_of(execute) {
                for element in 0..usize::from(operation.elements.max(1)) {
                    let at = places[lane] as usize + element * size;
                    let mut cell = [0; 8];
                    cell[..size].copy_from_slice(&memory[at..at + size]);
                    let old = u64::from_le_bytes(cell);
                    let new = modify(&site.port.values, function, kind, lane, element, old)?;
                    memory[at..at + size].copy_from_slice(&new.to_le_bytes()[..size]);
                    let operand = operand_of(&site.port.values, kind, lane, element);
                    let old = atomic::answer(function, kind, old, operand);
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
    site.port.done.traffic = Traffic::Shared {
        passes: if site.timed {
            bank_passes(places, execute, bytes)
        } else {
            1
        },
        conflicts,
        atomic: is_atomic,
    };
    Ok(())
}

/// Loads of lanes that lie together. False, and nothing happened, if they do not.
#[inline]
fn load_together(
    registers: &mut [Row],
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
    values: &[Row; 8],
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
