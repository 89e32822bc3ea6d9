//! Memory and events that processes share.
//!
//! All processes see one window, so a handle is an address or a number with what is needed
//! to tell a stale one.

use super::memory::pointer_info;
use crate::boundary::{driver, runtime};
use crate::call::done;
use crate::context::{current, current_for_runtime, find};
use crate::fair_mutex::FairMutex;
use crate::opaque::{self, Kind};
use crate::process::{device, lock};
use crate::types::{Address, Out};
use lockstep_protocol::{ContextHandle, CuResult, PointerInfo, PointerKind, Request};
use std::collections::{BTreeMap, BTreeSet};

/// `cudaIpcMemHandle_t`, `cudaIpcEventHandle_t`: 64 bytes of ours.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Handle {
    magic: u64,
    process: u64,
    number: u64,
    identity: u64,
    /// The node of who made it: others have no way to what it names.
    node: u64,
    rest: [u64; 3],
}

const MEMORY: u64 = u64::from_le_bytes(*b"lkst mem");
const EVENT: u64 = u64::from_le_bytes(*b"lkst evt");
/// `cudaIpcMemLazyEnablePeerAccess`.
const LAZY_PEER_ACCESS: u32 = 1;

/// Memory of others that this process has opened, with counts.
static OPENED: FairMutex<BTreeMap<Address, u32>> = FairMutex::new(BTreeMap::new());
/// Events of this process that others may open.
static EVENTS: FairMutex<BTreeSet<Address>> = FairMutex::new(BTreeSet::new());

/// Events of others that this process has opened.
static OPENED_EVENTS: FairMutex<BTreeSet<Address>> = FairMutex::new(BTreeSet::new());

/// Gives up an event of another process; true if it was one.
pub fn close_event(event: Address) -> bool {
    lock(&OPENED_EVENTS).remove(&event)
}

/// Notes an event that was made for sharing.
pub fn note_event(event: Address) {
    lock(&EVENTS).insert(event);
}

/// Forgets an event.
pub fn forget_event(event: Address) {
    lock(&EVENTS).remove(&event);
}

fn process() -> u64 {
    u64::from(std::process::id())
}

/// The node of this process, which has connected and so is on one.
fn node() -> u64 {
    crate::process::node().map_or(u64::MAX, u64::from)
}

/// Refuses a handle of another kind or from another node, where a driver finds nothing that it names.
fn check(handle: &Handle, magic: u64) -> Result<(), CuResult> {
    match handle.magic == magic && handle.node == node() {
        true => Ok(()),
        false => Err(CuResult::INVALID_VALUE),
    }
}

fn memory_handle(address: Address) -> Result<Handle, CuResult> {
    let info = pointer_info(address)?.ok_or(CuResult::INVALID_VALUE)?;
    if info.kind != PointerKind::Device {
        return Err(CuResult::INVALID_VALUE);
    }
    Ok(Handle {
        magic: MEMORY,
        process: process(),
        number: info.base,
        identity: info.identity,
        node: node(),
        rest: [0; 3],
    })
}

fn open_memory(context: ContextHandle, handle: Handle, flags: u32) -> Result<Address, CuResult> {
    if flags != LAZY_PEER_ACCESS {
        return Err(CuResult::INVALID_VALUE);
    }
    check(&handle, MEMORY)?;
    if handle.process == process() {
        // A process has no need to open what is its own, and CUDA does not let it.
        return Err(CuResult::INVALID_CONTEXT);
    }
    let address = handle.number as Address;
    let known = pointer_info(address)?
        .filter(|info| info.base == handle.number && info.identity == handle.identity);
    reach(context, &known.ok_or(CuResult::INVALID_HANDLE)?)?;
    *lock(&OPENED).entry(address).or_default() += 1;
    Ok(address)
}

/// Lets a context use memory that another process has on another device, as the flag of the call asks.
fn reach(context: ContextHandle, memory: &PointerInfo) -> Result<(), CuResult> {
    let own = device(find(context)?.device as i32)?.ordinal;
    if own == memory.device {
        return Ok(());
    }
    let peer = memory.context;
    match done(&Request::PeerAccessEnable { context, peer }) {
        Err(CuResult::PEER_ACCESS_ALREADY_ENABLED) => Ok(()),
        enabled => enabled,
    }
}

fn close_memory(address: Address) -> Result<(), CuResult> {
    let mut opened = lock(&OPENED);
    let count = opened.get_mut(&address).ok_or(CuResult::INVALID_VALUE)?;
    *count -= 1;
    if *count == 0 {
        opened.remove(&address);
    }
    Ok(())
}

fn event_handle(event: Address) -> Result<Handle, CuResult> {
    let number = opaque::decode(Kind::Event, event).ok_or(CuResult::INVALID_HANDLE)?;
    if !lock(&EVENTS).contains(&event) {
        return Err(CuResult::INVALID_HANDLE);
    }
    Ok(Handle {
        magic: EVENT,
        process: process(),
        number,
        identity: 0,
        node: node(),
        rest: [0; 3],
    })
}

fn open_event(handle: Handle) -> Result<Address, CuResult> {
    check(&handle, EVENT)?;
    if handle.process == process() {
        return Err(CuResult::INVALID_CONTEXT);
    }
    let event = opaque::encode(Kind::Event, handle.number);
    lock(&OPENED_EVENTS).insert(event);
    Ok(event)
}

runtime! {
    fn cudaIpcGetMemHandle(handle: Out<Handle>, address: Address) {
        current_for_runtime()?;
        Ok(handle.set(memory_handle(address)?)?)
    }

    fn cudaIpcOpenMemHandle(pointer: Out<Address>, handle: Handle, flags: u32) {
        pointer.check()?;
        Ok(pointer.set(open_memory(current_for_runtime()?, handle, flags)?)?)
    }

    fn cudaIpcCloseMemHandle(address: Address) {
        current_for_runtime()?;
        Ok(close_memory(address)?)
    }

    fn cudaIpcGetEventHandle(handle: Out<Handle>, event: Address) {
        Ok(handle.set(event_handle(event)?)?)
    }

    fn cudaIpcOpenEventHandle(event: Out<Address>, handle: Handle) {
        event.check()?;
        current_for_runtime()?;
        Ok(event.set(open_event(handle)?)?)
    }
}

driver! {
    fn cuIpcGetMemHandle(handle: Out<Handle>, address: Address) {
        current()?;
        handle.set(memory_handle(address)?)
    }

    fn cuIpcOpenMemHandle(pointer: Out<Address>, handle: Handle, flags: u32) {
        pointer.check()?;
        pointer.set(open_memory(current()?, handle, flags)?)
    }

    fn cuIpcOpenMemHandle_v2(pointer: Out<Address>, handle: Handle, flags: u32) {
        pointer.check()?;
        pointer.set(open_memory(current()?, handle, flags)?)
    }

    fn cuIpcCloseMemHandle(address: Address) {
        current()?;
        close_memory(address)
    }

    fn cuIpcGetEventHandle(handle: Out<Handle>, event: Address) {
        current()?;
        handle.set(event_handle(event)?)
    }

    fn cuIpcOpenEventHandle(event: Out<Address>, handle: Handle) {
        event.check()?;
        current()?;
        event.set(open_event(handle)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_has_the_size_of_the_header() {
        assert_eq!(size_of::<Handle>(), 64);
    }
}
