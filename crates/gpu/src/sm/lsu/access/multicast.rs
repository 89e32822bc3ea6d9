//! Accesses to multicast objects: one of a warp becomes one for each member, performed where its memory is.
//!
//! A store or a reduction leaves as strong accesses to the sectors of all members, weak ones too: each is performed at
//! the slice that the member's sector has on this GPU, so that it has its place in the one order of memory as any
//! access to a peer has. `LDGMC` leaves as strong loads; what they bring is kept until all of an instruction have
//! come, and is then reduced in the order of the members.
//!
//! Refused with a sentence: loads, atomics that return something, `LDGMC` elsewhere, lanes of one instruction in
//! several objects, and addresses to which some member has bound nothing.
//!
//! Start reading at [`change`] and [`load_reduced`].

use std::sync::Arc;

use lockstep_isa::addresses::Addresses;
use lockstep_isa::memory::{Action, MemoryOperation};
use lockstep_isa::semantics::{atomic, multicast};
use lockstep_isa::warp_register::{LANES, lanes_of};
use lockstep_isa::{Mask, WarpRegister};

use super::describe::{access_bytes, describe};
use super::registers::no_such;
use super::store_buffer::collect_store;
use super::strong::{fill, of_line};
use crate::fault::FaultKind;
use crate::memory::{LINE, MulticastMapping, Places, SECTOR};
use crate::message::{StrongAction, StrongRequest};
use crate::sm::lsu::outcome::Traffic;
use crate::sm::lsu::transactions::NOBODY;
use crate::sm::problem::Problem;
use crate::sm::site::Site;

/// Bytes that a lane loads at most.
const MOST_BYTES: usize = 16;

/// What has come for an instruction that reduces over members.
#[derive(Clone, Debug)]
pub struct Gathered {
    transaction: u32,
    /// The values of each member, a row of bytes a lane.
    members: Vec<[[u8; MOST_BYTES]; LANES]>,
    lanes: Mask,
}

/// The lanes whose addresses are of multicast objects.
#[cold]
#[inline(never)]
pub(super) fn lanes_in(site: &Site<'_, '_>, execute: Mask, addresses: &Addresses) -> Mask {
    let all = lanes_of(execute).map(|lane| (lane, addresses.lanes[lane]));
    site.port.contents.find_multicasts(all)
}

/// A store or a reduction by lanes whose addresses are of a multicast object.
pub(super) fn change(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &Addresses,
) -> Result<(), Problem> {
    let object = object_of(site, operation, execute, addresses)?;
    let action = match operation.action {
        Action::Store => StrongAction::Store,
        Action::Reduce(function, kind) => {
            if atomic::apply(function, kind, 0, 0, 0).is_none() {
                return Err(no_such(function, kind, execute.trailing_zeros() as usize));
            }
            StrongAction::Reduce(function, kind)
        }
        _ => {
            let lane = execute.trailing_zeros() as usize;
            let why = "its memory is reached by multimem.ld_reduce, multimem.st and multimem.red";
            return Err(problem(operation, lane, addresses.lanes[lane], why));
        }
    };
    if !object.writable {
        let lane = execute.trailing_zeros() as usize;
        let why = "it is mapped for reading only";
        return Err(problem(operation, lane, addresses.lanes[lane], why));
    }
    let places = find(site, operation, &object, execute, addresses)?;
    if action == StrongAction::Store {
        collect_store(site.port, operation, execute, &addresses.lanes);
    }
    send(
        site,
        operation,
        action,
        execute,
        &addresses.lanes,
        &places,
        NOBODY,
    );
    site.port.partial = 0;
    let lines = lines(site.port.found.sectors());
    site.port.found.count = 0;
    let done = &mut site.port.done;
    done.traffic = Traffic::Global {
        write: action == StrongAction::Store,
    };
    done.strong_lines = lines;
    Ok(())
}

/// `LDGMC`.
pub(super) fn load_reduced(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &Addresses,
) -> Result<(), Problem> {
    let Action::LoadReduce(function, kind, accumulation) = operation.action else {
        return Ok(());
    };
    let object = object_of(site, operation, execute, addresses)?;
    if multicast::reduce(function, kind, accumulation, [0, 0].into_iter()).is_none() {
        return Err(no_such(function, kind, execute.trailing_zeros() as usize));
    }
    let places = find(site, operation, &object, execute, addresses)?;
    let transaction = site.open_transaction();
    let row = [[0; MOST_BYTES]; LANES];
    site.port.gathered.push(Gathered {
        transaction,
        members: vec![row; object.members.len()],
        lanes: execute,
    });
    let load = StrongAction::Load;
    let sent = send(
        site,
        operation,
        load,
        execute,
        &addresses.lanes,
        &places,
        transaction,
    );
    site.port.transactions.expect(transaction, sent);
    let lines = lines(site.port.found.sectors());
    site.port.found.count = 0;
    let done = &mut site.port.done;
    done.traffic = Traffic::Global { write: false };
    done.transaction = transaction;
    done.strong_lines = lines;
    done.strong_load = true;
    Ok(())
}

