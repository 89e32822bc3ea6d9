//! Copies from global to shared memory.

use lockstep_isa::addresses::Addresses;
use lockstep_isa::memory::{BYTES_BY_ADDRESS, MemoryOperation, Space};
use lockstep_isa::warp_register::{LANES, lanes_of};
use lockstep_isa::{Mask, Operand};

use super::describe::{access_bytes, describe, illegal};
use crate::check::outside::{self, Outside};
use crate::check::race::{self, AccessKind};
use crate::check::uninitialised;
use crate::fault::FaultKind;
use crate::memory::SECTOR;
use crate::sm::lsu::outcome::Traffic;
use crate::sm::problem::Problem;
use crate::sm::site::Site;

/// Global to shared memory. The values move at issue; programs wait for the copy before they
/// look.
pub(super) fn copy_to_shared(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    copied: Mask,
    addresses: &Addresses,
) -> Result<(), Problem> {
    let bytes = access_bytes(operation);
    let given = addresses.lanes;
    let beginnings = (operation.values[1] == BYTES_BY_ADDRESS).then(|| {
        let beginning = |address: u64| address - address % u64::from(bytes);
        Addresses::of(given.map(beginning), bytes)
    });
    let addresses = beginnings.as_ref().unwrap_or(addresses);
    let mut sizes: [u32; LANES] = match operation.values[1] {
        Operand::None => [bytes; LANES],
        BYTES_BY_ADDRESS => given.map(|address| bytes - (address % u64::from(bytes)) as u32),
        _ => site.port.values[1].0.map(|size| size.min(bytes)),
    };
    lanes_of(!copied).for_each(|lane| sizes[lane] = 0);
    let reading = lanes_of(execute)
        .filter(|lane| sizes[*lane] > 0)
        .fold(0, |mask: Mask, lane| mask | 1 << lane);
    check_source(site, operation, reading, addresses, bytes, &sizes)?;
    site.port.found.find(addresses, reading, bytes);
    let found = site.port.found;
    if !site.warp.released
        && found
            .sectors()
            .iter()
            .any(|s| site.port.in_flight.holds(*s))
    {
        site.port.done.order_first = true;
        return Ok(());
    }
    if site.port.checks.initialised {
        let what = describe(operation);
        let size = |lane: usize| sizes[lane];
        uninitialised::check_reads(site, reading, &addresses.lanes, size, &what);
    }
    site.block.counters.l1_sectors += found.count as u64;
    site.port.read_sectors(&found);
    let mut pieces = Vec::new();
    for lane in lanes_of(execute) {
        let [base, uniform, offset] = [0, 2, 3].map(|part| site.port.values[part].0[lane]);
        let mut to = u64::from(base.wrapping_add(uniform).wrapping_add(offset));
        if let Some(member) = &site.block.cluster
            && to >> 24 == u64::from(member.rank)
        {
            to &= 0xff_ffff;
        }
        let end = to + u64::from(bytes);
        if end > site.block.shared.len() as u64 {
            return Err(illegal(site, operation, lane, to, Space::Shared));
        }
        if site.block.race.is_some() {
            pieces.push((lane, to as u32, bytes));
        }
        let target = &mut site.block.shared[to as usize..end as usize];
        let size = sizes[lane] as usize;
        if size > 0 {
            let at = (addresses.lanes[lane] % SECTOR) as usize;
            let sector = &site.port.buffer[usize::from(found.index[lane])];
            target[..size].copy_from_slice(&sector[at..at + size]);
        }
        target[size..].fill(0);
    }
    if !pieces.is_empty() {
        race::hooks::pieces(site, AccessKind::Copy, &pieces);
    }
    site.port.done.traffic = Traffic::Global { write: false };
    Ok(())
}

/// Whether lanes may read what they copy.
fn check_source(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    reading: Mask,
    addresses: &Addresses,
    bytes: u32,
    sizes: &[u32; LANES],
) -> Result<(), Problem> {
    let bad = addresses.misaligned(reading, bytes);
    if bad != 0 {
        let lane = bad.trailing_zeros() as usize;
        let kind = FaultKind::Misaligned {
            what: describe(operation),
            address: addresses.lanes[lane],
            bytes,
        };
        return Err(Problem { lane, kind });
    }
    if site.port.invalid_lane(addresses, reading, bytes).is_some()
        && let Some(lane) = stopping_lane(site, reading, addresses, bytes, sizes)
    {
        return Err(illegal(
            site,
            operation,
            lane,
            addresses.lanes[lane],
            Space::Global,
        ));
    }
    Ok(())
}

/// The first lane that must stop the kernel, of lanes that read as many bytes as `sizes` says, some of them where no
/// allocation is.
#[cold]
fn stopping_lane(
    site: &mut Site<'_, '_>,
    reading: Mask,
    addresses: &Addresses,
    bytes: u32,
    sizes: &[u32; LANES],
) -> Option<usize> {
    let what = "copy of global memory";
    for size in (1..=bytes).rev() {
        let lanes = lanes_of(reading)
            .filter(|lane| sizes[*lane] == size)
            .fold(0, |mask: Mask, lane| mask | 1 << lane);
        if let Outside::Stops(lane) = outside::look(site, lanes, addresses, size, what, false) {
            return Some(lane);
        }
    }
    None
}
