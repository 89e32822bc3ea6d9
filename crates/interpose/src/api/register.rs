//! Registering memory of the program.
//!
//! Pinning changes no result, only how fast copies are, so registered memory is still copied
//! as ordinary memory is; the list at the end of the run says so. Kernels cannot reach it:
//! asking for its device pointer is not supported.

use crate::boundary::{driver, runtime};
use crate::call::note;
use crate::context::{current, current_for_runtime};
use crate::options;
use crate::process::lock;
use crate::types::Address;
use lockstep_protocol::layout::region_of;
use lockstep_protocol::options::Group;
use lockstep_protocol::{CuResult, UnsupportedManner};
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Registered ranges: first address to length.
static RANGES: Mutex<BTreeMap<Address, usize>> = Mutex::new(BTreeMap::new());

/// `cudaHostRegisterDefault`.
const DEFAULT: u32 = 0;

fn register(address: Address, bytes: usize, flags: u32) -> Result<(), CuResult> {
    let end = address.checked_add(bytes).ok_or(CuResult::INVALID_VALUE)?;
    if address == 0 || bytes == 0 || region_of(address as u64).is_some() {
        return Err(CuResult::INVALID_VALUE);
    }
    options::accept_flags(Group::HostRegistration, flags)?;
    let mut ranges = lock(&RANGES);
    let overlap = ranges.range(..end).next_back();
    if overlap.is_some_and(|(start, length)| start + length > address) {
        return Err(CuResult::HOST_MEMORY_ALREADY_REGISTERED);
    }
    ranges.insert(address, bytes);
    drop(ranges);
    options::accept(Group::HostRegistration, DEFAULT)
}

fn unregister(address: Address) -> Result<(), CuResult> {
    let mut ranges = lock(&RANGES);
    if ranges.remove(&address).is_some() {
        return Ok(());
    }
    // A place inside of a range is registered, but no range begins there.
    let before = ranges.range(..address).next_back();
    let inside = before.is_some_and(|(start, length)| address - start < *length);
    Err(if inside {
        CuResult::INVALID_VALUE
    } else {
        CuResult::HOST_MEMORY_NOT_REGISTERED
    })
}

/// Whether an address lies in registered memory.
pub fn is_registered(address: Address) -> bool {
    let ranges = lock(&RANGES);
    let before = ranges.range(..=address).next_back();
    before.is_some_and(|(start, length)| address - start < *length)
}

/// The answer to whoever asks for the device pointer of memory outside the window.
pub fn no_device_pointer(address: Address) -> CuResult {
    if is_registered(address) {
        note(
            "device pointer of registered host memory",
            UnsupportedManner::Option,
        );
        CuResult::NOT_SUPPORTED
    } else {
        CuResult::INVALID_VALUE
    }
}

runtime! {
    fn cudaHostRegister(address: Address, bytes: usize, flags: u32) {
        current_for_runtime()?;
        Ok(register(address, bytes, flags)?)
    }

    fn cudaHostUnregister(address: Address) {
        current_for_runtime()?;
        Ok(unregister(address)?)
    }
}

driver! {
    fn cuMemHostRegister_v2(address: Address, bytes: usize, flags: u32) {
        current()?;
        register(address, bytes, flags)
    }

    fn cuMemHostUnregister(address: Address) {
        current()?;
        unregister(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_neither_overlap_nor_vanish_twice() {
        // Without a simulator the note goes nowhere, and registration still counts.
        assert_eq!(register(0x10000, 0x1000, 0), Ok(()));
        assert_eq!(
            register(0x10800, 0x1000, 0),
            Err(CuResult::HOST_MEMORY_ALREADY_REGISTERED)
        );
        assert_eq!(
            register(0xf000, 0x1001, 0),
            Err(CuResult::HOST_MEMORY_ALREADY_REGISTERED)
        );
        assert_eq!(register(0xf000, 0x1000, 0), Ok(()));
        assert!(is_registered(0x10fff) && !is_registered(0x11000));
        assert_eq!(no_device_pointer(0x10010), CuResult::NOT_SUPPORTED);
        assert_eq!(unregister(0x10000), Ok(()));
        assert_eq!(
            unregister(0x10000),
            Err(CuResult::HOST_MEMORY_NOT_REGISTERED)
        );
        assert_eq!(no_device_pointer(0x10010), CuResult::INVALID_VALUE);
    }
}
