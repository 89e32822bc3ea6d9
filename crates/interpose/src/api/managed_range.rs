//! What was advised for managed memory, and calls on several ranges of it.

use super::managed::{of_location, prefetch};
use crate::boundary::{driver, runtime};
use crate::context::{check_initialized, current, current_for_runtime, visible_device};
use crate::fair_mutex::FairMutex;
use crate::process::lock;
use crate::streams::{Target, target};
use crate::types::{Address, In, Location, Out};
use lockstep_protocol::{CuResult, MemoryLocation};
use std::ops::Range;

/// `cudaCpuDeviceId`.
const HOST: i32 = -1;
/// `cudaInvalidDeviceId`.
const NOWHERE: i32 = -2;

/// One advice or prefetch that a range was given.
#[derive(Clone)]
struct Given {
    range: Range<Address>,
    /// `cudaMemoryAdvise`, or 0 for a prefetch.
    advice: u32,
    location: MemoryLocation,
}

static GIVEN: FairMutex<Vec<Given>> = FairMutex::new(Vec::new());

/// Notes an advice (or, as 0, a prefetch) that was accepted.
pub fn note(address: Address, bytes: usize, advice: u32, location: MemoryLocation) {
    let range = address..address + bytes;
    let mut given = lock(&GIVEN);
    // What the same range was told before about the same matter no longer counts.
    given.retain(|old| {
        let inside = old.range.start >= range.start && old.range.end <= range.end;
        let about = |number: u32| number.div_ceil(2);
        let same_place = about(advice) != 3 || old.location == location;
        !(inside && about(old.advice) == about(advice) && same_place)
    });
    given.push(Given {
        range,
        advice,
        location,
    });
}

/// Forgets what was said of memory that is freed.
pub fn forget(address: Address) {
    lock(&GIVEN).retain(|given| !given.range.contains(&address));
}

/// The last word on a matter that all of a range was given; none if parts differ.
fn last(range: &Range<Address>, matters: &[u32]) -> Option<Given> {
    let given = lock(&GIVEN);
    let touching = given
        .iter()
        .rev()
        .filter(|given| matters.contains(&given.advice))
        .find(|given| given.range.start < range.end && range.start < given.range.end)?;
    let covers = touching.range.start <= range.start && touching.range.end >= range.end;
    covers.then(|| touching.clone())
}

fn device_number(location: MemoryLocation) -> i32 {
    match location {
        MemoryLocation::Device(ordinal) => visible_device(ordinal).map_or(NOWHERE, |at| at as i32),
        MemoryLocation::Host | MemoryLocation::HostNuma(_) => HOST,
        MemoryLocation::None => NOWHERE,
    }
}

/// `cudaMemLocationType` and number.
fn kind_and_number(location: MemoryLocation) -> (i32, i32) {
    match location {
        MemoryLocation::None => (0, 0),
        MemoryLocation::Device(_) => (1, device_number(location)),
        MemoryLocation::Host => (2, HOST),
        MemoryLocation::HostNuma(node) => (3, node),
    }
}

fn read(
    data: Out<u8>,
    bytes: usize,
    attribute: u32,
    range: &Range<Address>,
) -> Result<(), CuResult> {
    let located = |matters: &[u32], given: u32| match last(range, matters) {
        Some(last) if last.advice == given => last.location,
        _ => MemoryLocation::None,
    };
    let preferred = || located(&[3, 4], 3);
    let prefetched = || located(&[0], 0);
    let one = match attribute {
        1 => i32::from(matches!(
            last(range, &[1, 2]),
            Some(Given { advice: 1, .. })
        )),
        2 => device_number(preferred()),
        3 => return accessed_by(data, bytes, range),
        4 => device_number(prefetched()),
        5 => kind_and_number(preferred()).0,
        6 => kind_and_number(preferred()).1,
        7 => kind_and_number(prefetched()).0,
        8 => kind_and_number(prefetched()).1,
        _ => return Err(CuResult::INVALID_VALUE),
    };
    if bytes != 4 {
        return Err(CuResult::INVALID_VALUE);
    }
    data.set_bytes(&one.to_le_bytes())
}

fn accessed_by(data: Out<u8>, bytes: usize, range: &Range<Address>) -> Result<(), CuResult> {
    if bytes == 0 || !bytes.is_multiple_of(4) {
        return Err(CuResult::INVALID_VALUE);
    }
    let mut devices: Vec<i32> = Vec::new();
    for given in lock(&GIVEN).iter() {
        let covers = given.range.start <= range.start && given.range.end >= range.end;
        let number = device_number(given.location);
        match given.advice {
            5 if covers && !devices.contains(&number) => devices.push(number),
            6 if covers => devices.retain(|other| *other != number),
            _ => {}
        }
    }
    devices.resize(bytes / 4, NOWHERE);
    let all: Vec<u8> = devices.iter().flat_map(|one| one.to_le_bytes()).collect();
    data.set_bytes(&all)
}

fn checked(address: Address, bytes: usize) -> Result<Range<Address>, CuResult> {
    use lockstep_protocol::layout::{Region, region_of};
    match region_of(address as u64) {
        Some(Region::Managed) if bytes > 0 => Ok(address..address + bytes),
        _ => Err(CuResult::INVALID_VALUE),
    }
}

