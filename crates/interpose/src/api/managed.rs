//! Managed memory: prefetching and advice.

use super::managed_range;
use crate::boundary::{driver, runtime};
use crate::call::done;
use crate::context::{check_initialized, current, current_for_runtime, ordinal};
use crate::options;
use crate::streams::{Target, target};
use crate::types::{Address, Location};
use lockstep_protocol::options::Group;
use lockstep_protocol::{CuResult, MemoryLocation, Request, StreamName};

/// The device number that means the host.
const HOST: i32 = -1;

/// Where a device number of the calls before 12.2 points.
fn of_device(number: i32) -> Result<MemoryLocation, CuResult> {
    match usize::try_from(number) {
        Ok(device) => Ok(MemoryLocation::Device(ordinal(device)?)),
        Err(_) if number == HOST => Ok(MemoryLocation::Host),
        Err(_) => Err(CuResult::INVALID_DEVICE),
    }
}

/// Where a location points.
pub fn of_location(location: Location) -> Result<MemoryLocation, CuResult> {
    match location.kind {
        0 => Ok(MemoryLocation::None),
        1 => of_device(location.number),
        2 | 4 => Ok(MemoryLocation::Host),
        3 => Ok(MemoryLocation::HostNuma(location.number)),
        _ => Err(CuResult::INVALID_VALUE),
    }
}

/// Where a location of advice points; a device that is not there is a wrong value, not a device.
fn advised(location: Location) -> Result<MemoryLocation, CuResult> {
    of_location(location).map_err(|_| CuResult::INVALID_VALUE)
}

/// Moves managed memory ahead of its use.
pub fn prefetch(
    target: Target,
    address: Address,
    bytes: usize,
    location: MemoryLocation,
) -> Result<(), CuResult> {
    if bytes == 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    done(&Request::Prefetch {
        context: target.context,
        stream: target.stream,
        address: address as u64,
        bytes: bytes as u64,
        location,
    })?;
    managed_range::note(address, bytes, 0, location);
    Ok(())
}

fn advise(
    address: Address,
    bytes: usize,
    advice: u32,
    location: MemoryLocation,
) -> Result<(), CuResult> {
    options::accept(Group::Advice, advice)?;
    done(&Request::Advise {
        address: address as u64,
        bytes: bytes as u64,
        advice,
        location,
    })?;
    managed_range::note(address, bytes, advice, location);
    Ok(())
}

/// All managed memory is visible to every stream, so there is nothing to attach; a default stream
/// cannot have any for itself.
fn attach(target: Target, flags: u32) -> Result<(), CuResult> {
    const SINGLE: u32 = 4;
    match target.stream {
        _ if flags.count_ones() != 1 => Err(CuResult::INVALID_VALUE),
        StreamName::Legacy if flags == SINGLE => Err(CuResult::INVALID_VALUE),
        _ => options::accept(Group::ManagedAllocation, flags),
    }
}

runtime! {
    fn cudaMemPrefetchAsync | cudaMemPrefetchAsync_ptsz [defaults] (address: Address, bytes: usize, device: i32, stream: Address) {
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(prefetch(target, address, bytes, of_device(device)?)?)
    }

    fn cudaMemPrefetchAsync_v2 | cudaMemPrefetchAsync_v2_ptsz [defaults] (address: Address, bytes: usize, location: Location, flags: u32, stream: Address) {
        let target = target(stream, defaults, current_for_runtime)?;
        if flags != 0 {
            return Err(CuResult::INVALID_VALUE.into());
        }
        Ok(prefetch(target, address, bytes, of_location(location)?)?)
    }

    fn cudaMemAdvise(address: Address, bytes: usize, advice: u32, device: i32) {
        current_for_runtime()?;
        Ok(advise(address, bytes, advice, of_device(device)?)?)
    }

    fn cudaMemAdvise_v2(address: Address, bytes: usize, advice: u32, location: Location) {
        current_for_runtime()?;
        Ok(advise(address, bytes, advice, advised(location)?)?)
    }

    fn cudaStreamAttachMemAsync | cudaStreamAttachMemAsync_ptsz [defaults] (stream: Address, address: Address, bytes: usize, flags: u32) {
        let _ = (address, bytes);
        Ok(attach(target(stream, defaults, current_for_runtime)?, flags)?)
    }
}

driver! {
    fn cuMemPrefetchAsync | cuMemPrefetchAsync_ptsz [defaults] (address: Address, bytes: usize, device: i32, stream: Address) {
        let target = target(stream, defaults, current)?;
        prefetch(target, address, bytes, of_device(device)?)
    }

    fn cuMemPrefetchAsync_v2 | cuMemPrefetchAsync_v2_ptsz [defaults] (address: Address, bytes: usize, location: Location, flags: u32, stream: Address) {
        let target = target(stream, defaults, current)?;
        if flags != 0 {
            return Err(CuResult::INVALID_VALUE);
        }
        prefetch(target, address, bytes, of_location(location)?)
    }

    fn cuMemAdvise(address: Address, bytes: usize, advice: u32, device: i32) {
        check_initialized()?;
        advise(address, bytes, advice, of_device(device)?)
    }

    fn cuMemAdvise_v2(address: Address, bytes: usize, advice: u32, location: Location) {
        check_initialized()?;
        advise(address, bytes, advice, advised(location)?)
    }

    fn cuStreamAttachMemAsync | cuStreamAttachMemAsync_ptsz [defaults] (stream: Address, address: Address, bytes: usize, flags: u32) {
        let _ = (address, bytes);
        attach(target(stream, defaults, current)?, flags)
    }
}
