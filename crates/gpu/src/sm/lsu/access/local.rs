//! Local memory.

use lockstep_isa::Mask;
use lockstep_isa::memory::{Action, MemoryOperation, Space};
use lockstep_isa::semantics::atomic;
use lockstep_isa::warp_register::{LANES, lanes_of};

use super::describe::{access_bytes, illegal};
use super::registers::{deliver, emit, give_old, modify, operand_of};
use crate::sm::lsu::coalescing::Coalesced;
use crate::sm::lsu::outcome::Traffic;
use crate::sm::lsu::shared_banks::DataArrays;
use crate::sm::problem::Problem;
use crate::sm::site::Site;

/// Sectors of local memory as caches see them: equal words of the lanes of a warp lie
/// side by side. Every warp slot of every SM has its own part, above all other memory.
fn local_sectors(
    addresses: &[u64; LANES],
    execute: Mask,
    bytes: u32,
    slot: u8,
    sm: u32,
) -> Coalesced {
    let mut found = Coalesced::NONE;
    let base = 1 << 50 | (u64::from(sm) * 64 + u64::from(slot)) << 26;
    for word in 0..bytes.div_ceil(4) {
        for lane in lanes_of(execute) {
            let line = addresses[lane] / 4 + u64::from(word);
            let sector = base + (line & 0x00ff_ffff) * 4 + lane as u64 / 8;
            if !found.sectors[..found.count].contains(&sector) && found.count < LANES {
                found.sectors[found.count] = sector;
                found.count += 1;
            }
        }
    }
    found
}

/// Cycles for which an access to local memory keeps L1 busy. Words of lanes lie in banks of
/// their own, so a load takes as long as its words and the lines they lie in; a store takes a cycle a
/// sector and another one for each line that it does not fill (`own_memory.cu`).
fn local_wavefronts(
    addresses: &[u64; LANES],
    execute: Mask,
    bytes: u32,
    write: bool,
    arrays: DataArrays,
) -> u16 {
    let words = u64::from(bytes.div_ceil(4).max(1));
    // Rows of words that lanes touch, each with its sectors.
    let mut rows: [(u64, u8); LANES] = [(0, 0); LANES];
    let mut count = 0;
    for lane in lanes_of(execute) {
        let (row, sector) = (addresses[lane] / 4, 1u8 << (lane / 8));
        match rows[..count].iter_mut().find(|known| known.0 == row) {
            Some(known) => known.1 |= sector,
            None => {
                rows[count] = (row, sector);
                count += 1;
            }
        }
    }
    let cycles = if write {
        let line = |(_, sectors): &(u64, u8)| u64::from(sectors.count_ones() + 1).min(4);
        rows[..count].iter().map(line).sum::<u64>() * words
    } else {
        // All banks deliver a word each in a cycle.
        let delivered = u64::from(execute.count_ones()) * words;
        words
            .max(delivered.div_ceil(u64::from(arrays.l1_banks)))
            .max((count as u64 * words).div_ceil(arrays.load_tags))
    };
    cycles.min(u64::from(u16::MAX)) as u16
}

pub(super) fn local(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &[u64; LANES],
) -> Result<(), Problem> {
    let bytes = access_bytes(operation);
    if let Some(lane) =
        lanes_of(execute).find(|lane| !site.warp.local.holds(addresses[*lane], bytes))
    {
        return Err(illegal(
            site,
            operation,
            lane,
            addresses[lane],
            Space::Local,
        ));
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
                let mut cell = [0; 16];
                let bytes = kind.bytes() as usize;
                memory.read(lane, addresses[lane] as u32, &mut cell[..bytes]);
                let old = u128::from_le_bytes(cell);
                let new = modify(&site.port.values, function, kind, lane, 0, old)?;
                memory.write(lane, addresses[lane] as u32, &new.to_le_bytes()[..bytes]);
                let operand = operand_of(&site.port.values, kind, lane, 0);
                let old = atomic::answer(function, kind, old, operand);
                give_old(&mut warp.registers, operation, lane, 0, kind, old);
            }
        }
        _ => {}
    }
    let write = operation.action == Action::Store;
    if site.timed {
        site.port.done.wavefronts =
            local_wavefronts(addresses, execute, bytes, write, site.port.arrays);
        site.port.found =
            local_sectors(addresses, execute, bytes, site.slot, site.warp.identity.sm);
        site.port.partial = 0;
        site.block.counters.l1_sectors += site.port.found.count as u64;
    } else {
        site.block.counters.l1_sectors += 4;
    }
    site.port.done.traffic = Traffic::Local { write };
    Ok(())
}