fn read_all(
    data: In<Address>,
    sizes: In<usize>,
    attributes: In<u32>,
    count: usize,
    range: &Range<Address>,
) -> Result<(), CuResult> {
    if count == 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    for index in 0..count {
        let place = Out::at(data.at(index)?);
        read(place, sizes.at(index)?, attributes.at(index)?, range)?;
    }
    Ok(())
}

/// Several ranges, and where each goes: locations, and from which range on each holds.
struct Batch {
    addresses: In<Address>,
    sizes: In<usize>,
    count: usize,
    locations: In<Location>,
    starts: In<usize>,
    location_count: usize,
}

fn prefetch_batch(target: Target, batch: &Batch, flags: u64) -> Result<(), CuResult> {
    if flags != 0 || batch.count == 0 || batch.location_count == 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    let mut place = 0;
    for index in 0..batch.count {
        while place + 1 < batch.location_count && batch.starts.at(place + 1)? <= index {
            place += 1;
        }
        let location = of_location(batch.locations.at(place)?)?;
        prefetch(
            target,
            batch.addresses.at(index)?,
            batch.sizes.at(index)?,
            location,
        )?;
    }
    Ok(())
}

/// Contents may be forgotten, and are kept: that is allowed.
fn discard(
    addresses: In<Address>,
    sizes: In<usize>,
    count: usize,
    flags: u64,
) -> Result<(), CuResult> {
    if flags != 0 || count == 0 {
        return Err(CuResult::INVALID_VALUE);
    }
    for index in 0..count {
        checked(addresses.at(index)?, sizes.at(index)?)?;
    }
    Ok(())
}

runtime! {
    fn cudaMemRangeGetAttribute(data: Out<u8>, bytes: usize, attribute: u32, address: Address, length: usize) {
        current_for_runtime()?;
        Ok(read(data, bytes, attribute, &checked(address, length)?)?)
    }

    fn cudaMemRangeGetAttributes(data: In<Address>, sizes: In<usize>, attributes: In<u32>, count: usize, address: Address, length: usize) {
        current_for_runtime()?;
        Ok(read_all(data, sizes, attributes, count, &checked(address, length)?)?)
    }

    fn cudaMemPrefetchBatchAsync | cudaMemPrefetchBatchAsync_ptsz [defaults] (addresses: In<Address>, sizes: In<usize>, count: usize, locations: In<Location>, starts: In<usize>, location_count: usize, flags: u64, stream: Address) {
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(prefetch_batch(target, &Batch { addresses, sizes, count, locations, starts, location_count }, flags)?)
    }

    fn cudaMemDiscardBatchAsync | cudaMemDiscardBatchAsync_ptsz [defaults] (addresses: In<Address>, sizes: In<usize>, count: usize, flags: u64, stream: Address) {
        target(stream, defaults, current_for_runtime)?;
        Ok(discard(addresses, sizes, count, flags)?)
    }

    fn cudaMemDiscardAndPrefetchBatchAsync | cudaMemDiscardAndPrefetchBatchAsync_ptsz [defaults] (addresses: In<Address>, sizes: In<usize>, count: usize, locations: In<Location>, starts: In<usize>, location_count: usize, flags: u64, stream: Address) {
        let target = target(stream, defaults, current_for_runtime)?;
        discard(addresses, sizes, count, flags)?;
        Ok(prefetch_batch(target, &Batch { addresses, sizes, count, locations, starts, location_count }, flags)?)
    }
}

driver! {
    fn cuMemRangeGetAttribute(data: Out<u8>, bytes: usize, attribute: u32, address: Address, length: usize) {
        check_initialized()?;
        read(data, bytes, attribute, &checked(address, length)?)
    }

    fn cuMemRangeGetAttributes(data: In<Address>, sizes: In<usize>, attributes: In<u32>, count: usize, address: Address, length: usize) {
        check_initialized()?;
        read_all(data, sizes, attributes, count, &checked(address, length)?)
    }

    fn cuMemPrefetchBatchAsync | cuMemPrefetchBatchAsync_ptsz [defaults] (addresses: In<Address>, sizes: In<usize>, count: usize, locations: In<Location>, starts: In<usize>, location_count: usize, flags: u64, stream: Address) {
        let target = target(stream, defaults, current)?;
        prefetch_batch(target, &Batch { addresses, sizes, count, locations, starts, location_count }, flags)
    }

    fn cuMemDiscardBatchAsync | cuMemDiscardBatchAsync_ptsz [defaults] (addresses: In<Address>, sizes: In<usize>, count: usize, flags: u64, stream: Address) {
        target(stream, defaults, current)?;
        discard(addresses, sizes, count, flags)
    }

    fn cuMemDiscardAndPrefetchBatchAsync | cuMemDiscardAndPrefetchBatchAsync_ptsz [defaults] (addresses: In<Address>, sizes: In<usize>, count: usize, locations: In<Location>, starts: In<usize>, location_count: usize, flags: u64, stream: Address) {
        let target = target(stream, defaults, current)?;
        discard(addresses, sizes, count, flags)?;
        prefetch_batch(target, &Batch { addresses, sizes, count, locations, starts, location_count }, flags)
    }
}
