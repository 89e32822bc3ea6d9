//! Memory pools: one for each device, from which stream-ordered allocations come.

use super::memory::allocate_async;
use crate::boundary::{driver, runtime};
use crate::context::{check_initialized, current, current_for_runtime};
use crate::opaque::{self, Kind};
use crate::process::{device, lock};
use crate::streams::target;
use crate::types::{Address, Out};
use lockstep_protocol::CuResult;
use std::collections::BTreeMap;
use std::sync::Mutex;

/// Attributes that the program set, by device and number.
static ATTRIBUTES: Mutex<BTreeMap<(u64, u32), u64>> = Mutex::new(BTreeMap::new());

/// `cudaMemPoolAttr`: three reuse policies (on by default), the release threshold, and four
/// amounts of memory.
fn attribute_bytes(number: u32) -> Result<usize, CuResult> {
    match number {
        1..=3 => Ok(4),
        4..=8 => Ok(8),
        _ => Err(CuResult::INVALID_VALUE),
    }
}

fn of_device(number: i32) -> Result<Address, CuResult> {
    device(number)?;
    Ok(opaque::encode(Kind::Pool, number as u64 + 1))
}

fn decode(pool: Address) -> Result<u64, CuResult> {
    opaque::decode(Kind::Pool, pool).ok_or(CuResult::INVALID_VALUE)
}

fn get(pool: Address, number: u32, value: Out<u8>) -> Result<(), CuResult> {
    let bytes = attribute_bytes(number)?;
    let key = (decode(pool)?, number);
    let default = u64::from(number <= 3);
    let found = lock(&ATTRIBUTES).get(&key).copied().unwrap_or(default);
    value.set_bytes(&found.to_le_bytes()[..bytes])
}

fn set(pool: Address, number: u32, value: Out<u8>) -> Result<(), CuResult> {
    value.check()?;
    let mut bytes = [0; 8];
    for (index, byte) in bytes[..attribute_bytes(number)?].iter_mut().enumerate() {
        *byte = crate::types::In(value.pointer().cast_const()).at(index)?;
    }
    let key = (decode(pool)?, number);
    lock(&ATTRIBUTES).insert(key, u64::from_le_bytes(bytes));
    Ok(())
}

runtime! {
    fn cudaDeviceGetDefaultMemPool(pool: Out<Address>, number: i32) {
        Ok(pool.set(of_device(number)?)?)
    }

    fn cudaDeviceGetMemPool(pool: Out<Address>, number: i32) {
        Ok(pool.set(of_device(number)?)?)
    }

    fn cudaMemPoolGetAttribute(pool: Address, number: u32, value: Out<u8>) {
        Ok(get(pool, number, value)?)
    }

    fn cudaMemPoolSetAttribute(pool: Address, number: u32, value: Out<u8>) {
        Ok(set(pool, number, value)?)
    }

    /// Freed memory is never kept, so there is nothing to give back.
    fn cudaMemPoolTrimTo(pool: Address, keep: usize) {
        let _ = keep;
        decode(pool)?;
        Ok(())
    }

    fn cudaMallocFromPoolAsync | cudaMallocFromPoolAsync_ptsz [defaults] (pointer: Out<Address>, bytes: usize, pool: Address, stream: Address) {
        pointer.check()?;
        decode(pool)?;
        let target = target(stream, defaults, current_for_runtime)?;
        Ok(pointer.set(if bytes == 0 { 0 } else { allocate_async(target, bytes)? })?)
    }
}

driver! {
    fn cuDeviceGetDefaultMemPool(pool: Out<Address>, number: i32) {
        check_initialized()?;
        pool.set(of_device(number)?)
    }

    fn cuDeviceGetMemPool(pool: Out<Address>, number: i32) {
        check_initialized()?;
        pool.set(of_device(number)?)
    }

    fn cuMemPoolGetAttribute(pool: Address, number: u32, value: Out<u8>) {
        get(pool, number, value)
    }

    fn cuMemPoolSetAttribute(pool: Address, number: u32, value: Out<u8>) {
        set(pool, number, value)
    }

    fn cuMemPoolTrimTo(pool: Address, keep: usize) {
        let _ = keep;
        decode(pool).map(|_| ())
    }

    fn cuMemAllocFromPoolAsync | cuMemAllocFromPoolAsync_ptsz [defaults] (pointer: Out<Address>, bytes: usize, pool: Address, stream: Address) {
        pointer.check()?;
        decode(pool)?;
        let target = target(stream, defaults, current)?;
        pointer.set(if bytes == 0 { 0 } else { allocate_async(target, bytes)? })
    }
}
