//! Accesses outside every allocation.
//!
//! A GPU maps memory in pages of 2 MiB and does not know what was asked of the allocator: an access beside an
//! allocation finds whatever lies in the page, and a store changes it. Here it does the same, and is noted. Beyond
//! mapped memory it is an illegal address, and with the memory check wherever no allocation holds it.
//!
//! Below the first allocation an H200 has memory of the context, which can be read. What it holds is the driver's own:
//! here it reads zero.

use lockstep_isa::Mask;
use lockstep_isa::addresses::Addresses;
use lockstep_isa::warp_register::lanes_of;

use super::{Check, Culprits, Subject, note};
use crate::fault::offset_from;
use crate::sm::site::Site;

/// What becomes of lanes of which some have an address that no allocation holds.
pub enum Outside {
    /// This lane stops the kernel.
    Stops(usize),
    /// They pass, and are noted.
    Passes,
    /// They pass, and some of them read memory of the context: these addresses have what it holds.
    Reads(Box<Addresses>),
}

/// Looks at lanes of which some have an address that no allocation holds; `what` is the access, as "global load", and
/// `loads` says that it is one.
#[cold]
pub fn look(
    site: &mut Site<'_, '_>,
    execute: Mask,
    addresses: &Addresses,
    bytes: u32,
    what: &str,
    loads: bool,
) -> Outside {
    let mut passing: Mask = 0;
    let mut moved = None;
    for lane in lanes_of(execute) {
        let address = addresses.lanes[lane];
        if site.port.holds(address, bytes.into()) {
            continue;
        }
        let contents = &site.port.contents;
        let of_context = contents.in_context_memory(address, bytes.into());
        if site.port.checks.memory {
            return Outside::Stops(lane);
        } else if let Some(place) = of_context.filter(|_| loads) {
            moved.get_or_insert(addresses.lanes)[lane] = place;
        } else if !contents.is_mapped(address, bytes.into()) {
            return Outside::Stops(lane);
        }
        passing |= 1 << lane;
    }
    if passing != 0 {
        let lane = passing.trailing_zeros() as usize;
        passes(site, passing, addresses.lanes[lane], bytes, what);
    }
    match moved {
        Some(lanes) => Outside::Reads(Box::new(Addresses::of(lanes, bytes))),
        None => Outside::Passes,
    }
}

/// Whether an access of the bulk engine, which no allocation holds, must stop the kernel; else it is noted.
#[cold]
pub fn stops(site: &mut Site<'_, '_>, address: u64, bytes: u32, what: &str) -> bool {
    if site.port.checks.memory || !site.port.contents.is_mapped(address, bytes.into()) {
        return true;
    }
    let active = site.warp.convergence.active();
    passes(site, active & active.wrapping_neg(), address, bytes, what);
    false
}

fn passes(site: &Site<'_, '_>, lanes: Mask, address: u64, bytes: u32, what: &str) {
    let culprits = Culprits::of(site, lanes);
    let nearest = site.port.contents.nearest(address);
    let subject = Subject {
        address: Some(address),
        nearest: nearest.as_ref().map(|range| range.start),
    };
    note(
        &site.port.findings,
        Check::Outside,
        &culprits,
        subject,
        || {
            let place = nearest.map_or_else(String::new, |range| offset_from(&range, address));
            format!("{what} of {bytes} bytes at {address:#x}{place}")
        },
    );
}
