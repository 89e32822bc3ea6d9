//! Memory pools, from which stream-ordered allocations come.
//!
//! A pool keeps an account: what was allocated from it and is not yet freed, and what it holds.
//! Memory itself comes from the device, and goes back to it when it is freed.

use super::memory::allocate_async;
use super::pool_account::Account;
use super::virtual_memory::Access;
use crate::boundary::{driver, runtime};
use crate::context::{check_initialized, current, current_for_runtime, find};
use crate::fair_mutex::FairMutex;
use crate::opaque::{self, Kind};
use crate::options;
use crate::process::{device, lock};
use crate::streams::{Target, target};
use crate::types::{Address, In, Location, Out};
use lockstep_protocol::CuResult;
use lockstep_protocol::options::Group;
use std::collections::BTreeMap;

/// Default pools have the numbers below this, one a device.
const FIRST_CREATED: u64 = 1 << 16;
/// Memory in use and reserved, now and at most.
const RESERVED_NOW: u32 = 5;
const RESERVED_MOST: u32 = 6;
const USED_NOW: u32 = 7;
const USED_MOST: u32 = 8;
/// How much a pool keeps when the host has waited.
const RELEASE_THRESHOLD: u32 = 4;

#[derive(Default)]
struct Pool {
    device: i32,
    attributes: BTreeMap<u32, u64>,
    account: Account,
}

struct Pools {
    next: u64,
    pools: BTreeMap<u64, Pool>,
    /// Pools that programs chose instead of the default ones, by device.
    current: BTreeMap<i32, u64>,
    /// Allocations: pool and bytes.
    allocations: BTreeMap<Address, (u64, u64)>,
}

static POOLS: FairMutex<Pools> = FairMutex::new(Pools {
    next: FIRST_CREATED,
    pools: BTreeMap::new(),
    current: BTreeMap::new(),
    allocations: BTreeMap::new(),
});

/// Rows of the table of options for properties of pools, which have no numbers of their own.
const HOST_MEMORY: u32 = 0;
const SHARED_HANDLES: u32 = 1;
const USAGE: u32 = 3;

/// `cudaMemPoolProps`, `CUmemPoolProps`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Properties {
    kind: u32,
    handle_types: u32,
    location: Location,
    attributes: Address,
    maximum: usize,
    usage: u16,
    reserved: [u8; 54],
}

/// `cudaMemPoolAttr`: three reuse policies (on by default), the release threshold, and four
/// amounts of memory.
fn attribute_bytes(number: u32) -> Result<usize, CuResult> {
    match number {
        1..=3 => Ok(4),
        4..=8 => Ok(8),
        _ => Err(CuResult::INVALID_VALUE),
    }
}

/// Policies of reuse are on unless the program says otherwise.
fn default_value(number: u32) -> u64 {
    u64::from(number <= 3)
}

fn default_pool(number: i32) -> Result<u64, CuResult> {
    device(number)?;
    let pool = number as u64 + 1;
    let mut pools = lock(&POOLS);
    pools.pools.entry(pool).or_insert_with(|| Pool {
        device: number,
        ..Pool::default()
    });
    Ok(pool)
}

fn current_pool(number: i32) -> Result<u64, CuResult> {
    let default = default_pool(number)?;
    Ok(lock(&POOLS)
        .current
        .get(&number)
        .copied()
        .unwrap_or(default))
}

fn encode(pool: u64) -> Address {
    opaque::encode(Kind::Pool, pool)
}

fn decode(pool: Address) -> Result<u64, CuResult> {
    let number = opaque::decode(Kind::Pool, pool).ok_or(CuResult::INVALID_VALUE)?;
    match lock(&POOLS).pools.contains_key(&number) {
        true => Ok(number),
        false => Err(CuResult::INVALID_VALUE),
    }
}

