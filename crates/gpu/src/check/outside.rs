//! Accesses outside every allocation.
//!
//! A GPU maps memory in pages of 2 MiB and does not know what was asked of the allocator: an access beside an
//! allocation finds whatever lies in the page, and a store changes it. Here it does the same, and is noted. Beyond
//! mapped memory it is an illegal address, and with the memory check wherever no allocation holds it.

use lockstep_isa::Mask;
use lockstep_isa::addresses::Addresses;
use lockstep_isa::warp_register::lanes_of;

use super::{Check, Culprits, note};
use crate::fault::offset_from;
use crate::sm::site::Site;

/// The first lane whose access must stop the kernel, of lanes of which some have an address that no allocation holds.
/// If there is none, those that pass are noted; `what` is the access, as "global load".
#[cold]
pub fn stopping_lane(
    site: &mut Site<'_, '_>,
    execute: Mask,
    addresses: &Addresses,
    bytes: u32,
    what: &str,
) -> Option<usize> {
    let mut passing: Mask = 0;
    for lane in lanes_of(execute) {
        let address = addresses.lanes[lane];
        if site.port.holds(address, bytes.into()) {
            continue;
        }
        if site.port.checks.memory || !site.port.contents.is_mapped(address, bytes.into()) {
            return Some(lane);
        }
        passing |= 1 << lane;
    }
    if passing != 0 {
        let lane = passing.trailing_zeros() as usize;
        passes(site, passing, addresses.lanes[lane], bytes, what);
    }
    None
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
    note(
        &site.port.findings,
        Check::Outside,
        &culprits,
        Some(address),
        || {
            let nearest = site.port.contents.nearest(address);
            let place = nearest.map_or_else(String::new, |range| offset_from(&range, address));
            format!("{what} of {bytes} bytes at {address:#x}{place}")
        },
    );
}
