//! Reads of device memory that nobody has written.
//!
//! Written is what the host, a copy engine or a kernel has stored since the memory was allocated. A read is looked at
//! when it is issued: an SM knows its own stores at once, those of others after the epoch in which they were made,
//! which is before any order between the two can be made.

use lockstep_isa::Mask;
use lockstep_isa::warp_register::lanes_of;

use super::{Check, Culprits, Subject, note};
use crate::memory::SECTOR;
use crate::sm::lsu::port::Port;
use crate::sm::site::Site;

/// Notes lanes that read bytes which nobody has written. `what` is the access, as "global load".
#[inline(never)]
pub fn check_reads(
    site: &Site<'_, '_>,
    execute: Mask,
    places: &[u64],
    bytes: impl Fn(usize) -> u32,
    what: &str,
) {
    let mut guilty: Mask = 0;
    for lane in lanes_of(execute) {
        let count = bytes(lane);
        if count > 0 && !is_written(site.port, places[lane], count.into()) {
            guilty |= 1 << lane;
        }
    }
    if guilty != 0 {
        let lane = guilty.trailing_zeros() as usize;
        report(site, guilty, places[lane], bytes(lane), what);
    }
}

/// Notes the bulk engine, if it reads bytes which nobody has written.
pub fn check_bulk(site: &Site<'_, '_>, address: u64, bytes: u32) {
    if !is_written(site.port, address, bytes.into()) {
        let active = site.warp.convergence.active();
        let lane = active & active.wrapping_neg();
        report(site, lane, address, bytes, "global bulk copy");
    }
}

fn report(site: &Site<'_, '_>, lanes: Mask, address: u64, bytes: u32, what: &str) {
    let culprits = Culprits::of(site, lanes);
    let subject = Subject {
        address: Some(address),
        nearest: None,
    };
    note(
        &site.port.findings,
        Check::Initialised,
        &culprits,
        subject,
        || format!("{what} of {bytes} bytes at {address:#x}, of which some were never written"),
    );
}

/// Whether all bytes were written, as far as this SM can know.
fn is_written(port: &Port, address: u64, bytes: u64) -> bool {
    let Some(initialised) = port.contents.initialised() else {
        return true;
    };
    let end = address.saturating_add(bytes);
    let mut at = address;
    while at < end {
        let sector = at / SECTOR;
        let until = ((sector + 1) * SECTOR).min(end);
        let wanted = (u64::MAX >> (64 - (until - at)) << (at % SECTOR)) as u32;
        let mut written = initialised.of(sector);
        if wanted & !written != 0 {
            written |= port.log.find(sector).map_or(0, |entry| entry.mask);
            // What is under way to the slice may be a store of this SM.
            if wanted & !written != 0 && !port.in_flight.holds(sector) {
                return false;
            }
        }
        at = until;
    }
    true
}