fn create(properties: Properties) -> Result<Address, CuResult> {
    const PINNED: u32 = 1;
    const DEVICE: i32 = 1;
    if properties.kind != PINNED || properties.reserved.iter().any(|byte| *byte != 0) {
        return Err(CuResult::INVALID_VALUE);
    }
    if properties.location.kind != DEVICE {
        options::accept(Group::PoolProperty, HOST_MEMORY)?;
    }
    if properties.handle_types != 0 {
        options::accept(Group::PoolProperty, SHARED_HANDLES)?;
    }
    if properties.usage != 0 {
        options::accept(Group::PoolProperty, USAGE)?;
    }
    device(properties.location.number)?;
    let mut pools = lock(&POOLS);
    pools.next += 1;
    let number = pools.next;
    let pool = Pool {
        device: properties.location.number,
        account: Account::new(properties.maximum as u64),
        ..Pool::default()
    };
    pools.pools.insert(number, pool);
    Ok(encode(number))
}

fn destroy(pool: Address) -> Result<(), CuResult> {
    let number = decode(pool)?;
    if number < FIRST_CREATED {
        return Err(CuResult::INVALID_VALUE);
    }
    let mut pools = lock(&POOLS);
    pools.pools.remove(&number);
    pools.current.retain(|_, pool| *pool != number);
    Ok(())
}

fn choose(number: i32, pool: Address) -> Result<(), CuResult> {
    device(number)?;
    let pool = decode(pool)?;
    let mut pools = lock(&POOLS);
    if pools
        .pools
        .get(&pool)
        .is_none_or(|pool| pool.device != number)
    {
        return Err(CuResult::INVALID_VALUE);
    }
    pools.current.insert(number, pool);
    Ok(())
}

fn get(pool: Address, number: u32, value: Out<u8>) -> Result<(), CuResult> {
    let bytes = attribute_bytes(number)?;
    let key = decode(pool)?;
    let pools = lock(&POOLS);
    let pool = pools.pools.get(&key).ok_or(CuResult::INVALID_VALUE)?;
    let found = match number {
        RESERVED_NOW => pool.account.reserved,
        RESERVED_MOST => pool.account.most_reserved,
        USED_NOW => pool.account.used,
        USED_MOST => pool.account.most_used,
        _ => {
            let value = pool.attributes.get(&number).copied();
            value.unwrap_or(default_value(number))
        }
    };
    value.set_bytes(&found.to_le_bytes()[..bytes])
}

fn set(pool: Address, number: u32, value: Out<u8>) -> Result<(), CuResult> {
    value.check()?;
    let mut bytes = [0; 8];
    for (index, byte) in bytes[..attribute_bytes(number)?].iter_mut().enumerate() {
        *byte = In(value.pointer().cast_const()).at(index)?;
    }
    let wanted = u64::from_le_bytes(bytes);
    let key = decode(pool)?;
    if wanted != default_value(number) {
        options::accept(Group::PoolAttribute, number)?;
    }
    let mut pools = lock(&POOLS);
    let pool = pools.pools.get_mut(&key).ok_or(CuResult::INVALID_VALUE)?;
    match (number, wanted) {
        // Marks of the most can only be taken back.
        (RESERVED_MOST, 0) => pool.account.most_reserved = pool.account.reserved,
        (USED_MOST, 0) => pool.account.most_used = pool.account.used,
        (RESERVED_NOW..=USED_MOST, _) => return Err(CuResult::INVALID_VALUE),
        _ => drop(pool.attributes.insert(number, wanted)),
    }
    Ok(())
}

/// The pool that allocations without one come from.
pub fn pool_of(place: Target) -> Result<u64, CuResult> {
    current_pool(find(place.context)?.device as i32)
}

/// Refuses an allocation that a pool has no room for.
pub fn check_room(pool: u64, bytes: usize) -> Result<(), CuResult> {
    let pools = lock(&POOLS);
    match pools.pools.get(&pool) {
        Some(found) if !found.account.has_room(bytes as u64) => Err(CuResult::OUT_OF_MEMORY),
        _ => Ok(()),
    }
}