/// The one object that all lanes name.
fn object_of(
    site: &Site<'_, '_>,
    operation: &MemoryOperation,
    execute: Mask,
    addresses: &Addresses,
) -> Result<Arc<MulticastMapping>, Problem> {
    let mut found: Option<Arc<MulticastMapping>> = None;
    for lane in lanes_of(execute) {
        let address = addresses.lanes[lane];
        if let Some(known) = &found
            && known.addresses.contains(&address)
        {
            continue;
        }
        let why = match (site.port.contents.find_multicast(address), &found) {
            (Some(object), None) => {
                found = Some(object);
                continue;
            }
            (Some(_), Some(_)) => {
                "other lanes name another multicast object, which is not modelled"
            }
            (None, _) => "no multicast object that this GPU may use is mapped there",
        };
        return Err(problem(operation, lane, address, why));
    }
    found.ok_or_else(|| problem(operation, 0, 0, "no lane takes part"))
}

/// The sectors of the lanes, in [`Port::found`](crate::sm::lsu::port::Port::found), and where each is on all members.
fn find(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    object: &MulticastMapping,
    execute: Mask,
    addresses: &Addresses,
) -> Result<Vec<Places>, Problem> {
    site.port
        .found
        .find(addresses, execute, access_bytes(operation));
    let found = &site.port.found;
    site.block.counters.l1_sectors += found.count as u64;
    let places = found.sectors().iter().enumerate().map(|(index, sector)| {
        object.places(sector * SECTOR).map_err(|gpu| {
            let lane = found.lanes(index, execute).trailing_zeros() as usize % LANES;
            let why = format!("nothing is bound there on GPU {gpu}, see cuMulticastBindMem");
            problem(operation, lane, addresses.lanes[lane], &why)
        })
    });
    places.collect()
}

/// Sends an access for each sector of each member; says how many.
fn send(
    site: &mut Site<'_, '_>,
    operation: &MemoryOperation,
    action: StrongAction,
    execute: Mask,
    addresses: &[u64; LANES],
    places: &[Places],
    transaction: u32,
) -> u16 {
    let found = site.port.found;
    let mut sent = 0;
    for (index, places) in places.iter().enumerate() {
        let lanes = found.lanes(index, execute);
        let members = places.all();
        for (member, place) in members.iter().enumerate() {
            let sector = place / SECTOR;
            let mut request = site.port.request(action, sector, transaction);
            request.tag = site.block.tag;
            request.of_line = of_line(found.sectors(), Mask::MAX, index);
            (request.member, request.members) = (member as u8, members.len() as u8);
            fill(&mut request, site.port, operation, lanes, addresses, index);
            site.block.counters.strong_accesses += 1;
            sent += 1;
            let warp = site.slot;
            site.port
                .send_strong(request, warp, || 1, *site.now, site.outbox);
        }
    }
    sent
}

/// Lines that sectors lie in, those of a line beside each other.
fn lines(sectors: &[u64]) -> u8 {
    let line = |sector: &u64| sector / (LINE / SECTOR);
    let changes = sectors
        .windows(2)
        .filter(|pair| line(&pair[0]) != line(&pair[1]));
    changes.count() as u8 + 1
}

impl Gathered {
    /// Keeps what one member has for some lanes.
    fn keep(&mut self, request: &StrongRequest, bytes: usize) {
        let Some(rows) = self.members.get_mut(usize::from(request.member)) else {
            return;
        };
        for access in &request.lanes {
            let at = usize::from(access.offset);
            if let Some(value) = request.bytes.get(at..at + bytes) {
                rows[usize::from(access.lane)][..bytes].copy_from_slice(value);
            }
        }
    }

    /// Reduces over the members and writes registers.
    fn reduce(&self, registers: &mut [WarpRegister], operation: &MemoryOperation) {
        let Action::LoadReduce(function, kind, accumulation) = operation.action else {
            return;
        };
        let bytes = kind.bytes() as usize;
        let words = kind.bytes().div_ceil(4) as usize;
        for (element, row) in operation.data.iter().enumerate() {
            let Some(row) = *row else { continue };
            let at = element * bytes;
            for lane in lanes_of(self.lanes) {
                let values = self.members.iter().map(|rows| {
                    let mut value = [0; MOST_BYTES];
                    value[..bytes].copy_from_slice(&rows[lane][at..at + bytes]);
                    u128::from_le_bytes(value)
                });
                let value = multicast::reduce(function, kind, accumulation, values);
                let value = value.expect("the instruction was asked for its reduction before");
                for (word, register) in registers[usize::from(row)..][..words]
                    .iter_mut()
                    .enumerate()
                {
                    register.0[lane] = (value >> (32 * word)) as u32;
                }
            }
        }
    }
}

/// An answer to a load of one member has come; with the last of the instruction registers are written.
pub fn deliver_member(
    gathered: &mut Vec<Gathered>,
    registers: &mut [WarpRegister],
    operation: &MemoryOperation,
    request: &StrongRequest,
    is_last: bool,
) {
    let known = gathered
        .iter()
        .position(|one| one.transaction == request.transaction);
    let Some(position) = known else {
        return;
    };
    gathered[position].keep(request, access_bytes(operation) as usize);
    if is_last {
        gathered.swap_remove(position).reduce(registers, operation);
    }
}

/// What is wrong with an access to a multicast object.
fn problem(operation: &MemoryOperation, lane: usize, address: u64, why: &str) -> Problem {
    let kind = FaultKind::Multicast {
        what: describe(operation),
        address,
        why: why.to_owned(),
    };
    Problem { lane, kind }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_where_they_change() {
        assert_eq!(lines(&[0, 1, 2, 3]), 1);
        assert_eq!(lines(&[3, 4, 5, 8]), 3);
    }
}
