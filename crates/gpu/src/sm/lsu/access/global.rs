//! Global memory: contents and the SM's own log.

use lockstep_isa::Mask;
use lockstep_isa::addresses::{Addresses, Layout};
use lockstep_isa::memory::{Action, MemoryOperation, Space};
use lockstep_isa::warp_register::{FULL, lanes_of};

use super::describe::{access_bytes, describe, illegal, is_strong, read_only, reads};
use super::multicast;
use super::registers::{deliver, word_of};
use super::store_buffer::collect_store;
use super::strong::leave;
use super::vectors::{deliver_together, emit_together, span};
use crate::check::outside::{self, Outside};
use crate::check::uninitialised;
use crate::memory::SECTOR;
use crate::sm::lsu::coalescing::Coalesced;
use crate::sm::lsu::outcome::Traffic;
use crate::sm::lsu::shared_banks::bank_wavefronts;
use crate::sm::lsu::transactions::NOBODY;
use crate::sm::problem::Problem;
use crate::sm::site::Site;

pub(super) fn global(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &Addresses,
) -> Result<(), Problem> {
    let bytes = access_bytes(operation);
    let moved = match permit(site, operation, execute, addresses, bytes)? {
        Named::AsWritten => None,
        Named::Elsewhere(moved) => Some(moved),
        Named::Multicast(lanes) => return by_multicast(site, operation, execute, lanes, addresses),
    };
    let addresses = moved.as_deref().unwrap_or(addresses);
    let places = &addresses.lanes;
    site.port.found.find(addresses, execute, bytes);
    let found = &site.port.found;
    site.block.counters.l1_sectors += found.count as u64;
    let strong = is_strong(operation);
    // A line has every bank once; of several lines, words may lie in the same bank.
    let mut wavefronts = 0;
    if site.timed && operation.action == Action::Load && lines_among(found, FULL) > 1 {
        wavefronts = bank_wavefronts(addresses, execute, bytes, site.port.arrays.l1_banks) as u16;
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
        let left = leave(site, operation, execute, places, leaving)?;
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
    done.wavefronts = wavefronts;
    done.changed = changed;
    Ok(())
}

/// What the addresses of an access name.
enum Named {
    /// The memory that they are of.
    AsWritten,
    /// Memory at other addresses, those of some lanes.
    Elsewhere(Box<Addresses>),
    /// Multicast objects, those of these lanes.
    Multicast(Mask),
}

/// An access by some lanes to multicast objects, and by the others to memory.
#[cold]
#[inline(never)]
fn by_multicast(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    lanes: Mask,
    addresses: &Addresses,
) -> Result<(), Problem> {
    multicast::change(site, operation, lanes, addresses)?;
    match execute & !lanes {
        0 => Ok(()),
        // The last one says what it cost.
        rest => global(site, operation, rest, addresses),
    }
}

/// Whether lanes may make an access, and what checks find about it. Gives other addresses if those of some lanes are of
/// memory that other bytes stand for.
#[inline]
fn permit(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &Addresses,
    bytes: u32,
) -> Result<Named, Problem> {
    let mut moved = None;
    if site.port.invalid_lane(addresses, execute, bytes).is_some() {
        let lanes = multicast::lanes_in(site, execute, addresses);
        if lanes != 0 {
            return Ok(Named::Multicast(lanes));
        }
        if let Some(named) = site.port.resolve_aliases(addresses, execute, bytes) {
            let found = permit(site, operation, execute, &named, bytes)?;
            return Ok(match found {
                Named::AsWritten => Named::Elsewhere(Box::new(named)),
                found => found,
            });
        }
        let (what, loads) = (describe(operation), operation.action == Action::Load);
        match outside::look(site, execute, addresses, bytes, &what, loads) {
            Outside::Stops(lane) => {
                let address = addresses.lanes[lane];
                return Err(illegal(site, operation, lane, address, Space::Global));
            }
            Outside::Passes => {}
            Outside::Reads(elsewhere) => moved = Some(elsewhere),
        }
    }
    if operation.action != Action::Load
        && let Some(lane) = site.port.read_only_lane(addresses, execute)
    {
        return Err(read_only(site, operation, lane, addresses.lanes[lane]));
    }
    if site.port.checks.initialised && reads(operation) {
        let places = &moved.as_deref().unwrap_or(addresses).lanes;
        let what = describe(operation);
        uninitialised::check_reads(site, execute, places, |_| bytes, &what);
    }
    Ok(moved.map_or(Named::AsWritten, Named::Elsewhere))
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
    addresses: &Addresses,
) {
    let port = &mut *site.port;
    let registers = &mut site.warp.registers;
    let logged = !port.log.is_empty() && port.found.sectors().iter().any(|s| port.log.may_hold(*s));
    let places = &addresses.lanes;
    let layout = addresses.layout;
    // With all lanes, or all in one place, what lies together is what the sectors hold.
    let span =
        span(layout, access_bytes(operation)).filter(|_| mask == FULL || layout == Layout::Same);
    if logged {
        let found = port.found;
        port.read_sectors(&found);
        let buffer = &*port.buffer;
        let first = (places[0] % SECTOR) as usize;
        if let Some(span) = span
            && let Some(bytes) = buffer.as_flattened().get(first..first + span)
            && deliver_together(registers, operation, mask, layout, bytes)
        {
            return;
        }
        deliver(registers, operation, mask, places, |lane, address| {
            word_of(&buffer[usize::from(found.index[lane])], address % SECTOR)
        });
        return;
    }
    let contents = &*port.contents;
    if let Some(span) = span {
        // Whatever the buffer held is overwritten.
        let bytes = &mut port.buffer.as_flattened_mut()[..span];
        contents.read(places[0], bytes);
        if deliver_together(registers, operation, mask, layout, bytes) {
            return;
        }
    }
    deliver(registers, operation, mask, places, |_, address| {
        contents.word(address)
    });
}

#[inline]
fn weak_store(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    mask: Mask,
    addresses: &Addresses,
) {
    let port = &mut *site.port;
    let first = addresses.lanes[0];
    if mask == FULL && addresses.layout == Layout::SideBySide && first.is_multiple_of(SECTOR) {
        let buffer = port.buffer.as_flattened_mut();
        if emit_together(&port.values, operation, buffer) {
            for index in 0..port.found.count {
                let (sector, bytes) = (port.found.sectors[index], &port.buffer[index]);
                port.log.write(sector, bytes, FULL, site.now.since);
            }
            port.partial = 0;
            return;
        }
    }
    let addresses = &addresses.lanes;
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