/// Notes an allocation from a pool.
pub fn note_allocation(pool: u64, address: Address, bytes: usize) {
    let bytes = bytes as u64;
    let mut pools = lock(&POOLS);
    if let Some(found) = pools.pools.get_mut(&pool) {
        found.account.take(bytes);
    }
    let before = pools.allocations.insert(address, (pool, bytes));
    pools.credit(before);
}

/// The host has waited for work: pools give up what is above their thresholds.
pub fn release_unused() {
    for pool in lock(&POOLS).pools.values_mut() {
        let threshold = pool.attributes.get(&RELEASE_THRESHOLD);
        pool.account.release(threshold.copied().unwrap_or(0));
    }
}

/// Makes a pool give up what is not used, but for so much.
fn trim(pool: Address, keep: usize) -> Result<(), CuResult> {
    let key = decode(pool)?;
    if let Some(pool) = lock(&POOLS).pools.get_mut(&key) {
        pool.account.release(keep as u64);
    }
    Ok(())
}

/// Notes that an allocation is freed, if it came from a pool.
pub fn note_free(address: Address) {
    let mut pools = lock(&POOLS);
    let removed = pools.allocations.remove(&address);
    pools.credit(removed);
}

impl Pools {
    fn credit(&mut self, freed: Option<(u64, u64)>) {
        if let Some((pool, bytes)) = freed
            && let Some(pool) = self.pools.get_mut(&pool)
        {
            pool.account.give(bytes);
        }
    }
}

fn allocate_from(
    place: Target,
    pointer: Out<Address>,
    bytes: usize,
    pool: Address,
) -> Result<(), CuResult> {
    pointer.check()?;
    let pool = decode(pool)?;
    if bytes == 0 {
        return pointer.set(0);
    }
    pointer.set(allocate_async(place, bytes, pool)?)
}

/// Every device may use every pool of its own; there is one device.
fn set_access(pool: Address, list: In<Access>, count: usize) -> Result<(), CuResult> {
    decode(pool)?;
    for index in 0..count {
        let access = list.at(index)?;
        if access.location.kind != 1 {
            return Err(CuResult::INVALID_VALUE);
        }
        device(access.location.number)?;
        options::accept(Group::PoolAccess, access.flags)?;
    }
    Ok(())
}

fn get_access(pool: Address, location: In<Location>) -> Result<u32, CuResult> {
    const READ_WRITE: u32 = 3;
    decode(pool)?;
    let location = location.get()?;
    if location.kind != 1 {
        return Err(CuResult::INVALID_VALUE);
    }
    device(location.number)?;
    Ok(READ_WRITE)
}

/// Pools by location and kind of memory: pinned memory of a device.
fn located(location: In<Location>, kind: u32) -> Result<i32, CuResult> {
    let location = location.get()?;
    if location.kind != 1 || kind != 1 {
        return Err(CuResult::NOT_SUPPORTED);
    }
    Ok(location.number)
}

