//! Global memory: contents and the SM's own log.

use lockstep_isa::memory::{Action, Element, MemoryOperation, Space};
use lockstep_isa::row::{FULL, LANES, lanes_of};
use lockstep_isa::{Mask, Row};

use super::banks::bank_passes;
use super::strong::leave;
use super::values::{deliver, emit, word_of};
use super::{Traffic, access_bytes, illegal, is_strong};
use crate::memory::SECTOR;
use crate::sm::coalesce::{Coalesced, coalesce};
use crate::sm::port::{NOBODY, Port};
use crate::sm::site::{Problem, Site};

pub(super) fn global(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &[u64; LANES],
) -> Result<(), Problem> {
    let bytes = access_bytes(operation);
    if let Some(lane) = site.port.invalid_lane(addresses, execute, bytes) {
        return Err(illegal(
            site,
            operation,
            lane,
            addresses[lane],
            Space::Global,
        ));
    }
    site.port.found = coalesce(addresses, execute, bytes);
    let found = &site.port.found;
    site.block.counters.global_sectors += found.count as u64;
    let strong = is_strong(operation);
    // A line has every bank once; of several lines, words may lie in the same bank.
    let mut passes = 0;
    if site.timed && operation.action == Action::Load && lines_among(found, FULL) > 1 {
        passes = bank_passes(addresses, execute, bytes) as u16;
    }
    let changed = site.timed && strong && operation.action != Action::Load;
    if changed {
        site.port.changed = *found;
    }
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
    let mut strong_lines = 0;
    if leaving != 0 {
        site.port.partial = 0;
        strong_lines = if site.timed {
            lines_among(&site.port.found, leaving)
        } else {
            0
        };
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
    let done = &mut site.port.done;
    done.traffic = Traffic::Global {
        write: operation.action == Action::Store,
    };
    done.transaction = transaction;
    done.strong_lines = strong_lines;
    done.strong_load = leaving != 0 && operation.action == Action::Load;
    done.passes = passes;
    done.changed = changed;
    Ok(())
}

/// How many lines the sectors of a mask lie in.
fn lines_among(found: &Coalesced, mask: Mask) -> u8 {
    let mut count = 0;
    let mut last = u64::MAX;
    for (index, sector) in found.sectors().iter().enumerate() {
        if mask >> index & 1 != 0 && sector / 4 != last {
            last = sector / 4;
            count += 1;
        }
    }
    count
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
        port.partial = 0;
        return;
    }
    let used = collect_store(site.port, operation, mask, addresses);
    let port = &mut *site.port;
    port.partial = 0;
    for index in lanes_of(used) {
        port.partial |= Mask::from(port.masks[index] != FULL) << index;
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
pub(super) fn collect_store(
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
