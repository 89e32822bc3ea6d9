//! The block's shared memory.

use lockstep_isa::Mask;
use lockstep_isa::memory::{Action, MemoryOperation, Space};
use lockstep_isa::row::{LANES, lanes_of};
use lockstep_isa::semantics::atomic;

use super::banks::{bank_passes, same_word};
use super::values::{deliver, emit, give_old, modify, operand_of};
use super::{Traffic, access_bytes, illegal};
use crate::sm::site::{Problem, Site};

pub(super) fn shared(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &[u64; LANES],
) -> Result<(), Problem> {
    let bytes = access_bytes(operation);
    let limit = site.block.shared.len() as u64;
    // One comparison for the warp: no address is above all of them joined. The highest is found only
    // if that is too high, who is outside only if somebody is.
    let within = |high: u64| high.saturating_add(u64::from(bytes)) <= limit;
    let joined = addresses.iter().fold(0, |joined, address| joined | address);
    let highest = || lanes_of(execute).map(|lane| addresses[lane]).max();
    if !within(joined) && !highest().is_none_or(within) {
        let outside = |lane: &usize| addresses[*lane].saturating_add(u64::from(bytes)) > limit;
        let lane = lanes_of(execute).find(outside).unwrap_or(0);
        return Err(illegal(
            site,
            operation,
            lane,
            addresses[lane],
            Space::Shared,
        ));
    }
    let memory = &mut site.block.shared[..];
    let mut is_atomic = false;
    let mut conflicts = 0;
    match operation.action {
        Action::Load => {
            // Addresses are aligned, so that one comparison a word is enough.
            let (words, _) = memory.as_chunks::<4>();
            deliver(
                &mut site.warp.registers,
                operation,
                execute,
                addresses,
                |_, address| match words.get((address / 4) as usize) {
                    Some(word) => u32::from_le_bytes(*word),
                    None => 0,
                },
            );
        }
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
            if site.timed {
                conflicts = same_word(addresses, execute);
            }
            let size = kind.bytes() as usize;
            for lane in lanes_of(execute) {
                for element in 0..usize::from(operation.elements.max(1)) {
                    let at = addresses[lane] as usize + element * size;
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
            bank_passes(addresses, execute, bytes)
        } else {
            1
        },
        conflicts,
        atomic: is_atomic,
    };
    Ok(())
}