runtime! {
    fn cudaDeviceGetDefaultMemPool(pool: Out<Address>, number: i32) {
        Ok(pool.set(encode(default_pool(number)?))?)
    }

    fn cudaDeviceGetMemPool(pool: Out<Address>, number: i32) {
        Ok(pool.set(encode(current_pool(number)?))?)
    }

    fn cudaDeviceSetMemPool(number: i32, pool: Address) {
        Ok(choose(number, pool)?)
    }

    fn cudaMemGetDefaultMemPool(pool: Out<Address>, location: In<Location>, kind: u32) {
        Ok(pool.set(encode(default_pool(located(location, kind)?)?))?)
    }

    fn cudaMemGetMemPool(pool: Out<Address>, location: In<Location>, kind: u32) {
        Ok(pool.set(encode(current_pool(located(location, kind)?)?))?)
    }

    fn cudaMemSetMemPool(location: In<Location>, kind: u32, pool: Address) {
        Ok(choose(located(location, kind)?, pool)?)
    }

    fn cudaMemPoolCreate(pool: Out<Address>, properties: In<Properties>) {
        pool.check()?;
        current_for_runtime()?;
        Ok(pool.set(create(properties.get()?)?)?)
    }

    fn cudaMemPoolDestroy(pool: Address) {
        Ok(destroy(pool)?)
    }

    fn cudaMemPoolGetAttribute(pool: Address, number: u32, value: Out<u8>) {
        Ok(get(pool, number, value)?)
    }

    fn cudaMemPoolSetAttribute(pool: Address, number: u32, value: Out<u8>) {
        Ok(set(pool, number, value)?)
    }

    fn cudaMemPoolSetAccess(pool: Address, list: In<Access>, count: usize) {
        Ok(set_access(pool, list, count)?)
    }

    fn cudaMemPoolGetAccess(flags: Out<u32>, pool: Address, location: In<Location>) {
        Ok(flags.set(get_access(pool, location)?)?)
    }

    fn cudaMemPoolTrimTo(pool: Address, keep: usize) {
        Ok(trim(pool, keep)?)
    }

    fn cudaMallocFromPoolAsync | cudaMallocFromPoolAsync_ptsz [defaults] (pointer: Out<Address>, bytes: usize, pool: Address, stream: Address) {
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(allocate_from(target, pointer, bytes, pool)?)
    }
}

driver! {
    fn cuDeviceGetDefaultMemPool(pool: Out<Address>, number: i32) {
        check_initialized()?;
        pool.set(encode(default_pool(number)?))
    }

    fn cuDeviceGetMemPool(pool: Out<Address>, number: i32) {
        check_initialized()?;
        pool.set(encode(current_pool(number)?))
    }

    fn cuDeviceSetMemPool(number: i32, pool: Address) {
        check_initialized()?;
        choose(number, pool)
    }

    fn cuMemGetDefaultMemPool(pool: Out<Address>, location: In<Location>, kind: u32) {
        check_initialized()?;
        pool.set(encode(default_pool(located(location, kind)?)?))
    }

    fn cuMemGetMemPool(pool: Out<Address>, location: In<Location>, kind: u32) {
        check_initialized()?;
        pool.set(encode(current_pool(located(location, kind)?)?))
    }

    fn cuMemSetMemPool(location: In<Location>, kind: u32, pool: Address) {
        check_initialized()?;
        choose(located(location, kind)?, pool)
    }

    fn cuMemPoolCreate(pool: Out<Address>, properties: In<Properties>) {
        pool.check()?;
        check_initialized()?;
        pool.set(create(properties.get()?)?)
    }

    fn cuMemPoolDestroy(pool: Address) {
        destroy(pool)
    }

    fn cuMemPoolGetAttribute(pool: Address, number: u32, value: Out<u8>) {
        get(pool, number, value)
    }

    fn cuMemPoolSetAttribute(pool: Address, number: u32, value: Out<u8>) {
        set(pool, number, value)
    }

    fn cuMemPoolSetAccess(pool: Address, list: In<Access>, count: usize) {
        set_access(pool, list, count)
    }

    fn cuMemPoolGetAccess(flags: Out<u32>, pool: Address, location: In<Location>) {
        flags.set(get_access(pool, location)?)
    }

    fn cuMemPoolTrimTo(pool: Address, keep: usize) {
        trim(pool, keep)
    }

    fn cuMemAllocFromPoolAsync | cuMemAllocFromPoolAsync_ptsz [defaults] (pointer: Out<Address>, bytes: usize, pool: Address, stream: Address) {
        let target = target(stream, defaults, current)?;
        allocate_from(target, pointer, bytes, pool)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_structure_has_the_size_of_the_header() {
        assert_eq!(size_of::<Properties>(), 88);
    }
}
